"""What the executor's process does to itself before it hears of anything foreign; it holds for all that it starts.

It is given to the interpreter as text (see `executor`): standard library only, Python 3.9, already as B.
"""

# Importing pathlib would be half of the time that the wall takes to go up.
# ruff: noqa: PTH103, PTH123

from __future__ import annotations

import base64
import ctypes
import os
import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same numbers on every machine
ASK_FOR_VERSION = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIRECTORY = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHARACTER_DEVICE, MAKE_BLOCK_DEVICE = 1 << 6, 1 << 11
TRUNCATE, DEVICE_IOCTL = 1 << 14, 1 << 15
READ = EXECUTE | READ_FILE | READ_DIRECTORY
CHANGE = ~(MAKE_CHARACTER_DEVICE | MAKE_BLOCK_DEVICE)
USE_DEVICE = READ_FILE | READ_DIRECTORY | WRITE_FILE | TRUNCATE | DEVICE_IOCTL
OF_ONE_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | DEVICE_IOCTL
RIGHTS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # how many rights on files a version of Landlock knows
SCOPES_SINCE = 6
ABSTRACT_SOCKETS_AND_SIGNALS = 0b11

standing: list[str] = []


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


class Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("place", ctypes.c_int32))


def confine(wanted: Mapping[str, Any]) -> None:
    """Raises OSError; then there is no executor. `standing` says afterwards which walls there are."""
    limit(wanted["limits"])
    os.makedirs(wanted["temporary"], 0o700, exist_ok=True)
    die_first()
    version = landlock_version()
    if version > 0:
        close_files(version, wanted["readable"], wanted["writable"], wanted["devices"])
        standing.append(f"landlock {version}")
    refuse_calls(base64.b64decode(wanted["filter"]))
    standing.append("seccomp")


def limit(limits: Mapping[str, int]) -> None:
    """Never above what the container itself is held to."""
    for name, wanted in limits.items():
        kind = getattr(resource, "RLIMIT_" + name)
        hard = resource.getrlimit(kind)[1]
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (value, value))


def die_first() -> None:
    """When memory runs out, the kernel ends a process from behind the wall and never the supervisor."""
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")


def landlock_version() -> int:
    """0 or less where the kernel has none."""
    return int(LIBC.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ASK_FOR_VERSION))


def close_files(version: int, readable: Iterable[str], writable: Iterable[str], devices: Iterable[str]) -> None:
    """Everything but these places, whatever their permissions say; and whoever stands outside."""
    handled = (1 << RIGHTS_BY_VERSION[min(version, 5)]) - 1
    scopes = ABSTRACT_SOCKETS_AND_SIGNALS if version >= SCOPES_SINCE else 0
    rules = Ruleset(handled, 0, scopes)
    ruleset = called(CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(ctypes.sizeof(rules)), 0)
    for places, rights in ((readable, READ), (writable, CHANGE), (devices, USE_DEVICE)):
        for place in places:
            open_place(ruleset, place, rights & handled)
    called(RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def open_place(ruleset: int, place: str, rights: int) -> None:
    try:
        fd = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what B can't reach, or is not there, stays closed
    if not os.path.isdir(place):  # noqa: PTH112 - see above
        rights &= OF_ONE_FILE
    rule = Beneath(rights, fd)
    called(ADD_RULE, ruleset, 1, ctypes.byref(rule), 0)
    os.close(fd)


def refuse_calls(instructions: bytes) -> None:
    program = Program(len(instructions) // 8, instructions)
    if LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "the system-call filter can't be installed")


def called(number: int, *arguments: Any) -> int:
    result = int(LIBC.syscall(number, *arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), "Landlock: " + os.strerror(ctypes.get_errno()))
    return result
