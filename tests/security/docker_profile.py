"""What Docker's default seccomp profile refuses to a container without added capabilities, as a filter of our making.

The profile is a list of what is allowed; this is its complement among the calls that either of us knows. Landlock,
`seccomp` itself (with listeners) and, since Linux 4.8, `ptrace` are allowed there.
"""

from __future__ import annotations

from errno import ENOSYS, EPERM
from socket import AF_VSOCK

from sandbox_task.isolation.confinement import bpf
from sandbox_task.isolation.confinement.bpf import ALLOW, Block, refuse
from sandbox_task.isolation.confinement.syscalls import MACHINES, NUMBERS

_ALLOWED = {
    *("chroot", "ioctl", "modify_ldt", "name_to_handle_at", "seccomp"),
    *("process_vm_readv", "process_vm_writev", "ptrace"),
}
_MORE = {
    "get_mempolicy": (239, 236),
    "mbind": (237, 235),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "process_madvise": (440, 440),
    "set_mempolicy": (238, 237),
    "sysfs": (139, None),
    "ustat": (136, None),
}
_NEW_NAMESPACES = 2114060288  # as the profile writes it
_PERSONALITIES = (0, 8, 0x20000, 0x20008, 0xFFFFFFFF)
FIRST_UNLISTED = 452  # profiles of a few years ago know none of the later calls


def docker_filter(machine: str) -> bytes:
    known = MACHINES[machine]
    numbers = {name: columns[known.column] for name, columns in {**NUMBERS, **_MORE}.items()}
    verdicts = {name: refuse(EPERM) for name in numbers if name not in _ALLOWED} | _by_argument()
    blocks = [bpf.if_equal(number, verdicts[name]) for name, number in numbers.items() if number and name in verdicts]
    rules = [instruction for block in blocks for instruction in block]
    unlisted = bpf.if_at_least(FIRST_UNLISTED, refuse(EPERM))
    return bpf.encode((*bpf.load(bpf.NUMBER), *unlisted, *rules, *ALLOW))


def _by_argument() -> dict[str, Block]:
    personalities = (instruction for value in _PERSONALITIES for instruction in bpf.if_equal(value, ALLOW))
    return {
        "clone": (*bpf.load(bpf.argument(0)), *bpf.if_any_bit(_NEW_NAMESPACES, refuse(EPERM)), *ALLOW),
        "clone3": refuse(ENOSYS),
        "personality": (*bpf.load(bpf.argument(0)), *personalities, *refuse(EPERM)),
        "socket": (*bpf.load(bpf.argument(0)), *bpf.if_equal(AF_VSOCK, refuse(EPERM)), *ALLOW),
    }
