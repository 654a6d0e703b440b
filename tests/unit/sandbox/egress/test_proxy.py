from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from sandpiper import limits
from tests.unit.sandbox.egress.origin import NAME, Origin, Outside, policy

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def origin() -> Iterator[Origin]:
    with Origin() as origin:
        yield origin


@pytest.fixture
def outside(origin: Origin) -> Iterator[Outside]:
    with Outside(policy(origin)) as outside:
        yield outside


def test_a_listed_host_is_reached_and_can_answer_after_the_client_has_said_all(
    outside: Outside, origin: Origin
) -> None:
    answer = outside.ask(f"CONNECT {NAME}:{origin.port} HTTP/1.1\r\n\r\n".encode() + b"hello")
    assert answer == b"HTTP/1.1 200 Connection established\r\n\r\nHELLO"
    assert outside.refusals == []


def test_much_data_arrives_whole(outside: Outside, origin: Origin) -> None:
    sent = b"x" * 5_000_000
    answer = outside.ask(f"CONNECT {NAME}:{origin.port} HTTP/1.1\r\n\r\n".encode() + sent)
    assert answer.partition(b"\r\n\r\n")[2] == sent.upper()


def test_an_unlisted_host_is_refused_in_words_before_its_name_is_looked_up(outside: Outside, origin: Origin) -> None:
    answer = outside.connect(f"elsewhere.example:{origin.port}")
    assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert b"elsewhere.example can't be reached: port" in answer
    assert outside.lookups == []
    assert [host for host, _ in outside.refusals] == ["elsewhere.example"]


def test_a_listed_host_is_refused_on_another_port(outside: Outside, origin: Origin) -> None:
    assert outside.connect(f"{NAME}:{origin.port + 1}").startswith(b"HTTP/1.1 403")
    assert outside.connect(f"{NAME}:22").startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0x7f.1", "127.0.0.1.", "1.2.3.0x4"),
        *("[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[fe80::1%25eth0]", "169.254.169.254"),
    ],
)
def test_an_address_in_any_notation_is_refused_even_if_everything_is_allowed(origin: Origin, host: str) -> None:
    with Outside(policy(origin, egress=[f"*:{origin.port}"])) as outside:
        answer = outside.connect(f"{host}:{origin.port}")
    assert answer.startswith(b"HTTP/1.1 403")
    assert (outside.lookups, origin.visits) == ([], 0)


@pytest.mark.parametrize("host", [f"{NAME}.", f".{NAME}", f"user@{NAME}", f"{NAME}%00", f"{NAME}:1", "", "a..b", "-"])
def test_what_is_no_plain_name_is_refused(origin: Origin, host: str) -> None:
    with Outside(policy(origin, egress=[f"*:{origin.port}"])) as outside:
        assert outside.connect(f"{host}:{origin.port}").startswith((b"HTTP/1.1 403", b"HTTP/1.1 400"))
    assert (outside.lookups, origin.visits) == ([], 0)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "169.254.170.2", "100.64.0.1"),
        *("0.0.0.0", "224.0.0.1", "240.0.0.1", "255.255.255.255", "203.0.113.7", "168.63.129.16", "192.88.99.1"),
        *("::1", "::", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "fec0::1", "::ffff:127.0.0.1"),
        *("::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::1"),
        *("2001::1", "2001:db8::1", "::127.0.0.1"),
    ],
)
def test_a_name_that_leads_to_an_address_that_is_not_public_is_refused(origin: Origin, address: str) -> None:
    with Outside(policy(origin, private=()), {NAME: [address]}) as outside:
        answer = outside.connect(f"{NAME}:{origin.port}")
    assert b"its name leads to an address that is not public" in answer
    assert origin.visits == 0


def test_the_name_is_looked_up_once_so_that_it_can_not_change_after_the_check(origin: Origin) -> None:
    with Outside(policy(origin)) as outside:
        outside.connect(f"{NAME}:{origin.port}")
    assert (outside.lookups, origin.visits) == ([NAME], 1)


def test_a_name_that_nobody_knows_and_a_host_that_is_away_are_told_apart(origin: Origin) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    book = {"away.example": ["127.0.0.1"]}
    rules = policy(origin, egress=[f"away.example:{port}", f"unknown.example:{port}"])
    allowed = policy(origin, egress=[f"*:{port}"]).wanted
    with Outside(type(rules)(rules.wanted, allowed, rules.exceptions), book) as outside:
        assert b"it does not answer" in outside.connect(f"away.example:{port}")
        assert b"its name is not known" in outside.connect(f"unknown.example:{port}")


def test_each_refusal_is_reported_once_and_their_number_is_bounded(
    outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        outside.connect("elsewhere.example:443")
    assert len(outside.refusals) == 1
    monkeypatch.setattr(limits, "EGRESS_REPORTED", 5)
    for number in range(10):
        outside.connect(f"n{number}.example:443")
    assert len(outside.refusals) == 5


def test_plain_http_is_refused_in_words(outside: Outside, origin: Origin) -> None:
    answer = outside.ask(f"GET http://{NAME}:{origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 403")
    assert b"only https" in answer
    assert origin.visits == 0


@pytest.mark.parametrize(
    "noise", [b"\x16\x03\x01 hello\r\n\r\n", b"CONNECT\r\n\r\n", b"CONNECT a:b:c HTTP/1.1\r\n\r\n"]
)
def test_what_is_no_request_is_refused(outside: Outside, noise: bytes) -> None:
    assert outside.ask(noise).startswith((b"HTTP/1.1 400", b"HTTP/1.1 403"))


def test_a_head_without_an_end_is_refused(outside: Outside) -> None:
    answer = outside.ask(b"CONNECT a:443 HTTP/1.1\r\nx: " + b"y" * limits.EGRESS_HEAD_BYTES)
    assert b"too long" in answer


def test_a_client_that_says_nothing_is_sent_away(outside: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EGRESS_HEAD_SECONDS", 0.1)
    with socket.create_connection(("127.0.0.1", outside.port), timeout=10) as client:
        assert b"too slow" in client.recv(1 << 16)


def test_a_silent_connection_is_ended(outside: Outside, origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EGRESS_IDLE_SECONDS", 0.1)
    with socket.create_connection(("127.0.0.1", outside.port), timeout=10) as client:
        client.sendall(f"CONNECT {NAME}:{origin.port} HTTP/1.1\r\n\r\n".encode())
        while client.recv(1 << 16):
            pass


def test_more_connections_than_the_bound_are_turned_away(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EGRESS_CONNECTIONS", 1)
    with (
        Outside(policy(origin)) as outside,
        socket.create_connection(("127.0.0.1", outside.port)),
        socket.create_connection(("127.0.0.1", outside.port), timeout=10) as second,
    ):
        assert b"too many connections are open" in second.recv(1 << 16)


def test_closing_ends_what_is_open(outside: Outside, origin: Origin) -> None:
    with socket.create_connection(("127.0.0.1", outside.port), timeout=10) as client:
        client.sendall(f"CONNECT {NAME}:{origin.port} HTTP/1.1\r\n\r\n".encode())
        client.recv(1 << 16)
        outside.proxy.close()
        assert client.recv(1 << 16) == b""


def test_a_new_policy_counts_from_the_next_connection_on(outside: Outside, origin: Origin) -> None:
    outside.proxy.policy = policy(origin, egress=())
    assert outside.connect(f"{NAME}:{origin.port}").startswith(b"HTTP/1.1 403")
