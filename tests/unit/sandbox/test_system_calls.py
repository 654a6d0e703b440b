from __future__ import annotations

import errno
import re
import socket
from pathlib import Path

import pytest

from sandbox_task.isolation.confinement.bpf import decode
from sandbox_task.isolation.confinement.filter import base_filter
from sandbox_task.isolation.confinement.syscalls import MACHINES, NUMBERS
from sandbox_task.isolation.wall import WallError
from tests.security.docker_profile import docker_filter
from tests.unit.sandbox.bpf_machine import verdict

HEADER = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
EPERM, ENOSYS = f"errno {errno.EPERM}", f"errno {errno.ENOSYS}"
NO_FAMILY, NO_PROTOCOL = f"errno {errno.EAFNOSUPPORT}", f"errno {errno.EPROTONOSUPPORT}"
CLOEXEC, HIGH = 0o2000000, 1 << 32
THREAD = 0x3D0F00  # what the C library creates a thread with
FORK = 0x01200011

PLAIN = [
    *((name, ENOSYS) for name in ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "userfaultfd")),
    *((name, EPERM) for name in ("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd")),
    *((name, EPERM) for name in ("keyctl", "add_key", "request_key", "bpf", "perf_event_open", "syslog")),
    *((name, EPERM) for name in ("mount", "umount2", "pivot_root", "chroot", "setns", "move_mount", "open_tree")),
    *((name, EPERM) for name in ("fsopen", "fsmount", "fsconfig", "fspick", "mount_setattr", "open_tree_attr")),
    *((name, EPERM) for name in ("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module")),
    *((name, EPERM) for name in ("reboot", "swapon", "swapoff", "quotactl", "quotactl_fd", "acct")),
    *((name, EPERM) for name in ("open_by_handle_at", "name_to_handle_at", "settimeofday", "clock_settime")),
]
BY_ARGUMENT = [
    ("clone", (FORK,), "allow"),
    ("clone", (THREAD,), "allow"),
    *(("clone", (flag | FORK,), EPERM) for flag in (0x20000, *(1 << bit for bit in range(25, 31)))),
    ("clone", (HIGH | 0x10000000,), EPERM),
    ("unshare", (0x400,), "allow"),  # CLONE_FILES
    *(("unshare", (flag,), EPERM) for flag in (0x80, 0x20000, *(1 << bit for bit in range(25, 31)))),
    ("personality", (0,), "allow"),
    ("personality", (0xFFFFFFFF,), "allow"),
    ("personality", (0x0040000,), EPERM),  # no address randomisation
    ("ioctl", (0, 0x5401), "allow"),  # TCGETS
    ("ioctl", (0, 0x5412), EPERM),  # TIOCSTI
    ("ioctl", (0, HIGH | 0x5412), EPERM),  # the kernel drops the high half, too
    ("ioctl", (0, 0x541C), EPERM),  # TIOCLINUX
    ("seccomp", (1, 0), "allow"),
    ("seccomp", (1, 8), EPERM),  # a listener of one's own
    ("socket", (socket.AF_UNIX, socket.SOCK_STREAM | CLOEXEC, 0), "allow"),
    ("socket", (socket.AF_INET, socket.SOCK_STREAM | CLOEXEC, 0), "allow"),
    ("socket", (socket.AF_INET6, socket.SOCK_DGRAM, socket.IPPROTO_UDP), "allow"),
    ("socket", (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP), EPERM),
    ("socket", (socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP), NO_PROTOCOL),
    ("socket", (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP), NO_PROTOCOL),
    ("socket", (socket.AF_NETLINK, socket.SOCK_RAW, 0), "allow"),
    ("socket", (socket.AF_NETLINK, socket.SOCK_RAW, 12), EPERM),  # netfilter
    ("socket", (socket.AF_PACKET, socket.SOCK_RAW, 3), NO_FAMILY),
    ("socket", (socket.AF_VSOCK, socket.SOCK_STREAM, 0), NO_FAMILY),
    ("socket", (socket.AF_ALG, socket.SOCK_SEQPACKET, 0), NO_FAMILY),
    ("socket", (HIGH | socket.AF_VSOCK, socket.SOCK_STREAM, 0), NO_FAMILY),
]
ORDINARY = {  # read, openat, execve, futex, kill, connect
    "x86_64": (0, 257, 59, 202, 62, 42),
    "aarch64": (63, 56, 221, 98, 129, 203),
}


@pytest.fixture(params=sorted(MACHINES))
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def decided(machine: str, name: str, arguments: tuple[int, ...] = ()) -> str:
    known = MACHINES[machine]
    number = NUMBERS[name][known.column]
    assert number is not None
    program = decode(base_filter(machine))
    return verdict(program, architecture=known.audit_architecture, number=number, arguments=arguments)


@pytest.mark.parametrize(("name", "expected"), PLAIN)
def test_calls_that_reach_beyond_a_process_are_refused(machine: str, name: str, expected: str) -> None:
    assert decided(machine, name) == expected


@pytest.mark.parametrize(("name", "arguments", "expected"), BY_ARGUMENT)
def test_calls_with_good_and_bad_uses_are_told_apart_by_their_arguments(
    machine: str, name: str, arguments: tuple[int, ...], expected: str
) -> None:
    assert decided(machine, name, arguments) == expected


def test_what_ordinary_programs_call_is_allowed(machine: str) -> None:
    program, known = decode(base_filter(machine)), MACHINES[machine]
    for number in ORDINARY[machine]:
        assert verdict(program, architecture=known.audit_architecture, number=number) == "allow"


def test_every_call_that_is_named_is_decided(machine: str) -> None:
    """No name in the table that the filter forgets: with all bits set in its arguments each is refused."""
    program, known = decode(base_filter(machine)), MACHINES[machine]
    for name, numbers in NUMBERS.items():
        if (number := numbers[known.column]) is not None:
            arguments = (0x5412,) * 6 if name == "ioctl" else (0xFFFFFFF8,) * 6
            said = verdict(program, architecture=known.audit_architecture, number=number, arguments=arguments)
            assert said.startswith("errno"), name


def test_a_call_that_is_newer_than_the_filter_does_not_exist(machine: str) -> None:
    program, known = decode(base_filter(machine)), MACHINES[machine]
    assert verdict(program, architecture=known.audit_architecture, number=470) == ENOSYS
    assert verdict(program, architecture=known.audit_architecture, number=0xFFFFFFFF) == ENOSYS


def test_calls_of_another_architecture_end_the_process(machine: str) -> None:
    i386 = 0x40000003
    assert verdict(decode(base_filter(machine)), architecture=i386, number=20) == "kill"


def test_the_second_interface_of_x86_does_not_exist() -> None:
    program = decode(base_filter("x86_64"))
    x32_ptrace = 0x40000000 | 521
    assert verdict(program, architecture=MACHINES["x86_64"].audit_architecture, number=x32_ptrace) == ENOSYS


def test_the_container_that_is_played_refuses_what_docker_refuses(machine: str) -> None:
    program, known = decode(docker_filter(machine)), MACHINES[machine]

    def said(name: str, *arguments: int) -> str:
        number = NUMBERS[name][known.column]
        assert number is not None
        return verdict(program, architecture=known.audit_architecture, number=number, arguments=arguments)

    assert {said("clone", 0x10000000), said("socket", socket.AF_VSOCK), said("personality", 0x0040000)} == {EPERM}
    refused = ("unshare", "setns", "mount", "keyctl", "add_key", "bpf", "perf_event_open", "userfaultfd", "kcmp")
    more = ("io_uring_setup", "pidfd_getfd", "fsopen", "open_by_handle_at")
    assert {said(name) for name in (*refused, *more)} == {EPERM}
    assert said("clone3") == ENOSYS
    assert {said("ptrace"), said("seccomp", 1, 8), said("clone", FORK), said("socket", socket.AF_INET)} == {"allow"}
    landlock, pidfd_open, first_unlisted = 444, 434, 452
    numbers = (landlock, pidfd_open, first_unlisted)
    verdicts = [verdict(program, architecture=known.audit_architecture, number=number) for number in numbers]
    assert verdicts == ["allow", "allow", EPERM]


def test_a_program_ends_in_a_verdict_and_fits_the_kernel(machine: str) -> None:
    program = decode(base_filter(machine))
    assert program[-1].code == 0x06
    assert len(program) < 4096


def test_an_unknown_machine_is_refused() -> None:
    with pytest.raises(WallError, match="no system-call filter for the machine riscv64"):
        base_filter("riscv64")


def test_the_numbers_are_the_kernel_s() -> None:
    if not HEADER.exists():
        pytest.skip("the kernel's headers for x86_64 are not installed")
    known = {name: int(number) for name, number in re.findall(r"__NR_(\w+) (\d+)", HEADER.read_text(encoding="utf-8"))}
    ours = {name: numbers[0] for name, numbers in NUMBERS.items() if name in known}
    assert ours == {name: known[name] for name in ours}
    assert len(ours) > 50
