from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from sandbox_task.agent.tools.outcome import Arguments, Outcome, ToolError
from sandbox_task.agent.tools.planning import FinishReviewTool, FinishTool
from sandbox_task.agent.tools.toolbox import Toolbox
from sandbox_task.model.port import ToolCall
from sandbox_task.stopping import Stop, Stopped
from sandbox_task.suspension import Suspended
from sandpiper import limits
from tests.unit.sandbox.test_loop import Sink

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sandbox_task.stopping import Reason


class Nothing(Arguments):
    name: str = ""


class Tool:
    """Notes who ran beside whom; those that read wait until `together` of them are there."""

    description: ClassVar = ""
    writes: ClassVar = False
    arguments = Nothing

    def __init__(self, *, parallel: bool, together: int = 1) -> None:
        self.name = "read" if parallel else "write"  # type: ignore[misc]
        self.parallel = parallel  # type: ignore[misc]
        self.most = self._now = 0
        self._lock = threading.Lock()
        self._barrier = threading.Barrier(together)

    def shown(self, arguments: Nothing) -> Mapping[str, Any]:
        return arguments.model_dump()

    def run(self, arguments: Nothing, _call_id: str) -> Outcome:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        self._barrier.wait(10)
        with self._lock:
            self._now -= 1
        if arguments.name == "fail":
            raise ToolError("It can't.")
        return Outcome(f"did {arguments.name}", path=arguments.name)


def calls(*named: tuple[str, str]) -> list[ToolCall]:
    return [ToolCall(id=f"c{n}", name=tool, arguments={"name": name}) for n, (tool, name) in enumerate(named)]


def test_calls_that_read_run_at_the_same_time_and_are_answered_in_order() -> None:
    read = Tool(parallel=True, together=limits.PARALLEL_CALLS)
    sink = Sink()
    named = [("read", str(n)) for n in range(2 * limits.PARALLEL_CALLS)]
    results = Toolbox([read], sink, Stop()).call_all(calls(*named))
    assert [(result.call_id, result.content) for result in results] == [
        (f"c{n}", f"did {name}") for n, (_, name) in enumerate(named)
    ]
    assert read.most == limits.PARALLEL_CALLS
    assert {(data["tool_id"], data["name"]) for data in sink.of("tool_started")} == {
        (f"c{n}", name) for n, (_, name) in enumerate(named)
    }


def test_a_call_that_writes_waits_for_those_before_it_and_runs_alone() -> None:
    sink = Sink()
    read, write = Tool(parallel=True), Tool(parallel=False)
    named = [("read", "a"), ("read", "b"), ("write", "c"), ("write", "d"), ("read", "e"), ("read", "f")]
    Toolbox([read, write], sink, Stop()).call_all(calls(*named))
    order = [(type_, data["tool_id"]) for type_, data in sink.events]
    assert {id_ for _, id_ in order[:4]} == {"c0", "c1"}
    assert order[4:8] == [(type_, id_) for id_ in ("c2", "c3") for type_ in ("tool_started", "tool_completed")]
    assert {id_ for _, id_ in order[8:]} == {"c4", "c5"}


def test_one_call_that_fails_costs_its_neighbours_nothing() -> None:
    results = Toolbox([Tool(parallel=True)], Sink(), Stop()).call_all(
        calls(("read", "a"), ("read", "fail"), ("nothing", "x"), ("read", "b"))
    )
    assert [result.is_error for result in results] == [False, True, True, False]


def test_a_stop_ends_the_calls_of_a_turn() -> None:
    stop = Stop()
    stop.request("cancelled")
    with pytest.raises(Stopped):
        Toolbox([Tool(parallel=True)], Sink(), stop).call_all(calls(("read", "a"), ("read", "b")))


class Interrupted:
    """A tool in whose middle something else happens."""

    name: ClassVar = "wait"
    description: ClassVar = ""
    writes: ClassVar = False
    parallel: ClassVar = False
    arguments = Nothing

    def __init__(self, meanwhile: Callable[[], Outcome]) -> None:
        self._meanwhile = meanwhile

    def shown(self, arguments: Nothing) -> Mapping[str, Any]:
        return arguments.model_dump()

    def run(self, _arguments: Nothing, _call_id: str) -> Outcome:
        return self._meanwhile()


def ends(sink: Sink) -> list[tuple[str, Any]]:
    told = [(type_, data) for type_, data in sink.events if type_ in {"tool_completed", "tool_failed"}]
    assert all(data["tool_id"] == "c0" and data["duration_ms"] >= 0 for _, data in told)
    return [(type_, data.get("error") or data.get("ended_by")) for type_, data in told]


@pytest.mark.parametrize(
    ("reason", "why"),
    [("paused", "the run was paused"), ("cancelled", "the run was cancelled"), ("timed_out", "the run's time was up")],
)
def test_a_call_that_is_broken_off_has_an_end_that_says_why(reason: Reason, why: str) -> None:
    sink, stop = Sink(), Stop()

    def broken_off() -> Outcome:
        stop.request(reason)
        return Outcome("", {"exit_code": None, "ended_by": "interrupt"}, succeeded=False, was_broken_off=True)

    with pytest.raises(Stopped):
        Toolbox([Interrupted(broken_off)], sink, stop).call_all(calls(("wait", "a")))
    assert ends(sink) == [("tool_failed", f"Broken off, because {why}.")]


def test_a_call_that_came_to_its_own_end_as_the_run_was_stopped_says_so() -> None:
    sink, stop = Sink(), Stop()

    def done() -> Outcome:
        stop.request("cancelled")
        return Outcome("", {"exit_code": 0, "ended_by": "itself"})

    with pytest.raises(Stopped):
        Toolbox([Interrupted(done)], sink, stop).call_all(calls(("wait", "a")))
    assert ends(sink) == [("tool_completed", "itself")]


@pytest.mark.parametrize(
    ("raised", "end"),
    [
        (Suspended("awaiting_input", "Which?"), ("tool_completed", "suspended")),
        (ZeroDivisionError(), ("tool_failed", "It was broken off by an error in the sandbox itself.")),
    ],
)
def test_a_call_that_makes_the_run_wait_or_finds_a_fault_of_ours_has_an_end(
    raised: Exception, end: tuple[str, str]
) -> None:
    sink = Sink()

    def fails() -> Outcome:
        raise raised

    with pytest.raises(type(raised)):
        Toolbox([Interrupted(fails)], sink, Stop()).call_all(calls(("wait", "a")))
    assert ends(sink) == [end]


def test_what_is_to_be_said_of_a_path_is_added_in_the_order_of_the_calls() -> None:
    asked: list[str] = []

    def on_path(path: str) -> str | None:
        asked.append(path)
        return "a note" if path == "b" else None

    toolbox = Toolbox([Tool(parallel=True), FinishTool()], Sink(), Stop(), on_path=on_path)
    results = toolbox.call_all(calls(("read", "a"), ("read", "b"), ("read", "fail"), ("read", "c")))
    assert [result.content for result in results] == ["did a", "did b\na note", "It can't.", "did c"]
    assert asked == ["a", "b", "c"]


def test_finishing_among_other_calls_is_noticed() -> None:
    toolbox = Toolbox([Tool(parallel=True), FinishTool()], Sink(), Stop())
    finish = ToolCall(id="f", name="finish", arguments={"status": "done", "summary": "s"})
    assert len(toolbox.call_all([*calls(("read", "a"), ("read", "b")), finish])) == 3
    assert toolbox.take_finish() is not None


def test_half_a_character_is_refused_before_anything_is_told() -> None:
    sink = Sink()
    [result] = Toolbox([Tool(parallel=True)], sink, Stop()).call_all(calls(("read", "\ud800")))
    assert result.is_error
    assert "lone surrogate" in result.content
    assert sink.of("tool_started") == []


def test_a_finding_names_its_file_as_git_does_however_the_model_wrote_it() -> None:
    sink = Sink()
    toolbox = Toolbox([FinishReviewTool(sink, {"src/a.py"}.__contains__)], sink, Stop())
    finding = {"file": "./src/a.py", "line": 3, "severity": "minor", "message": "Why?"}
    call = ToolCall(id="c1", name="finish", arguments={"status": "done", "summary": "One.", "findings": [finding]})
    assert not toolbox.call(call).is_error
    finish = toolbox.take_finish()
    assert finish is not None
    assert [reported.file for reported in finish.reported] == ["src/a.py"]


def test_a_finding_about_a_file_that_is_not_there_is_not_accepted() -> None:
    sink = Sink()
    toolbox = Toolbox([FinishReviewTool(sink, frozenset[str]().__contains__)], sink, Stop())
    finding = {"file": "../gone.py", "severity": "minor", "message": "Why?"}
    call = ToolCall(id="c1", name="finish", arguments={"status": "done", "summary": "One.", "findings": [finding]})
    assert "there is no ../gone.py" in toolbox.call(call).content
    assert toolbox.take_finish() is None
    assert sink.of("agent_finish_rejected")[0]["files"] == ["../gone.py"]
