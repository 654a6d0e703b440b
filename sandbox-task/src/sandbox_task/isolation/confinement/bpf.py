"""Classic BPF as seccomp runs it: a program is a list of instructions, and every way through it ends in a verdict."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT = 0x15, 0x35, 0x45
_LAYOUT = struct.Struct("=HBBI")  # sock_filter: code, jump if true, jump if false, operand

NUMBER, ARCHITECTURE = 0, 4  # offsets in seccomp_data


class Instruction(NamedTuple):
    code: int
    if_true: int
    if_false: int
    operand: int


Block = tuple[Instruction, ...]

ALLOW = (Instruction(_RETURN, 0, 0, 0x7FFF0000),)
KILL = (Instruction(_RETURN, 0, 0, 0x80000000),)


def refuse(errno: int) -> Block:
    return (Instruction(_RETURN, 0, 0, 0x00050000 | errno),)


def argument(index: int) -> int:
    """The low half of an argument: the calls that are looked into take no more than 32 bits of it."""
    return 16 + 8 * index


def load(offset: int) -> Block:
    return (Instruction(_LOAD, 0, 0, offset),)


def keep_bits(mask: int) -> Block:
    return (Instruction(_AND, 0, 0, mask),)


def if_equal(value: int, then: Block) -> Block:
    """`then` has to end in a verdict; otherwise the program goes on behind it."""
    return (Instruction(_IF_EQUAL, 0, len(then), value), *then)


def unless_equal(value: int, then: Block) -> Block:
    return (Instruction(_IF_EQUAL, len(then), 0, value), *then)


def if_at_least(value: int, then: Block) -> Block:
    return (Instruction(_IF_AT_LEAST, 0, len(then), value), *then)


def if_any_bit(mask: int, then: Block) -> Block:
    return (Instruction(_IF_ANY_BIT, 0, len(then), mask), *then)


def encode(program: Sequence[Instruction]) -> bytes:
    return b"".join(_LAYOUT.pack(*instruction) for instruction in program)


def decode(data: bytes) -> list[Instruction]:
    return [Instruction(*fields) for fields in _LAYOUT.iter_unpack(data)]
