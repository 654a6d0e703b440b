"""Landlock: a process, and all that it starts from then on, gives up reaching certain files and others, for good.

Carried to B's interpreter (see `carrying`): Python 3.9.
"""

from __future__ import annotations

import stat
import struct

from sandbox_task.isolation.kernel import call
from sandbox_task.isolation.slim import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every machine
_ASK_FOR_VERSION, _BENEATH = 1, 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIRECTORY = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHARACTER_DEVICE, MAKE_BLOCK_DEVICE = 1 << 6, 1 << 11
MOVE_FILES, TRUNCATE, DEVICE_IOCTL = 1 << 13, 1 << 14, 1 << 15
READ = EXECUTE | READ_FILE | READ_DIRECTORY
CHANGE = ~(MAKE_CHARACTER_DEVICE | MAKE_BLOCK_DEVICE)
USE_DEVICE = READ_FILE | READ_DIRECTORY | WRITE_FILE | TRUNCATE | DEVICE_IOCTL
_OF_ONE_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | DEVICE_IOCTL
_RIGHTS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # how many rights on files a version knows
_SCOPES_SINCE = 6
_ABSTRACT_SOCKETS, _SIGNALS = 0b01, 0b10


def landlock_version() -> int:
    """0 where the kernel has none."""
    try:
        return call("syscall", _CREATE_RULESET, None, 0, _ASK_FOR_VERSION)
    except OSError:
        return 0


def knows_scopes() -> bool:
    return landlock_version() >= _SCOPES_SINCE


def close_files(version: int, places: Iterable[tuple[str, int]]) -> None:
    """Everything but these places, whatever their permissions say; and whoever stands outside."""
    handled = (1 << _RIGHTS_BY_VERSION[min(version, 5)]) - 1
    _restrict(handled, _ABSTRACT_SOCKETS | _SIGNALS if version >= _SCOPES_SINCE else 0, places)


def scope_signals() -> None:
    """From here on this process and all that it starts reach nobody else by signals, where the kernel knows how.

    Moving files from one directory to another is what every ruleset forbids unless it says otherwise."""
    _restrict(MOVE_FILES, _SIGNALS, [("/", MOVE_FILES)])


def _restrict(handled: int, scopes: int, places: Iterable[tuple[str, int]]) -> None:
    wanted = struct.pack("=3Q", handled, 0, scopes)
    ruleset = call("syscall", _CREATE_RULESET, wanted, len(wanted), 0)
    for place, rights in places:
        _open_place(ruleset, place, rights & handled)
    call("syscall", _RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _open_place(ruleset: int, place: str, rights: int) -> None:
    try:
        fd = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what B can't reach, or is not there, stays closed
    if not stat.S_ISDIR(os.fstat(fd).st_mode):
        rights &= _OF_ONE_FILE
    call("syscall", _ADD_RULE, ruleset, _BENEATH, struct.pack("=Qi", rights, fd), 0)
    os.close(fd)
