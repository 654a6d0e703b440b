"""One check, run once behind the wall: how it ended, what it printed last, and what its tests reported."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from sandbox_task.gate import collect
from sandbox_task.gate.detect_node import read_script
from sandbox_task.gate.instrument import Asked, instrument
from sandbox_task.gate.reports.go import go_json, go_words
from sandbox_task.gate.reports.jest import jest_json
from sandbox_task.gate.reports.junit import junit
from sandbox_task.gate.reports.recognise import recognise
from sandbox_task.isolation.wall import Completed, Wall, WallError
from sandbox_task.output import HeadAndTail
from sandpiper import limits
from sandpiper.models.run import CheckResult, ReportedTests

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox_task.agent.ports import Sink
    from sandbox_task.options import Check
    from sandbox_task.stopping import Stop


_HALF = limits.MAX_REPORT_TEXT_CHARS // 2
_UTF8 = codecs.getincrementaldecoder("utf-8")


@dataclass
class _Printed:
    """Everything as far as a reader of reports needs it; for people what they would have seen, and the end of it."""

    show: Callable[[bytes], None]
    words: Callable[[bytes], bytes] | None = None
    tail: HeadAndTail = field(default_factory=lambda: HeadAndTail(0, limits.CHECK_TAIL_CHARS))
    whole: HeadAndTail = field(default_factory=lambda: HeadAndTail(_HALF, _HALF))
    _line: bytes = b""
    _decode_whole: codecs.IncrementalDecoder = field(default_factory=partial(_UTF8, errors="replace"))
    _decode_tail: codecs.IncrementalDecoder = field(default_factory=partial(_UTF8, errors="replace"))

    def feed(self, data: bytes) -> None:
        self.whole.add(self._decode_whole.decode(data))
        if self.words is None:
            self._tell(data)
            return
        *lines, self._line = (self._line + data).split(b"\n")
        self._tell(b"".join(self.words(line + b"\n") for line in lines))

    def close(self) -> None:
        self._tell(self._line)

    def _tell(self, data: bytes) -> None:
        if data:
            self.show(data)
            self.tail.add(self._decode_tail.decode(data))


@dataclass(frozen=True)
class Execution:
    wall: Wall
    sink: Sink
    stop: Stop

    def run(self, check: Check, tool_id: str) -> CheckResult:
        """Raises Stopped. What we add must not decide: a failure without the report asked for is tried as declared."""
        place = collect.place_outside()
        if check.report is None and (asked := instrument(check.run, place, self._script)):
            result = self._once(check, asked.command, tool_id, partial(self._asked_for, asked, place), asked)
            if result.status == "passed" or result.tests is not None or result.exit_code is None:
                return result
        pattern = check.report or collect.usual_pattern(check.run)
        before = collect.present(self.wall, pattern)
        return self._once(check, check.run, tool_id, lambda _text: collect.written(self.wall, pattern, before))

    def _once(
        self,
        check: Check,
        command: str,
        tool_id: str,
        read: Callable[[str], ReportedTests | None],
        asked: Asked | None = None,
    ) -> CheckResult:
        self.stop.check()
        with self.sink.output(tool_id=tool_id) as output:
            printed = _Printed(output.feed, go_words if asked and asked.format == "go" else None)
            completed = self.wall.run(command, timeout=check.timeout_seconds, on_output=printed.feed)
            printed.close()
        self.stop.check()
        text = str(printed.whole)
        tests = read(text) or (None if asked and completed.exit_code else recognise(text))
        return _result(check, completed, printed.tail.rest()[1], tests)

    def _asked_for(self, asked: Asked, place: str, text: str) -> ReportedTests | None:
        if asked.format == "go":
            return go_json(text)
        data = collect.take(self.wall, place)
        if data is None:
            return None
        return junit(data) if asked.format == "junit" else jest_json(data, self.wall.workspace)

    def _script(self, name: str) -> str:
        try:
            part = self.wall.read_file("package.json", limit=limits.MAX_READ_BYTES)
        except WallError:  # there is none
            return ""
        return read_script(part.data.decode(errors="replace"), name)


def _result(check: Check, completed: Completed, tail: str, tests: ReportedTests | None) -> CheckResult:
    timed_out = completed.ended_by == "timeout"
    note = f"\n(It was ended after {check.timeout_seconds} s, its time limit.)" if timed_out else ""
    return CheckResult(
        name=check.name,
        command=check.run,
        status="passed" if completed.succeeded else "failed",
        exit_code=completed.exit_code,
        timed_out=timed_out,
        duration_ms=completed.duration_ms,
        output_tail=f"{tail}{note}",
        tests=tests,
    )
