"""A classic BPF machine, small and without mercy: it runs a filter on a made-up system call and says what comes out."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandbox_task.isolation.confinement.bpf import Instruction

_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


def verdict(program: Sequence[Instruction], *, architecture: int, number: int, arguments: Sequence[int] = ()) -> str:
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, architecture, 0, *padded)
    return _words(_run(program, data))


def _run(program: Sequence[Instruction], data: bytes) -> int:
    position, accumulator = 0, 0
    while True:
        code, if_true, if_false, operand = program[position]
        position += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, operand)
            case 0x54:
                accumulator &= operand
            case 0x15:
                position += if_true if accumulator == operand else if_false
            case 0x35:
                position += if_true if accumulator >= operand else if_false
            case 0x45:
                position += if_true if accumulator & operand else if_false
            case 0x06:
                return operand
            case _:
                raise AssertionError(f"no such instruction: {code:#x}")


def _words(value: int) -> str:
    if value & 0xFFFF0000 == _ERRNO:
        return f"errno {value & 0xFFFF}"
    return {_ALLOW: "allow", _KILL: "kill"}[value]
