"""Interpreters behind the wall whose state lives on between calls, one for each language."""

from __future__ import annotations

import json
import re
import secrets
import shlex
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sandbox_task.agent.tools.feeding import Feed
from sandbox_task.agent.tools.outcome import ToolError, ending_in_words
from sandpiper import limits

if TYPE_CHECKING:
    from sandbox_task.isolation.wall import OutputSink, Wall

Language = Literal["python", "node"]
Ending = Literal["ok", "error", "interrupted", "killed", "died"]

_DRIVERS = Path(__file__).parent / "drivers"
_PROGRAMS: dict[Language, tuple[str, str]] = {
    "python": ("python3 -u -c", "python_driver.py"),
    "node": ("node -e", "node_driver.js"),
}
_NOT_FOUND = 127
_MARKS: dict[bytes, Ending] = {b"ok": "ok", b"error": "error", b"interrupted": "interrupted"}
_LONGEST_MARK = 64
_KEPT_BETWEEN = 4096  # bytes that are said while nobody asks


@dataclass(frozen=True)
class Evaluation:
    """`lost_state`: an interpreter of earlier calls was gone, and a new one did this. `detail`: how this one ended."""

    ending: Ending
    lost_state: bool
    detail: str = ""


class Interpreters:
    """`used` stays true once one was started: after that a new sandbox has lost something."""

    def __init__(self, wall: Wall) -> None:
        self.used = False
        self._wall = wall
        self._live: dict[Language, Interpreter] = {}

    def run(self, language: Language, code: str, *, timeout: float, on_output: OutputSink) -> Evaluation:
        """Raises ToolError if there is no such interpreter, and WallError."""
        if lost_state := language in self._live and self._live[language].ended is not None:
            self._drop(language)
        if language not in self._live:
            self._live[language] = Interpreter(self._wall, language)
            self.used = True
        interpreter = self._live[language]
        ending = interpreter.run(code, timeout=timeout, on_output=on_output)
        if ending in {"killed", "died"}:
            self._drop(language)
        return Evaluation(ending, lost_state, interpreter.ended or "")

    def _drop(self, language: Language) -> None:
        self._live.pop(language).close()


class Interpreter:
    """What it says arrives by a thread of the wall's; a mark in it that only this call knows is the end of its code."""

    def __init__(self, wall: Wall, language: Language) -> None:
        self._language = language
        self._changed = threading.Condition()
        self._said = b""
        self._mark: re.Pattern[bytes] | None = None
        self._ending: Ending | None = None
        self._on_output: OutputSink | None = None
        self._has_answered = self._has_ended = False
        program, driver = _PROGRAMS[language]
        source = shlex.quote((_DRIVERS / driver).read_text(encoding="utf-8"))
        self._requests = Feed()
        with self._requests.taken() as stdin:
            self._process = wall.start(
                f"exec 3<&0 </dev/null; exec {program} {source}", on_output=self._hear, on_end=self._end, stdin=stdin
            )

    @property
    def ended(self) -> str | None:
        """How it came to its end, in words."""
        completed = self._process.wait(0) if self._has_ended else None
        if completed and completed.exit_code == _NOT_FOUND and not self._has_answered:
            raise ToolError(f"There is no {self._language} in this sandbox.")
        return ending_in_words(completed) if completed else None

    def run(self, code: str, *, timeout: float, on_output: OutputSink) -> Ending:
        mark = secrets.token_hex(16)
        with self._changed:
            self._mark = re.compile(b"\0" + mark.encode() + rb" (\w+)\n")
            self._ending, self._on_output = None, on_output
        try:
            # code that is still busy in the background may keep it from reading
            self._requests.send(json.dumps({"mark": mark, "code": code}).encode() + b"\n", seconds=timeout)
            return self._wait(timeout) or self._interrupt()
        finally:
            with self._changed:
                self._mark = self._on_output = None

    def _interrupt(self) -> Ending:
        """Its time is up: Ctrl-C first, which leaves it its state."""
        self._process.interrupt()
        if ending := self._wait(limits.INTERRUPT_SECONDS):
            return "interrupted" if ending == "error" else ending
        self._process.end()
        return "killed"

    def _wait(self, seconds: float) -> Ending | None:
        with self._changed:
            self._changed.wait_for(lambda: self._ending or self._has_ended, seconds)
            return self._ending or ("died" if self._has_ended else None)

    def _hear(self, data: bytes) -> None:
        with self._changed:
            self._said += data
            if self._mark and (end := self._mark.search(self._said)):
                self._hand_on(end.start())
                self._said = self._said[end.end() - end.start() :]
                self._ending = _MARKS.get(end[1], "error")
                self._mark, self._has_answered = None, True
                self._changed.notify_all()
            elif self._mark:
                begun = self._said.rfind(b"\0", -_LONGEST_MARK)
                self._hand_on(begun if begun >= 0 else len(self._said))
            else:
                self._said = self._said[-_KEPT_BETWEEN:]

    def _hand_on(self, count: int) -> None:
        if count and self._on_output:
            self._on_output(self._said[:count])
        self._said = self._said[count:]

    def _end(self) -> None:
        with self._changed:
            self._hand_on(len(self._said))
            self._has_ended = True
            self._changed.notify_all()

    def close(self) -> None:
        self._requests.close()
