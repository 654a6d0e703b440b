"""What a run may reach: what it needs and asks for, cut down to what the operator allows. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_network
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sandbox_task.isolation.egress.addresses import Address, Network, is_public, needs_a_network
from sandbox_task.isolation.egress.hosts import HTTPS, Pattern, is_name, is_number, parse_pattern, parse_patterns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True)
class Exceptions:
    """Where names may lead to although it is not public."""

    names: tuple[Pattern, ...] = ()
    networks: tuple[Network, ...] = ()

    def cover(self, host: str, port: int, address: Address) -> bool:
        if any(address.version == network.version and address in network for network in self.networks):
            return True
        return not needs_a_network(address) and any(name.matches(host, port) for name in self.names)


@dataclass(frozen=True)
class Policy:
    """Nothing is reachable unless it is both wanted by the run and allowed by the operator."""

    wanted: tuple[Pattern, ...] = ()
    allowed: tuple[Pattern, ...] = ()
    exceptions: Exceptions = Exceptions()

    def refusal(self, host: str, port: int) -> str | None:
        """Why a host can't be asked for; None if it can."""
        if is_number(host):
            return "addresses can't be used, only names"
        if not is_name(host):
            return "this is no name of a host"
        if not any(pattern.matches(host, port) for pattern in self.wanted):
            return f"port {port} of it is not among what this run may reach; `egress` in .sandpiper.yml can name it"
        if not any(pattern.matches(host, port) for pattern in self.allowed):
            return f"the operator does not allow port {port} of it"
        return None

    def address_refusal(self, host: str, port: int, addresses: Iterable[Address]) -> str | None:
        """Why what the name stands for can't be dialled. One bad address spoils the name."""
        for address in addresses:
            if not is_public(address) and not self.exceptions.cover(host, port, address):
                return "its name leads to an address that is not public"
        return None


def make_policy(
    *,
    ecosystems: Iterable[str],
    registries: Mapping[str, Iterable[str]],
    github_url: str,
    egress: Iterable[str],
    allowed: Iterable[str],
    private: Iterable[str],
) -> Policy:
    """`egress` is what the run and the base commit's options ask for. Raises ValueError that names what is wrong."""
    hosts = [host for ecosystem in sorted(ecosystems) for host in registries.get(ecosystem, ())]
    return Policy(
        wanted=parse_patterns([*hosts, *hosts_of([github_url]), *egress]),
        allowed=parse_patterns(allowed),
        exceptions=parse_exceptions(private),
    )


def hosts_of(urls: Iterable[str]) -> list[str]:
    """`host` or `host:port` of those https URLs that have a name in them."""
    parts = [urlsplit(url) for url in urls]
    named = [part for part in parts if part.scheme == "https" and is_name(part.hostname or "")]
    return [f"{part.hostname}:{part.port or HTTPS}" for part in named]


def parse_exceptions(texts: Iterable[str]) -> Exceptions:
    """Each is a network (`10.1.0.0/16`) or a pattern of names."""
    names, networks = [], []
    for text in texts:
        if "/" in text:
            networks.append(ip_network(text.strip()))
        else:
            names.append(parse_pattern(text))
    return Exceptions(tuple(names), tuple(networks))
