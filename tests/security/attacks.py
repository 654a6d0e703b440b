"""An attack is a command that prints a proof if it works. It is tried behind each wall and without any."""

from __future__ import annotations

import secrets
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import pytest

if TYPE_CHECKING:
    from sandbox_task.isolation.wall import Completed, OutputSink

# How many rights it takes without a wall: the supervisor's, or the worker's alone
Rights = Literal["supervisor", "worker"]


class Place(Protocol):
    def run(self, command: str, *, timeout: float, on_output: OutputSink) -> Completed: ...


@dataclass(frozen=True)
class Attack:
    """`command` may name what is planted: {pid}, {fd}, {address}, {private}, {other}, {shared}, …

    The proof is the planted {secret} when it reads, or {proof} when it does something: the command prints the
    reverse of {mark}, so that an error message which quotes the command proves nothing.
    """

    name: str
    command: str
    works_as: Rights = "supervisor"
    kernel_may_refuse: bool = False  # without a wall, too: then there is nothing to be shown on this machine


@dataclass(frozen=True)
class Outcome:
    succeeded: bool
    output: str


def attempt(place: Place, attack: Attack, planted: dict[str, str], *, seconds: float = 20) -> Outcome:
    mark = secrets.token_hex(8)
    command = attack.command
    for name, value in {**planted, "mark": mark}.items():
        command = command.replace("{" + name + "}", value)
    output = bytearray()
    place.run(command, timeout=seconds, on_output=output.extend)
    text = output.decode(errors="replace")
    return Outcome(planted["secret"] in text or mark[::-1] in text, text)


def must_work(outcome: Outcome, attack: Attack) -> None:
    if not outcome.succeeded and attack.kernel_may_refuse:
        pytest.skip(f"this kernel refuses it by itself: {outcome.output.strip()[-200:]}")
    assert outcome.succeeded, outcome.output


def python(code: str) -> str:
    """As a command; `call` makes a system call and raises if it is refused, `fired` prints the proof.

    `call_to` makes one that harms nobody: it is good enough that the kernel looks at it and finds it wrong.
    """
    prelude = """
        import ctypes, errno, os, platform, socket, struct, sys
        libc = ctypes.CDLL(None, use_errno=True)
        def call(x86, arm, *arguments):
            number = arm if platform.machine() == "aarch64" else x86
            result = libc.syscall(number, *arguments)
            if result < 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            return result
        def call_to(error, *arguments):
            try:
                call(*arguments)
            except OSError as refusal:
                if refusal.errno != error:
                    raise
        def fired():
            print("{mark}"[::-1], flush=True)
    """
    return f"python3 - <<'PYTHON' 2>&1\n{textwrap.dedent(prelude)}\n{textwrap.dedent(code)}\nPYTHON"
