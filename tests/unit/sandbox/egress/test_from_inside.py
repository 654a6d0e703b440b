"""What B tries, with both walls. Each of these reaches its target when the wall is taken away."""

from __future__ import annotations

import os
import socket
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox_task.isolation import uid
from sandbox_task.isolation.choose import put_up_wall
from sandbox_task.isolation.egress.gateway import guard
from sandbox_task.isolation.egress.socket_filter import calls, program
from sandpiper.errors import RunError
from tests.unit.sandbox.egress.origin import NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox_task.isolation.egress.gateway import Passage
    from sandbox_task.isolation.launch import Rooms
    from tests.unit.sandbox.egress.conftest import Inside
    from tests.unit.sandbox.egress.origin import Origin

THROUGH_THE_PROXY = """
import os, socket
from urllib.parse import urlsplit
proxy = urlsplit(os.environ["https_proxy"])
s = socket.create_connection((proxy.hostname, proxy.port), timeout=10)
s.sendall(b"CONNECT {target} HTTP/1.1\\r\\n\\r\\n")
print(s.recv(1000).decode())
s.sendall(b"hello"); s.shutdown(socket.SHUT_WR)
print(s.recv(1000).decode())
"""


@pytest.fixture
def host_service() -> Iterator[int]:
    """A service of the machine that B has no business with: its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_listed_host_is_reached_through_the_proxy(inside: Inside, origin: Origin) -> None:
    said = inside.python(THROUGH_THE_PROXY.replace("{target}", f"{NAME}:{origin.port}"))
    assert "200 Connection established" in said
    assert "HELLO" in said


def test_an_ordinary_client_finds_the_proxy_by_itself_and_is_told_why_not(inside: Inside, origin: Origin) -> None:
    said = inside.shell(f"curl -sS --max-time 10 https://elsewhere.example:{origin.port}/ 2>&1")
    assert "403" in said
    assert [host for host, _ in inside.refusals] == ["elsewhere.example"]


def test_an_unlisted_host_and_an_address_are_refused(inside: Inside, origin: Origin) -> None:
    for target in (f"elsewhere.example:{origin.port}", f"127.0.0.1:{origin.port}", "169.254.169.254:80"):
        assert "403 Forbidden" in inside.python(THROUGH_THE_PROXY.replace("{target}", target))
    assert origin.visits == 0


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::ffff:127.0.0.1"])
def test_a_service_of_the_machine_is_not_reached_directly(inside: Inside, origin: Origin, address: str) -> None:
    script = f"""
    import socket
    s = socket.socket(socket.AF_INET6 if ":" in {address!r} else socket.AF_INET)
    s.settimeout(5)
    print(s.connect_ex(({address!r}, {origin.port})))
    """
    assert inside.python(script).strip() in {"13", "111"}
    assert origin.visits == 0


@pytest.mark.parametrize("address", ["169.254.169.254", "169.254.170.2", "192.0.2.1", "198.51.100.1"])
def test_addresses_elsewhere_are_refused_at_once(inside: Inside, address: str) -> None:
    script = f"""
    import socket
    s = socket.socket(); s.settimeout(5)
    print(s.connect_ex(({address!r}, 80)))
    s = socket.socket(); s.setblocking(False)
    print(s.connect_ex(({address!r}, 80)))
    """
    assert set(inside.python(script).split()) <= {"13", "101"}


def test_nothing_goes_out_by_udp_or_with_the_dns(inside: Inside) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(0.2)
        script = f"""
        import socket
        for attempt in range(3):
            try:
                s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                if attempt == 0: s.sendto(b"secret", ("127.0.0.1", {receiver.getsockname()[1]}))
                if attempt == 1: s.sendmsg([b"secret"], [], 0, ("127.0.0.1", {receiver.getsockname()[1]}))
                if attempt == 2: s.connect(("127.0.0.1", {receiver.getsockname()[1]})); s.send(b"secret")
            except OSError as error:
                print(error)
        try:
            print(socket.getaddrinfo("secret.example", 80))
        except OSError as error:
            print("no name:", error)
        """
        assert "no name:" in inside.python(script)
        with pytest.raises(TimeoutError):
            receiver.recv(100)


def test_tcp_fast_open_does_not_carry_a_target_past_the_wall(inside: Inside, host_service: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 5)
        listener.settimeout(0.3)
        script = f"""
        import socket
        target = ("127.0.0.1", {listener.getsockname()[1]})
        for send in ("sendto", "sendmsg"):
            s = socket.socket()
            try:
                if send == "sendto": print(s.sendto(b"x", 0x20000000, target))
                else: print(s.sendmsg([b"x"], [], 0x20000000, target))
            except OSError as error:
                print(send, error.errno)
        """
        inside.python(script)
        with pytest.raises(TimeoutError):
            listener.accept()


@pytest.mark.parametrize(
    "kind",
    ["40, 1, 0", "16, 3, 16", "16, 3, 15", "2, 1, 262", "2, 2, 0"],
    ids=["vsock", "generic netlink", "uevents", "multipath tcp", "udp"],
)
def test_other_kinds_of_socket_are_refused(inside: Inside, kind: str) -> None:
    """In a namespace the ones that are left lead nowhere."""
    if inside.wall.backend == "bwrap":
        pytest.skip("the base filter's business: its network is empty")
    said = inside.python(
        f"import socket\ntry: print(socket.socket({kind}))\nexcept OSError as e: print('errno', e.errno)"
    )
    assert said.startswith("errno")


def test_io_uring_does_not_do_it_unseen(inside: Inside) -> None:
    if inside.wall.backend == "bwrap":
        pytest.skip("the base filter's business: its network is empty")
    script = """
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    print(libc.syscall(425, 8, ctypes.create_string_buffer(256)), ctypes.get_errno())
    """
    assert inside.python(script).split() in (["-1", "1"], ["-1", "38"])  # not permitted, or not there at all


def test_unix_sockets_of_others_are_refused_named_or_abstract(inside: Inside, open_dir: Path) -> None:
    path, hidden = str(open_dir / "service.sock"), f"\0sandpiper-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as named, socket.socket(socket.AF_UNIX) as abstract:
        named.bind(path)
        Path(path).chmod(0o777)
        abstract.bind(hidden)
        for listener in (named, abstract):
            listener.listen()
            listener.settimeout(0.3)
        script = f"""
        import socket
        for path in ({path!r}, {hidden!r}):
            s = socket.socket(socket.AF_UNIX)
            print(s.connect_ex(path))
            try: s.send(b"secret")
            except OSError as e: print("not sent")
        """
        said = inside.python(script).split("\n")
        assert said.count("not sent") == 2
        assert "0" not in said


def test_its_own_servers_are_reached_as_ever(inside: Inside) -> None:
    script = """
    import asyncio, os, socket, tempfile, threading
    def check(family, bound, to):
        with socket.socket(family) as l:
            l.bind(bound); l.listen()
            target = (to, *l.getsockname()[1:]) if to else l.getsockname()
            with socket.socket(family) as c:
                c.settimeout(5); c.connect(target)
                s, _ = l.accept()
                s.sendall(b"hi"); print(c.recv(2), c.gettimeout()); s.close()
    check(socket.AF_INET, ("127.0.0.1", 0), None)
    check(socket.AF_INET, ("0.0.0.0", 0), "127.0.0.1")
    check(socket.AF_INET6, ("::1", 0), None)
    os.chdir(tempfile.mkdtemp())
    check(socket.AF_UNIX, "relative.sock", None)
    check(socket.AF_UNIX, "\\0abstract-of-mine", None)
    async def main():
        server = await asyncio.start_server(lambda r, w: (w.write(b"async"), w.close()), "127.0.0.1", 0)
        r, w = await asyncio.open_connection(*server.sockets[0].getsockname())
        print(await r.read()); w.close(); server.close()
    asyncio.run(main())
    with socket.socket() as s: s.bind(("127.0.0.1", 0)); print(socket.socket().connect_ex(s.getsockname()))
    """
    assert inside.python(script).split("\n") == [*["b'hi' 5.0"] * 5, "b'async'", "111", ""]


def test_a_blocking_connection_waits_for_a_busy_server_and_the_rest_goes_on(inside: Inside) -> None:
    script = """
    import socket, threading, time
    l = socket.create_server(("127.0.0.1", 0), backlog=0)
    busy = []
    def connect():
        s = socket.socket(); s.connect(l.getsockname()); s.sendall(b"x"); busy.append(s)
    threads = [threading.Thread(target=connect) for _ in range(4)]
    for t in threads: t.start()
    time.sleep(0.3)
    other = socket.create_server(("127.0.0.1", 0))
    socket.create_connection(other.getsockname(), timeout=5)
    for _ in range(4): print(l.accept()[0].recv(1))
    for t in threads: t.join()
    print(len(busy))
    """
    assert inside.python(script).split() == [*["b'x'"] * 4, "4"]


def test_an_address_that_changes_while_it_is_looked_at_leads_nowhere_else(inside: Inside, origin: Origin) -> None:
    """One thread writes the forbidden port over the allowed one all the time."""
    script = f"""
    import ctypes, socket, struct, sys, threading
    sys.setswitchinterval(1e-6)
    libc = ctypes.CDLL(None)
    own = socket.create_server(("127.0.0.1", 0), backlog=512)
    def address(port): return struct.pack("=H", 2) + struct.pack(">H", port) + socket.inet_aton("127.0.0.1") + bytes(8)
    buffer = ctypes.create_string_buffer(address(own.getsockname()[1]), 16)
    good, bad = address(own.getsockname()[1]), address({origin.port})
    going = True
    def flip():
        while going:
            ctypes.memmove(buffer, bad, 16); ctypes.memmove(buffer, good, 16)
    thread = threading.Thread(target=flip); thread.start()
    for _ in range(500):
        s = socket.socket(); s.setblocking(False)
        libc.connect(s.fileno(), buffer, 16); s.close()
    going = False; thread.join()
    print("done")
    """
    assert inside.python(script) == "done\n"
    assert origin.visits == 0


def test_a_socket_that_is_connected_stays_so(inside: Inside) -> None:
    script = """
    import socket
    l = socket.create_server(("127.0.0.1", 0))
    c = socket.create_connection(l.getsockname()); s, _ = l.accept()
    print(c.connect_ex(l.getsockname())); s.sendall(b"still"); print(c.recv(5))
    """
    assert inside.python(script).split() == ["106", "b'still'"]


def test_who_kills_the_broker_gets_no_network_for_it(inside: Inside, origin: Origin) -> None:
    if inside.wall.backend == "bwrap":
        pytest.skip("there is none")
    script = f"""
    import os, signal, socket
    def parent(pid): return int(open(f"/proc/{{pid}}/stat").read().rpartition(")")[2].split()[1])
    pid, chain = os.getpid(), []
    while pid > 1:
        pid = parent(pid); chain.append(pid)
    for pid in chain:
        try:
            if os.stat(f"/proc/{{pid}}").st_uid == 0: os.kill(pid, signal.SIGKILL)
        except OSError: pass
    s = socket.socket(); s.settimeout(5)
    print(s.connect_ex(("127.0.0.1", {origin.port})))
    open("alive", "w").write("yes")
    """
    inside.python(script)
    assert origin.visits == 0
    assert inside.shell("echo back") == "back\n"
    said = inside.python(THROUGH_THE_PROXY.replace("{target}", f"{NAME}:{origin.port}"))
    assert "HELLO" in said


def test_the_broker_can_be_neither_read_nor_robbed(inside: Inside) -> None:
    if inside.wall.backend == "bwrap":
        pytest.skip("there is none")
    script = """
    import os
    parent = lambda pid: int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
    pid = os.getpid()
    for _ in range(4):
        pid = parent(pid)
        for place in (f"/proc/{pid}/fd", f"/proc/{pid}/environ", f"/proc/{pid}/mem"):
            try:
                print(os.listdir(place) if place.endswith("fd") else open(place, "rb").read(1))
            except OSError as error:
                print("denied")
    """
    lines = inside.python(script).split("\n")[:-1]
    assert len(lines) == 12
    assert lines[3:] == ["denied"] * 9  # the first three are the shell's own


def test_the_doors_are_there_again_behind_a_new_wall(inside: Inside, origin: Origin) -> None:
    inside.shell("kill -9 $PPID; kill -9 -1")
    said = inside.python(THROUGH_THE_PROXY.replace("{target}", f"{NAME}:{origin.port}"))
    assert "HELLO" in said


def test_many_connections_at_once_all_arrive(inside: Inside, origin: Origin) -> None:
    script = THROUGH_THE_PROXY.replace("{target}", f"{NAME}:{origin.port}")
    results: list[str] = []
    inside.wall.write_file("attempt.py", script.encode())
    threads = [threading.Thread(target=lambda: results.append(inside.shell("python3 attempt.py"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ["HELLO" in result for result in results] == [True] * 8


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_a_kernel_that_can_not_close_the_network_gets_no_wall(rooms: Rooms, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second listener for the same process is what every kernel refuses."""

    def occupied(doors: list[int], env: dict[str, str]) -> Passage:
        passage, names = guard(doors, env), calls()
        first = f"passage.install({names.seccomp}, {program(names)!r})"
        return replace(passage, before=f"{first} and {passage.before}")

    monkeypatch.setattr(uid, "guard", occupied)
    with pytest.raises(RunError, match="the kernel can't close the network to commands"):
        put_up_wall("uid", rooms, tools=None, worker_uid=10002)
