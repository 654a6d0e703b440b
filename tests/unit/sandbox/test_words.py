"""What the model says while it says it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from sandbox_task.logfile import LogFile
from sandbox_task.redaction import Redactor
from sandbox_task.reporter import Reporter
from sandbox_task.stopping import Stop
from sandbox_task.words import Words
from sandpiper import limits
from sandpiper.models.run import Run
from sandpiper.models.spec import RunSpec
from sandpiper.testing.fakes import FakeBlobs, FakeClock, FakeRuns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any


def words(*secrets: str) -> Words:
    return Words(Redactor(secrets), turn=3)


def test_pieces_are_gathered_and_say_where_they_belong() -> None:
    said = words()
    for piece in ("Hel", "lo"):
        said.hear("text", piece)
    assert said.take() == [{"turn": 3, "block": 0, "kind": "text", "offset": 0, "text": "Hello"}]
    said.hear("text", ", you")
    assert said.take() == [{"turn": 3, "block": 0, "kind": "text", "offset": 5, "text": ", you"}]
    assert said.take() == []


def test_thoughts_and_words_are_blocks_of_their_own() -> None:
    said = words()
    for voice, piece in (("thinking", "Hm"), ("text", "A"), ("text", "B"), ("thinking", "So")):
        said.hear(voice, piece)  # type: ignore[arg-type]
    told = [(piece["block"], piece["kind"], piece["offset"], piece["text"]) for piece in said.take()]
    assert told == [(0, "thinking", 0, "Hm"), (1, "text", 0, "AB"), (2, "thinking", 0, "So")]
    said.hear("thinking", "…")
    assert [(piece["block"], piece["offset"]) for piece in said.take()] == [(2, 2)]


def test_a_secret_that_comes_in_pieces_is_never_shown_in_part() -> None:
    said, shown = words("very-secret-value"), ""
    for character in "It is very-secret-value, no very-secre":
        said.hear("text", character)
        shown += "".join(piece["text"] for piece in said.take())
    assert shown == "It is [redacted], no "


def test_what_was_held_back_is_shown_when_other_words_begin() -> None:
    said = words("very-secret-value")
    said.hear("text", "very-")
    assert said.take() == []
    said.hear("thinking", "Hm")
    assert [piece["text"] for piece in said.take()] == ["very-", "Hm"]


def test_of_more_than_can_be_shown_the_last_is_shown_at_its_place() -> None:
    said = words()
    said.hear("text", "x" * limits.WORDS_CHARS + "yz")
    (piece,) = said.take()
    assert (piece["offset"], len(piece["text"]), piece["text"][-2:]) == (2, limits.WORDS_CHARS, "yz")


def test_a_reply_that_was_given_up_is_heard_no_more() -> None:
    said = words()
    said.close()
    said.hear("text", "late")
    assert said.take() == []


class WatchedRuns(FakeRuns):
    """Tells when words were shown, and fails as often as it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.came = threading.Semaphore(0)
        self.failures = 0

    def show_words(self, run_id: str, words: Mapping[str, Any], *, attempt: int) -> None:
        self.came.release()
        if self.failures:
            self.failures -= 1
            raise ConnectionError("away")
        super().show_words(run_id, words, attempt=attempt)


@pytest.fixture
def runs() -> WatchedRuns:
    runs, now = WatchedRuns(), FakeClock().now()
    row = Run(
        run_id="r", owner="o", spec=RunSpec(task="t"), status="running", attempt=2, created_at=now, updated_at=now
    )
    runs.create(row, [])
    return runs


@pytest.fixture
def log() -> Iterator[LogFile]:
    log = LogFile(FakeBlobs(), "r", 2)
    yield log
    log.close()


def reporter(runs: FakeRuns, log: LogFile, stop: Stop | None = None) -> Reporter:
    return Reporter(runs, "r", attempt=2, redactor=Redactor(), log=log, stop=stop or Stop())


def test_words_are_shown_with_their_turn_and_are_no_events(runs: WatchedRuns, log: LogFile) -> None:
    sink = reporter(runs, log)
    sink.emit("agent_turn_started", turn=7)
    with sink.words() as hear:
        hear("text", "I look")
        assert runs.came.acquire(timeout=10)
    sink.close()
    shown = {"attempt": 2, "turn": 7, "block": 0, "kind": "text", "offset": 0, "text": "I look"}
    assert runs.shown == {"r": [shown]}
    assert [event.type for event in runs.events("r", after=0, limit=10)] == ["agent_turn_started"]


def test_a_model_that_answers_at_once_costs_no_write(runs: WatchedRuns, log: LogFile) -> None:
    sink = reporter(runs, log)
    with sink.words() as hear:
        hear("text", "Done.")
    sink.emit("agent_message", text="Done.")
    sink.close()
    assert runs.shown == {}


def test_words_that_can_not_be_shown_hold_nothing_up(runs: WatchedRuns, log: LogFile) -> None:
    runs.failures = 1
    sink = reporter(runs, log)
    with sink.words() as hear:
        for piece in ("lost", "shown"):
            hear("text", piece)
            assert runs.came.acquire(timeout=10)
    sink.close()
    assert [(words["offset"], words["text"]) for words in runs.shown["r"]] == [(4, "shown")]


def test_an_attempt_whose_successor_has_spoken_stops(runs: WatchedRuns, log: LogFile) -> None:
    runs.show_words("r", {"text": "new"}, attempt=3)
    stop = Stop()
    sink = reporter(runs, log, stop)
    with sink.words() as hear:
        hear("text", "old")
        assert runs.came.acquire(timeout=10)
        assert runs.came.acquire(timeout=10)
    sink.close()
    assert stop.reason == "fenced"
    assert [words["attempt"] for words in runs.shown["r"]] == [3]
