"""Namespaces, and parts of the kernel that a coding task never needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.security.attacks import Attack, attempt, must_work, python

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox_task.isolation.wall import Wall
    from tests.security.attacks import Rights
    from tests.security.bare import NoWall


def _call(name: str, code: str, works_as: Rights = "worker") -> Attack:
    return Attack(name, python(f"{code}\nfired()"), works_as, kernel_may_refuse=True)


_NEW_USER = 0x10000000
_TERMINAL = """
import fcntl, pty
leader, follower = pty.openpty()
os.setsid() if os.fork() == 0 else (os.wait(), os._exit(0))
fcntl.ioctl(follower, 0x540E, 0)
"""
ATTACKS = [
    Attack("user namespace by a command", "unshare --user true && echo {mark} | rev", "worker", kernel_may_refuse=True),
    _call("user namespace by unshare", f"call(272, 97, {_NEW_USER})"),
    _call("user namespace by clone", f"call(56, 220, {_NEW_USER} | 17, 0, 0, 0, 0) or os._exit(0)"),
    _call(
        "user namespace by clone3",
        f"arguments = struct.pack('11Q', {_NEW_USER}, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)\n"
        "call(435, 435, arguments, ctypes.c_size_t(88)) or os._exit(0)",
    ),
    _call("another's namespace by setns", "call(308, 268, os.open('/proc/self/ns/net', 0), 0)", "supervisor"),
    _call("io_uring", "call(425, 425, 8, ctypes.create_string_buffer(120))"),
    _call("ptrace of a child", "call(101, 117, 0, 0, 0, 0)"),
    _call("keyring by keyctl", "call(250, 219, 0, -3, 1)"),
    _call("keyring by add_key", "call(248, 217, b'user', b'name', b'value', ctypes.c_size_t(5), -3)"),
    _call("bpf", "call(321, 280, 0, struct.pack('IIII12Q', 2, 4, 4, 1, *[0] * 12), 112)", "supervisor"),
    _call(
        "perf_event_open",
        "call(298, 241, struct.pack('IIQQQQQ', 1, 112, 0, 0, 0, 0, 1 << 5 | 1 << 6) + bytes(64), 0, -1, -1, 0)",
        "supervisor",
    ),
    _call("userfaultfd", "call(323, 282, 1)"),
    _call("mount", "call_to(errno.ENODEV, 165, 40, b'none', b'/mnt', b'no-such-system', 0, 0)", "supervisor"),
    _call("mount by fsopen", "call(430, 430, b'tmpfs', 0)", "supervisor"),
    _call("open_tree of a copy", "call(428, 428, -100, b'/', 1)", "supervisor"),
    _call("chroot", "call(161, 51, b'/')", "supervisor"),
    _call(
        "name_to_handle_at",
        "call(303, 264, -100, b'/usr', ctypes.create_string_buffer(struct.pack('Ii', 128, 0), 136), "
        "ctypes.byref(ctypes.c_int()), 0)",
    ),
    _call("kcmp", "call(312, 272, os.getpid(), os.getpid(), 0, 0, 0)"),
    _call("personality without randomisation", "call(135, 92, 0x0040000)"),
    _call(
        "a listener of one's own",
        "call(317, 277, 1, 8, struct.pack('HxxxxxxQ', 1, _ALLOW))".replace(
            "_ALLOW", "ctypes.addressof(ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0x7fff0000)))"
        ),
        "supervisor",
    ),
    _call("kernel log", "call(103, 116, 10, 0, 0)", "supervisor"),
    _call("host name", "call_to(errno.EINVAL, 170, 161, b'x', -1)", "supervisor"),
    _call("clock", "call_to(errno.EINVAL, 227, 112, 0, struct.pack('qq', 0, -1))", "supervisor"),
    *(
        _call(name, f"{_TERMINAL}call_to({error}, 16, 29, follower, ctypes.c_ulong({request}), b'x')")
        for name, request, error in (
            ("input for a terminal", "0x5412", "None"),
            ("input for a terminal, by a number that the kernel cuts off", "0x5412 | 1 << 32", "None"),
            ("input for the console", "0x541C", "errno.ENOTTY"),
            ("input for the console, by a number that the kernel cuts off", "0x541C | 7 << 32", "errno.ENOTTY"),
        )
    ),
    _call("vsock", "socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)"),
    _call("packets", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)", "supervisor"),
    _call("raw sockets", "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)", "supervisor"),
    _call("the kernel's ciphers", "socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)"),
    _call("the kernel's audit", "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9)"),
    _call(
        "calls of another architecture",
        """
import mmap
assert platform.machine() == "x86_64"
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20 (getpid); int 0x80; ret
run = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
assert run() == os.getpid()
""",
    ),
]


def _id(attack: Attack) -> str:
    return attack.name


@pytest.mark.parametrize("attack", ATTACKS, ids=_id)
def test_the_kernel_is_out_of_reach(wall: Wall, planted: dict[str, str], attack: Attack) -> None:
    outcome = attempt(wall, attack, planted)
    assert not outcome.succeeded, outcome.output


@pytest.mark.parametrize("attack", ATTACKS, ids=_id)
def test_the_attack_works_without_a_wall(
    no_wall: Callable[[Rights], NoWall], planted: dict[str, str], attack: Attack
) -> None:
    must_work(attempt(no_wall(attack.works_as), attack, planted), attack)


ORDINARY = {
    "threads and processes": "python3 -c 'import multiprocessing as m, threading\n"
    "threading.Thread(target=int).start()\nprint(m.Pool(2).map(abs, [-1]))'",
    "a server on loopback": 'python3 -c \'import socket\ns = socket.create_server(("127.0.0.1", 0))\n'
    'c = socket.create_connection(s.getsockname())\nc.sendall(b"x")\nprint(s.accept()[0].recv(1))\'',
    "git": "rm -rf r && git init -q r && cd r && git -c user.name=a -c user.email=b commit -q --allow-empty -m x",
    "a compiler": "echo 'int main() { return 0; }' > a.c && gcc -fsanitize=address a.c -o a && ./a",
    "node": 'node -e \'require("os").networkInterfaces(); new (require("worker_threads").Worker)("1", {eval: true})\'',
    "moving a file to another directory": 'python3 -c \'import os; os.makedirs("m/a", exist_ok=True); '
    'open("m/f", "w").close(); os.rename("m/f", "m/a/f")\'',
    "npm": "npm --version",
    "java": "java -version",
    "a pseudo-terminal": "script -qec 'stty size' /dev/null",
}


@pytest.mark.parametrize("command", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_programs_notice_nothing(wall: Wall, command: str) -> None:
    program = "gcc" if "gcc" in command else command.split(maxsplit=1)[0]
    output = bytearray()
    if not wall.run(f"command -v {program}", timeout=20, on_output=lambda _: None).succeeded:
        pytest.skip(f"{program} is not installed for the worker")
    done = wall.run(command, timeout=60, on_output=output.extend)
    assert done.succeeded, output.decode()
