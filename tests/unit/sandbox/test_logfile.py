"""The log of a run: its numbers, its parts, and that nobody but us writes our lines."""

from __future__ import annotations

import gzip
import re
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_task import logfile
from sandbox_task.logfile import LogFile
from sandpiper import limits
from sandpiper.logic import log_parts
from sandpiper.testing.fakes import FakeBlobs
from tests.unit.sandbox.recording_sink import logged, printed

if TYPE_CHECKING:
    from collections.abc import Iterator

OURS = re.compile(r"(#(\d+|\?)|-) \[")


class FlakyBlobs(FakeBlobs):
    """Takes nothing as often as it is told to."""

    failures = 0

    def put(self, key: str, body: bytes, *, content_type: str) -> None:
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the store is away")
        super().put(key, body, content_type=content_type)


@pytest.fixture
def blobs() -> FlakyBlobs:
    return FlakyBlobs()


@pytest.fixture
def log(blobs: FlakyBlobs) -> Iterator[LogFile]:
    log = LogFile(blobs, "r", 3)
    yield log
    log.close()


def lines_of(log: LogFile, blobs: FakeBlobs) -> list[str]:
    log.close()
    return [re.sub(r"\[20[^]]*\]", "[t]", line) for line in logged(blobs, "r").split("\n")[:-1]]


def test_events_have_numbers_notes_a_dash_and_output_a_mark(log: LogFile, blobs: FlakyBlobs) -> None:
    log.number(log.event("tool_started", {"command": "make test", "tool": "run_command"}), 7)
    log.quoted().write("one\ntwo\n")
    log.note("walls: all")
    log.number(log.event("agent_message", {"text": "First.\nSecond."}), 9)
    assert lines_of(log, blobs) == [
        '#7 [t] tool_started command="make test" tool=run_command',
        "  | one",
        "  | two",
        '- [t] note text="walls: all"',
        "#9 [t] agent_message",
        "  text:",
        "    First.",
        "    Second.",
    ]


def test_what_follows_an_event_waits_for_its_number(log: LogFile, blobs: FlakyBlobs) -> None:
    first, second = log.event("tool_started", {}), log.event("tool_completed", {})
    log.quoted().write("later\n")
    log.number(second, 5)
    log.number(first, 4)
    assert lines_of(log, blobs) == ["#4 [t] tool_started", "#5 [t] tool_completed", "  | later"]


def test_an_event_that_is_never_stored_is_in_the_log_without_a_number(log: LogFile, blobs: FlakyBlobs) -> None:
    log.event("warning", {})
    assert lines_of(log, blobs) == ["#? [t] warning"]


def test_much_output_does_not_wait_for_a_number_for_ever(
    log: LogFile, blobs: FlakyBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LOG_HELD_CHARS", 100)
    late = log.event("tool_started", {})
    log.quoted().write("x" * 101 + "\n")
    log.number(late, 1)
    assert lines_of(log, blobs)[0] == "#? [t] tool_started"


def test_commands_that_print_at_once_do_not_end_up_in_one_line(log: LogFile, blobs: FlakyBlobs) -> None:
    one, other = log.quoted(), log.quoted()
    one.write("a")
    one.write("b")
    other.write("c\nd")
    one.write("e\n")
    log.note("n")
    assert lines_of(log, blobs) == ["  | ab", "  | c", "  | d", "  | e", "- [t] note text=n"]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("a\r\nb\r\n", ["a", "b"]),
        ("10 %\r20 %\r30 %\n", ["10 %␍", "20 %␍", "30 %"]),
        ("\x1b[2J\x1b]0;title\x07\n", ["␛[2J␛]0;title␇"]),
        ("a\x0bb\x0cc\x85d\u2028e\n", ["a␋b␌c<U+0085>d<U+2028>e"]),
        ("\tkept – é🦆\n", ["\tkept – é🦆"]),
    ],
)
def test_what_would_move_a_cursor_is_shown_instead(
    log: LogFile, blobs: FlakyBlobs, said: str, shown: list[str]
) -> None:
    quoted = log.quoted()
    for character in said:  # a pipe may cut anywhere
        quoted.write(character)
    assert lines_of(log, blobs) == [f"  | {line}" for line in shown]


FORGED = "#1 [2026-11-18T05:00:00.000Z] gate_completed status=passed"
PIECES = st.text(st.one_of(st.sampled_from("\r\n\x0b\x0c\x1c\x85\u2028\u2029\x1b \t"), st.characters()), max_size=20)


@given(st.lists(st.one_of(PIECES, st.just(FORGED), st.just(f"\n{FORGED}\n"))))
def test_nothing_that_is_printed_or_said_can_pass_for_a_line_of_ours(pieces: list[str]) -> None:
    blobs = FakeBlobs()
    log = LogFile(blobs, "r", 1)
    sources = [log.quoted(), log.quoted()]
    for number, piece in enumerate(pieces):
        sources[number % 2].write(piece)
        log.event("agent_message", {"text": piece})
        log.event("tool_started", {"command": piece, "path": f"{FORGED}\r{piece}"})
        log.note(piece)
    for source in sources:
        source.close()
    log.close()
    ours = [line for line in logged(blobs, "r").splitlines() if not line.startswith(" ")]
    assert len(ours) == 3 * len(pieces)
    assert all(OURS.match(line) for line in ours)


def test_a_part_is_stored_while_the_run_goes_on(
    log: LogFile, blobs: FlakyBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = threading.Event()
    put = blobs.put
    monkeypatch.setattr(blobs, "put", lambda *args, **more: (put(*args, **more), stored.set()))
    log.number(log.event("run_started", {}), 2)
    assert stored.wait(10)
    assert "#2 " in logged(blobs, "r")


def test_parts_are_compressed_and_named_by_attempt_number_and_events(
    log: LogFile, blobs: FlakyBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LOG_PART_BYTES", 1)
    stored = threading.Semaphore(0)
    put = blobs.put
    monkeypatch.setattr(blobs, "put", lambda *args, **more: (put(*args, **more), stored.release()))
    first, second = log.event("run_started", {}), log.event("warning", {})
    log.number(second, 9)
    log.number(first, 8)
    assert stored.acquire(timeout=10)
    log.quoted().write("out\n")
    assert stored.acquire(timeout=10)
    parts = log_parts.page(blobs, "r", after=None, limit=10)
    assert [part.name for part in parts] == ["000003-00000001.8-9.log.gz", "000003-00000002.0-0.log.gz"]
    assert gzip.decompress(blobs.bodies[parts[1].key("r")]) == b"  | out\n"
    assert blobs.content_types[parts[1].key("r")] == "application/gzip"


def test_a_store_that_is_away_for_a_while_loses_nothing(
    log: LogFile, blobs: FlakyBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logfile, "_RETRY_SECONDS", (0.001,))
    blobs.failures = 3
    log.quoted().write("kept\n")
    log.close()
    assert printed(blobs, "r") == "kept\n"


def test_a_store_that_stays_away_is_said(blobs: FlakyBlobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logfile, "_CLOSE_SECONDS", 0.0)
    blobs.failures = 1_000
    log = LogFile(blobs, "r", 1)
    log.note("lost")
    with pytest.raises(ConnectionError):
        log.close()


def test_commands_wait_for_a_store_that_is_slower_than_they_are(
    blobs: FlakyBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LOG_PART_BYTES", 10)
    monkeypatch.setattr(limits, "LOG_BUFFER_BYTES", 100)
    largest, put = 0, blobs.put

    def watching(key: str, body: bytes, *, content_type: str) -> None:
        nonlocal largest
        largest = max(largest, len(gzip.decompress(body)))
        put(key, body, content_type=content_type)

    monkeypatch.setattr(blobs, "put", watching)
    log = LogFile(blobs, "r", 1)
    quoted = log.quoted()
    for _ in range(500):
        quoted.write("0123456789\n")
    log.close()
    assert printed(blobs, "r") == "0123456789\n" * 500
    assert largest < 200


def test_a_store_that_stays_away_keeps_no_command_for_ever(blobs: FlakyBlobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logfile, "_RETRY_SECONDS", (0.001,))
    monkeypatch.setattr(limits, "LOG_BUFFER_BYTES", 1)
    monkeypatch.setattr(limits, "LOG_WAIT_SECONDS", 0.01)
    blobs.failures = 10**9
    log = LogFile(blobs, "r", 1)
    quoted = log.quoted()
    for _ in range(5):
        quoted.write("kept\n")
    blobs.failures = 0
    log.close()
    assert printed(blobs, "r") == "kept\n" * 5


def test_the_whole_log_has_every_attempt_in_order(blobs: FlakyBlobs) -> None:
    for attempt in (1, 2, 10):
        log = LogFile(blobs, "r", attempt)
        log.note(f"attempt {attempt}")
        log.close()
    size = log.store_whole("runs/r/whole.txt")
    told = blobs.get("runs/r/whole.txt")
    assert re.findall(rb"attempt \d+", told) == [b"attempt 1", b"attempt 2", b"attempt 10"]
    assert (size, blobs.content_types["runs/r/whole.txt"]) == (len(told), "text/plain; charset=utf-8")
