"""The system calls that nothing behind the wall may make, as a seccomp program.

It refuses what reaches beyond a process or opens a large part of the kernel; ordinary programs do without all of it.
Of what a program can do without, it is told that it is not there (ENOSYS); of the rest, that it may not (EPERM).
"""

from __future__ import annotations

from errno import EAFNOSUPPORT, ENOSYS, EPERM, EPROTONOSUPPORT
from functools import cache
from socket import AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, IPPROTO_IP, IPPROTO_TCP, IPPROTO_UDP, SOCK_DGRAM, SOCK_STREAM

from sandbox_task.isolation.confinement import bpf
from sandbox_task.isolation.confinement.bpf import ALLOW, KILL, Block, refuse
from sandbox_task.isolation.confinement.syscalls import FIRST_UNKNOWN, MACHINES, NUMBERS, Machine
from sandbox_task.isolation.wall import WallError

_NOT_THERE = (
    *("io_uring_setup", "io_uring_enter", "io_uring_register"),
    "clone3",  # its flags lie in memory that a filter can't read; the C library then uses clone, whose flags it can
    "userfaultfd",
)
_MOUNTS = (
    *("mount", "umount2", "pivot_root", "chroot", "move_mount", "mount_setattr"),
    *("open_tree", "open_tree_attr", "fsopen", "fsconfig", "fsmount", "fspick"),
)
_NOT_PERMITTED = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd"),
    *("keyctl", "add_key", "request_key"),
    *("bpf", "perf_event_open", "fanotify_init", "lookup_dcookie", "syslog"),
    *("setns", *_MOUNTS),
    *("open_by_handle_at", "name_to_handle_at"),
    *("init_module", "finit_module", "delete_module", "create_module", "get_kernel_syms", "query_module"),
    *("kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "quotactl", "quotactl_fd", "acct", "nfsservctl"),
    *("settimeofday", "clock_settime", "sethostname", "setdomainname", "vhangup"),
    *("iopl", "ioperm", "modify_ldt", "uselib", "_sysctl"),
)

_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, -CGROUP, -UTS, -IPC, -USER, -PID, -NET
_NEW_TIME_NAMESPACE = 0x80  # only for unshare: among clone's flags these bits are a signal
_READ_PERSONALITY = 0xFFFFFFFF
_TERMINAL_INPUT = (0x5412, 0x541C, 0x541D, 0x5423)  # TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD
_NEW_LISTENER = 1 << 3  # a second listener could answer for the one that guards the network
_SOCKET_TYPE = 0xF
_NETLINK_ROUTE = 0  # how libraries list the interfaces


@cache
def base_filter(machine: str) -> bytes:
    """Raises WallError on a machine whose calls are not known."""
    if machine not in MACHINES:
        raise WallError(f"there is no system-call filter for the machine {machine}")
    return bpf.encode(_program(MACHINES[machine]))


def _program(machine: Machine) -> Block:
    plain = {name: refuse(ENOSYS) for name in _NOT_THERE} | {name: refuse(EPERM) for name in _NOT_PERMITTED}
    calls = plain | _namespaces() | _by_argument()
    return (*_head(machine), *bpf.if_at_least(FIRST_UNKNOWN, refuse(ENOSYS)), *_calls(machine, calls), *ALLOW)


def _head(machine: Machine) -> Block:
    """The numbers below mean what they say on this machine only."""
    foreign = bpf.if_at_least(machine.foreign_bit, refuse(ENOSYS)) if machine.foreign_bit else ()
    native = bpf.unless_equal(machine.audit_architecture, KILL)
    return (*bpf.load(bpf.ARCHITECTURE), *native, *bpf.load(bpf.NUMBER), *foreign)


def _calls(machine: Machine, verdicts: dict[str, Block]) -> Block:
    numbered = ((NUMBERS[name][machine.column], verdict) for name, verdict in verdicts.items())
    blocks = (bpf.if_equal(number, verdict) for number, verdict in numbered if number is not None)
    return tuple(instruction for block in blocks for instruction in block)


def _namespaces() -> dict[str, Block]:
    return {
        "clone": _unless_bits(0, _NEW_NAMESPACES),
        "unshare": _unless_bits(0, _NEW_NAMESPACES | _NEW_TIME_NAMESPACE),
    }


def _by_argument() -> dict[str, Block]:
    return {
        "personality": (*bpf.load(bpf.argument(0)), *_any_of((0, _READ_PERSONALITY), ALLOW), *refuse(EPERM)),
        "ioctl": (*bpf.load(bpf.argument(1)), *_any_of(_TERMINAL_INPUT, refuse(EPERM)), *ALLOW),
        "seccomp": _unless_bits(1, _NEW_LISTENER),
        "socket": _socket(),
    }


def _socket() -> Block:
    """Unix, TCP and UDP sockets, which egress has its own say about, and the list of interfaces."""
    protocol = (
        *bpf.load(bpf.argument(2)),
        *_any_of((IPPROTO_IP, IPPROTO_TCP, IPPROTO_UDP), ALLOW),
        *refuse(EPROTONOSUPPORT),
    )
    kind = (
        *bpf.load(bpf.argument(1)),
        *bpf.keep_bits(_SOCKET_TYPE),
        *_any_of((SOCK_STREAM, SOCK_DGRAM), protocol),
        *refuse(EPERM),
    )
    netlink = (*bpf.load(bpf.argument(2)), *bpf.if_equal(_NETLINK_ROUTE, ALLOW), *refuse(EPERM))
    return (
        *bpf.load(bpf.argument(0)),
        *bpf.if_equal(AF_UNIX, ALLOW),
        *bpf.if_equal(AF_NETLINK, netlink),
        *_any_of((AF_INET, AF_INET6), kind),
        *refuse(EAFNOSUPPORT),
    )


def _unless_bits(index: int, mask: int) -> Block:
    return (*bpf.load(bpf.argument(index)), *bpf.if_any_bit(mask, refuse(EPERM)), *ALLOW)


def _any_of(values: tuple[int, ...], then: Block) -> Block:
    return tuple(instruction for value in values for instruction in bpf.if_equal(value, then))
