"""Ways out that are not A's doors: services of the machine, datagrams, Unix sockets, and a task's own credentials."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.security.attacks import Attack, attempt, must_work, python

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox_task.isolation.wall import Wall
    from tests.security.attacks import Rights
    from tests.security.bare import NoWall

_FAST_OPEN = 0x20000000
_MESSAGE = """
address = struct.pack("=H", 2) + struct.pack(">H", {port}) + socket.inet_aton("127.0.0.1") + bytes(8)
name, data = ctypes.create_string_buffer(address), ctypes.create_string_buffer(b"x")
vector = (ctypes.c_size_t * 2)(ctypes.addressof(data), 1)
header = struct.pack("PIxxxxPNPNixxxx", ctypes.addressof(name), 16, ctypes.addressof(vector), 1, 0, 0, 0)
"""


def _says(name: str, code: str, works_as: Rights = "worker") -> Attack:
    """The service answers with the secret; `s` is the socket that hears it."""
    hear = "s.settimeout(3)\nprint(s.recv(100).decode())"
    return Attack(name, python(f"{code}\n{hear}"), works_as, kernel_may_refuse="fast open" in name)


ATTACKS = [
    _says("a service of the machine", 's = socket.create_connection(("127.0.0.1", {tcp}))'),
    _says("by the address of nobody", 's = socket.create_connection(("0.0.0.0", {tcp}))'),
    _says(
        "by an address in another notation",
        's = socket.socket(socket.AF_INET6)\ns.connect(("::ffff:127.0.0.1", {tcp}))',
    ),
    _says(
        "without waiting",
        'import select\ns = socket.socket()\ns.setblocking(False)\ns.connect_ex(("127.0.0.1", {tcp}))\n'
        "select.select([], [s], [], 3)",
    ),
    _says(
        "by fast open",
        f's = socket.socket()\ns.sendto(b"x", {_FAST_OPEN}, ("127.0.0.1", {{tcp}}))',
    ),
    _says(
        "by fast open in a message",
        f's = socket.socket()\ns.sendmsg([b"x"], [], {_FAST_OPEN}, ("127.0.0.1", {{tcp}}))',
    ),
    _says(
        "by fast open among several messages",
        f"s = socket.socket()\n{_MESSAGE.replace('{port}', '{tcp}')}"
        f"call(307, 269, s.fileno(), ctypes.create_string_buffer(header + bytes(8)), 1, {_FAST_OPEN})",
    ),
    _says(
        "by a fast open that is asked for beforehand",
        's = socket.socket()\ns.setsockopt(6, 30, 1)\ns.connect(("127.0.0.1", {tcp}))\ns.send(b"x")',
    ),
    _says("a datagram", 's = socket.socket(2, socket.SOCK_DGRAM)\ns.sendto(b"x", ("127.0.0.1", {udp}))'),
    _says(
        "a datagram to a fixed target",
        's = socket.socket(2, socket.SOCK_DGRAM)\ns.connect(("127.0.0.1", {udp}))\ns.send(b"x")',
    ),
    _says(
        "a datagram among several messages",
        f"s = socket.socket(2, socket.SOCK_DGRAM)\n{_MESSAGE.replace('{port}', '{udp}')}"
        "call(307, 269, s.fileno(), ctypes.create_string_buffer(header + bytes(8)), 1, 0)",
    ),
    _says(
        "a name as a datagram to a resolver",
        "s = socket.socket(10, socket.SOCK_DGRAM)\n"
        'query = bytes.fromhex("000101000001000000000000") + b"\\6secret\\0\\0\\1"\n'
        's.sendto(query, ("::ffff:127.0.0.1", {udp}))',
    ),
    _says("a Unix socket by its path", 's = socket.socket(socket.AF_UNIX)\ns.connect("{unix}")'),
    _says("a Unix socket by its hidden name", 's = socket.socket(socket.AF_UNIX)\ns.connect("\\0{hidden}")'),
    _says(
        "a Unix socket by a link",
        'os.symlink("{unix}", "way-{mark}")\ns = socket.socket(socket.AF_UNIX)\ns.connect("way-{mark}")',
    ),
    _says(
        "a Unix socket from a child in a session of its own",
        's = socket.socket(socket.AF_UNIX)\nif os.fork() == 0:\n    os.setsid()\n    s.connect("{unix}")\n'
        "    os._exit(0)\nos.wait()",
    ),
]


@pytest.fixture(scope="module")
def services(open_dir: Path, planted: dict[str, str]) -> Iterator[dict[str, str]]:
    """Of the machine, that B has no business with. Whoever comes is told the secret."""
    secret = planted["secret"].encode()
    path, hidden = open_dir / "service.sock", f"sandpiper-service-{os.getpid()}"
    tcp = socket.create_server(("127.0.0.1", 0))
    tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 5)
    unix, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    unix.bind(str(path))
    path.chmod(0o777)
    abstract.bind(f"\0{hidden}")
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    streams = (tcp, unix, abstract)
    for listener in streams:
        listener.listen()
        threading.Thread(target=_tell_who_comes, args=(listener, secret), daemon=True).start()
    threading.Thread(target=_tell_who_writes, args=(udp, secret), daemon=True).start()
    ports = {"tcp": str(tcp.getsockname()[1]), "udp": str(udp.getsockname()[1])}
    yield {**planted, **ports, "unix": str(path), "hidden": hidden}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
        last.sendto(b"", udp.getsockname())
    for listener in streams:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _tell_who_comes(listener: socket.socket, secret: bytes) -> None:
    with contextlib.suppress(OSError):
        while True:
            peer, _ = listener.accept()
            with peer, contextlib.suppress(OSError):
                peer.sendall(secret)


def _tell_who_writes(udp: socket.socket, secret: bytes) -> None:
    with udp:
        while True:
            said, sender = udp.recvfrom(1000)
            if not said:
                return
            udp.sendto(secret, sender)


def _id(attack: Attack) -> str:
    return attack.name


@pytest.mark.parametrize("attack", ATTACKS, ids=_id)
def test_nothing_of_the_machine_answers(wall: Wall, services: dict[str, str], attack: Attack) -> None:
    outcome = attempt(wall, attack, services)
    assert not outcome.succeeded, outcome.output


@pytest.mark.parametrize("attack", ATTACKS, ids=_id)
def test_the_attack_works_without_a_wall(
    no_wall: Callable[[Rights], NoWall], services: dict[str, str], attack: Attack
) -> None:
    must_work(attempt(no_wall(attack.works_as), attack, services), attack)


def test_the_task_s_credentials_are_out_of_reach_for_who_knows_their_address() -> None:
    """On a network that is played, with a metadata service at its real address: see `metadata`."""
    if os.geteuid() != 0:
        pytest.skip("only root can play a network")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    play = ["unshare", "--net", sys.executable, "-m", "tests.security.metadata"]
    root = Path(__file__).parents[2]
    done = subprocess.run(play, cwd=root, env=environ, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["none", "reached", "uid", "refused", "bwrap", "refused"], done.stderr
