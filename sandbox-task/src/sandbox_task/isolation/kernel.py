"""Calls that only the C library offers, without `ctypes`: reading that would be a tenth of the time that the wall takes
to go up. Carried to B's interpreter (see `carrying`): Python 3.9.
"""

from __future__ import annotations

import struct
from _ctypes import FUNCFLAG_CDECL, FUNCFLAG_USE_ERRNO, CFuncPtr, _SimpleCData, dlopen, dlsym, get_errno

from sandbox_task.isolation.slim import os

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 36, 38
_SECCOMP_MODE_FILTER = 2


class _Int(_SimpleCData):  # type: ignore[type-arg] # no class takes one at run time
    _type_ = "i"


class _Long(_SimpleCData):  # type: ignore[type-arg] # no class takes one at run time
    _type_ = "l"


class _Address(_SimpleCData):  # type: ignore[type-arg] # no class takes one at run time
    _type_ = "z"


class _Function(CFuncPtr):
    _flags_ = FUNCFLAG_CDECL | FUNCFLAG_USE_ERRNO
    _restype_ = _Int


_LIBRARY = dlopen(None, 0)  # type: ignore[arg-type] # this program itself


def call(name: str, *arguments: int | bytes | None) -> int:
    """Bytes are given by their address. Raises OSError."""
    function = _Function(dlsym(_LIBRARY, name))
    result = function(*(_Long(argument) if isinstance(argument, int) else argument for argument in arguments))
    if result < 0:
        raise OSError(get_errno(), os.strerror(get_errno()))
    return int(result)


def filter_program(instructions: bytes) -> bytes:
    """How the kernel is told of a filter: its length and its address. `instructions` have to live until it is."""
    return struct.pack("=H6x", len(instructions) // 8) + bytes(_Address(instructions))


def refuse_calls(instructions: bytes) -> None:
    call("prctl", _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, filter_program(instructions), 0, 0)


def gain_no_privileges() -> None:
    call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def die_with_parent(number: int) -> None:
    """By this signal."""
    call("prctl", _PR_SET_PDEATHSIG, number, 0, 0, 0)


def adopt_orphans() -> None:
    """A process whose parent ends becomes this one's child, and not that of somebody who can't find it."""
    call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def close_to_others() -> None:
    """Processes of the same user can end this one, but neither read its memory nor use its descriptors."""
    call("prctl", _PR_SET_DUMPABLE, 0, 0, 0, 0)
