from __future__ import annotations

import pytest

from sandbox_task.isolation.egress.addresses import parse_address
from sandbox_task.isolation.egress.ecosystems import find_ecosystems
from sandbox_task.isolation.egress.hosts import parse_pattern
from sandbox_task.isolation.egress.policy import Policy, hosts_of, make_policy

REGISTRIES = {"python": ["index.example", "files.example:8443"], "node": ["registry.example"]}


def rules(
    *,
    ecosystems: tuple[str, ...] = (),
    github_url: str = "",
    egress: tuple[str, ...] = (),
    allowed: tuple[str, ...] = ("*", "*:8443"),
    private: tuple[str, ...] = (),
) -> Policy:
    return make_policy(
        ecosystems=ecosystems,
        registries=REGISTRIES,
        github_url=github_url,
        egress=egress,
        allowed=allowed,
        private=private,
    )


def may(policy: Policy, host: str, port: int = 443) -> bool:
    return policy.refusal(host, port) is None


def test_without_a_wish_nothing_can_be_reached() -> None:
    assert not may(Policy(), "registry.example")
    assert not may(rules(), "registry.example")


def test_the_registries_of_the_ecosystems_found_can_be_reached_and_no_others() -> None:
    policy = rules(ecosystems=("python", "cobol"))
    assert may(policy, "index.example")
    assert may(policy, "files.example", 8443)
    assert not may(policy, "files.example")
    assert not may(policy, "registry.example")


def test_the_host_of_the_deployments_github_can_be_reached() -> None:
    assert may(rules(github_url="https://github.example/"), "github.example")
    assert not may(rules(github_url="http://127.0.0.1:8080"), "127.0.0.1", 8080)


def test_a_wish_counts_only_as_far_as_the_operator_allows() -> None:
    policy = rules(egress=("a.corp.example", "*.other.example"), allowed=("*.corp.example", "x.other.example"))
    assert may(policy, "a.corp.example")
    assert may(policy, "x.other.example")
    assert not may(policy, "y.other.example")
    assert not may(policy, "b.corp.example")
    assert "the operator does not allow" in str(policy.refusal("y.other.example", 443))


def test_an_operator_who_allows_nothing_closes_everything() -> None:
    assert not may(rules(ecosystems=("node",), egress=("*",), allowed=("none",)), "registry.example")


def test_names_below_a_name_do_not_include_it_nor_its_namesakes() -> None:
    policy = rules(egress=("*.corp.example",))
    assert may(policy, "deep.down.corp.example")
    assert not may(policy, "corp.example")
    assert not may(policy, "evilcorp.example")


@pytest.mark.parametrize(
    "text", ["", "*.", "*a.example", "a.*.example", "127.0.0.1", "0x7f.1", "a:0", "a:x", "a:70000", "https://a", "a b"]
)
def test_what_is_no_pattern_is_said_so(text: str) -> None:
    with pytest.raises(ValueError, match="is no name of a host"):
        parse_pattern(text)


def test_one_address_that_is_not_public_spoils_the_name() -> None:
    policy = rules(egress=("a.example",))
    public = parse_address("93.184.215.14")
    assert policy.address_refusal("a.example", 443, [public]) is None
    assert policy.address_refusal("a.example", 443, [public, parse_address("10.0.0.1")])


def test_a_public_address_behind_nat64_is_public() -> None:
    assert rules().address_refusal("a.example", 443, [parse_address("64:ff9b::5db8:d70e")]) is None


def test_an_exception_by_name_opens_private_addresses_for_that_name_only() -> None:
    policy = rules(private=("mirror.example",))
    reserved = [parse_address("203.0.113.9")]
    assert policy.address_refusal("mirror.example", 443, reserved) is None
    assert policy.address_refusal("other.example", 443, reserved)
    assert rules().address_refusal("mirror.example", 443, reserved)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "169.254.169.254", "::1", "fe80::1", "::ffff:169.254.170.2", "fd00:ec2::254", "0.0.0.0"]
)
def test_an_exception_by_name_never_opens_the_machine_itself_or_the_metadata(address: str) -> None:
    policy = rules(private=("mirror.example",))
    assert policy.address_refusal("mirror.example", 443, [parse_address(address)])


def test_an_exception_by_network_opens_just_that_network() -> None:
    policy = rules(private=("203.0.113.0/24",))
    assert policy.address_refusal("any.example", 443, [parse_address("203.0.113.9")]) is None
    assert policy.address_refusal("any.example", 443, [parse_address("198.51.100.9")])


def test_hosts_are_taken_from_https_urls_with_names_in_them() -> None:
    urls = ["https://user:pw@a.example/simple", "https://b.example:8443", "http://c.example", "https://10.0.0.1", "x"]
    assert hosts_of(urls) == ["a.example:443", "b.example:8443"]


def test_ecosystems_are_known_by_the_files_of_the_base_commit() -> None:
    paths = ["README.md", "backend/requirements-dev.txt", "web/package.json", "crates/x/Cargo.toml", "docs/go.mod.md"]
    assert find_ecosystems(paths) == {"python", "node", "rust"}
