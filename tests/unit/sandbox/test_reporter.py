from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from sandbox_task.logfile import LogFile
from sandbox_task.redaction import Redactor
from sandbox_task.reporter import Reporter
from sandbox_task.stopping import Stop
from sandpiper import limits
from sandpiper.models.events import NewEvent
from sandpiper.models.run import Run
from sandpiper.models.spec import RunSpec
from sandpiper.testing.fakes import FakeBlobs, FakeClock, FakeRuns
from tests.unit.sandbox.recording_sink import logged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sandpiper.models.events import Event


class FlakyRuns(FakeRuns):
    """Fails as often as it is told to before it works."""

    failures = 0

    def append(self, run_id: str, events: Sequence[NewEvent], *, attempt: int | None = None) -> list[Event]:
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the store is away")
        return super().append(run_id, events, attempt=attempt)


@pytest.fixture
def runs() -> FlakyRuns:
    runs, now = FlakyRuns(), FakeClock().now()
    spec = RunSpec(task="t")
    runs.create(Run(run_id="r", owner="o", spec=spec, status="running", attempt=2, created_at=now, updated_at=now), [])
    return runs


@pytest.fixture
def blobs() -> FakeBlobs:
    return FakeBlobs()


@pytest.fixture
def log(blobs: FakeBlobs) -> Iterator[LogFile]:
    log = LogFile(blobs, "r", 2)
    yield log
    log.close()


def reporter(runs: FakeRuns, log: LogFile, stop: Stop | None = None, *, attempt: int = 2) -> Reporter:
    return Reporter(runs, "r", attempt=attempt, redactor=Redactor(["known-secret"]), log=log, stop=stop or Stop())


def test_events_of_one_thread_are_stored_in_its_order(runs: FlakyRuns, log: LogFile) -> None:
    sink = reporter(runs, log)

    def tell(name: str) -> None:
        for number in range(100):
            sink.emit("warning", thread=name, number=number)

    threads = [threading.Thread(target=tell, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sink.close()
    events = runs.events("r", after=0, limit=1000)
    assert [event.seq for event in events] == list(range(1, 301))
    for name in "abc":
        assert [event.data["number"] for event in events if event.data["thread"] == name] == list(range(100))


def test_a_store_that_is_away_for_a_while_loses_no_event(runs: FlakyRuns, log: LogFile) -> None:
    runs.failures = 2
    sink = reporter(runs, log)
    sink.emit("warning", message="kept")
    sink.flush()
    sink.close()
    assert [event.data for event in runs.events("r", after=0, limit=10)] == [{"message": "kept"}]


def test_events_that_follow_closely_on_others_are_stored_together(
    runs: FlakyRuns, log: LogFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "EVENTS_EVERY_SECONDS", 3600)
    first, sizes, append = threading.Event(), list[int](), runs.append

    def watching(run_id: str, events: Sequence[NewEvent], *, attempt: int | None = None) -> list[Event]:
        sizes.append(len(events))
        first.set()
        return append(run_id, events, attempt=attempt)

    runs.append = watching  # type: ignore[method-assign]
    sink = reporter(runs, log)
    sink.emit("warning", number=1)
    assert first.wait(10)
    sink.emit("warning", number=2)
    sink.emit("warning", number=3)
    sink.close()
    assert sizes == [1, 2]


def test_who_waits_for_events_to_be_stored_does_not_wait_for_more_of_them(
    runs: FlakyRuns, log: LogFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "EVENTS_EVERY_SECONDS", 3600)
    sink = reporter(runs, log)
    for number in (1, 2, 3):
        sink.emit("warning", number=number)
        sink.flush()
        assert len(runs.events("r", after=0, limit=10)) == number
    sink.close()


def test_an_attempt_that_is_over_reports_nothing_and_stops(runs: FlakyRuns, log: LogFile) -> None:
    stop = Stop()
    sink = reporter(runs, log, stop, attempt=1)
    sink.emit("warning", message="late")
    sink.flush()
    sink.close()
    assert stop.reason == "fenced"
    assert runs.events("r", after=0, limit=10) == []


def test_secrets_are_hidden_in_events_and_in_the_log(runs: FlakyRuns, log: LogFile, blobs: FakeBlobs) -> None:
    sink = reporter(runs, log)
    sink.emit("agent_message", text="I found known-secret\nin a file")
    sink.note("trace: known-secret")
    with sink.output(tool_id="known-secret") as output:
        output.feed(b"known-")
        output.feed(b"secret")
    sink.close()
    stored = "".join(str(event.data) for event in runs.events("r", after=0, limit=10))
    assert stored.count("[redacted]") == 3
    log.close()
    told = logged(blobs, "r")
    assert told.count("[redacted]") == 3
    assert "known-secret" not in stored + told


def test_a_line_of_the_log_has_the_number_of_its_event(runs: FlakyRuns, log: LogFile, blobs: FakeBlobs) -> None:
    sink = reporter(runs, log)
    for number in (1, 2):
        sink.emit("tool_started", command=f"make {number}")
        with sink.output(tool_id="t") as output:
            output.feed(b"done\n")
        runs.append("r", [NewEvent(type="run_message_received")])  # somebody else counts, too
    sink.close()
    log.close()
    events = {f"#{event.seq}": event.type for event in runs.events("r", after=0, limit=10)}
    lines = [line.split(" ") for line in logged(blobs, "r").splitlines() if line.startswith("#")]
    assert [line[3:] for line in lines] == [['command="make', '1"'], ['command="make', '2"']]
    assert [events[line[0]] for line in lines] == [line[2] for line in lines] == ["tool_started"] * 2


def test_output_that_pauses_is_sent_without_waiting_for_more(runs: FlakyRuns, log: LogFile) -> None:
    arrived = threading.Event()
    append = runs.append

    def watching(run_id: str, events: Sequence[NewEvent], *, attempt: int | None = None) -> list[Event]:
        if any(event.data.get("text") == "second" for event in events):
            arrived.set()
        return append(run_id, events, attempt=attempt)

    runs.append = watching  # type: ignore[method-assign]
    sink = reporter(runs, log)
    with sink.output(tool_id="1") as output:
        output.feed(b"first")
        output.feed(b"second")
        assert arrived.wait(10)
    sink.close()


def test_the_first_reason_to_stop_wins_but_fenced_overrides_it() -> None:
    stop = Stop()
    stop.request("cancelled")
    stop.request("timed_out")
    assert stop.reason == "cancelled"
    stop.request("fenced")
    assert stop.is_fenced
