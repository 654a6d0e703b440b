from __future__ import annotations

import re
import resource
from typing import TYPE_CHECKING, Any

import pytest

from sandbox_task.agent.tools.commands import ReadOutput, RunCommand, StopProcess
from sandbox_task.agent.tools.outcome import Outcome, ToolError
from sandbox_task.isolation.wall import WallError
from sandpiper import limits
from tests.unit.sandbox.behind_wall import NAP, processes_with, wait_for

if TYPE_CHECKING:
    from sandbox_task.agent.tools.sessions import Sessions
    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall
    from tests.unit.sandbox.recording_sink import RecordingSink


class Shell:
    def __init__(self, wall: Wall, sink: RecordingSink, sessions: Sessions) -> None:
        self.tools = {
            "run": RunCommand(wall, sink, sessions),
            "read": ReadOutput(sessions),
            "stop": StopProcess(sessions),
        }

    def outcome(self, name: str, call_id: str = "call", **arguments: Any) -> Outcome:
        tool: Any = self.tools[name]
        outcome: Outcome = tool.run(tool.arguments.model_validate(arguments), call_id)
        return outcome

    def __call__(self, name: str, **arguments: Any) -> str:
        return self.outcome(name, **arguments).content


@pytest.fixture
def shell(wall: Wall, sink: RecordingSink, sessions: Sessions) -> Shell:
    return Shell(wall, sink, sessions)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("echo hi; exit 3", "hi\n[exit code 3]"),
        ("printf hi", "hi\n[exit code 0]"),
        ("true", "[exit code 0]"),
        ("cat; read -r line || echo none", "none\n[exit code 0]"),
        ("kill -9 $$", "[killed by SIGKILL]"),
        ("kill -9 $PPID; sleep 5", "[ended, because it killed the sandbox's own process that ran it]"),
    ],
)
def test_the_model_is_told_how_a_command_ended(shell: Shell, command: str, told: str) -> None:
    assert shell("run", command=command) == told
    assert shell("run", command="echo on") == "on\n[exit code 0]"


def test_a_command_that_does_not_end_is_ended_and_the_next_one_works(shell: Shell) -> None:
    told = shell("run", command="echo before; sleep 1000", timeout_seconds=1)
    assert told == "before\n[killed after 1 s, its timeout, with everything it had started]"
    assert shell("run", command="echo on") == "on\n[exit code 0]"


def test_a_command_that_can_not_start_is_an_error_in_words(shell: Shell) -> None:
    with pytest.raises(WallError, match="No such file or directory"):
        shell("run", command="true", cwd="nowhere")
    with pytest.raises(WallError, match="Argument list too long"):
        shell("run", command="true " + "x" * 200_000)


def test_what_was_left_out_can_be_read_by_range_from_any_line(shell: Shell) -> None:
    told = shell("run", command="seq 100000")
    marker = re.search(r"… ([\d,]+) characters left out; read_output id=(\w+) shows any of the 100,000 lines …", told)
    assert marker is not None
    assert told.startswith("1\n2\n")
    assert told.endswith("100000\n[exit code 0]")
    assert shell("read", id=marker[2], start_line=50_000, end_line=50_002) == "50000\n50001\n50002\n"
    assert shell("read", id=marker[2], start_line=99_999) == "99999\n100000\n"
    assert shell("read", id=marker[2], start_line=100_001) == "There are no such lines: 100,000 in all."


def test_output_that_was_shown_whole_is_not_kept(shell: Shell, sessions: Sessions) -> None:
    shell("run", command="echo short")
    with pytest.raises(ToolError, match="no output 'c1'"):
        sessions.outputs.find("c1")


def test_what_is_kept_is_redacted(shell: Shell, sink: RecordingSink) -> None:
    told = shell("run", command="echo very-secret-value; seq 100000; echo very-secret-value")
    assert "very-secret-value" not in told
    assert shell("read", id="c1", start_line=1, end_line=2) == "[redacted]\n1\n"
    assert "very-secret-value" not in sink.printed()


def test_fifty_megabytes_are_bounded_for_the_model_and_as_events_and_whole_in_the_log(
    shell: Shell, sink: RecordingSink
) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told = shell("run", command="yes 0123456789012345678901234567890123456789012345678 | head -n 1000000")
    assert len(told) < limits.MODEL_OUTPUT_CHARS + 200
    assert len(sink.said("call")) == limits.OUTPUT_HEAD_BYTES + limits.OUTPUT_TAIL_BYTES
    assert shell("read", id="c1", start_line=999_999).count("\n") == 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000  # KB
    assert len(sink.printed()) == 50_000_000


def test_more_than_is_kept_is_counted_and_the_oldest_goes_first(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEPT_OUTPUT_BYTES", 100_000)
    monkeypatch.setattr(limits, "KEPT_OUTPUTS_BYTES", 250_000)
    for _ in range(3):
        assert "any of the 100,000 lines" in shell("run", command="seq 100000")
    shell("run", command="true")
    with pytest.raises(ToolError, match="no output 'c1', or no longer"):
        shell("read", id="c1")
    assert shell("read", id="c2", start_line=2, end_line=2) == "2\n"
    assert shell("read", id="c3", start_line=90_000) == "There are no such lines: 100,000 in all."


def test_a_background_process_is_known_read_and_stopped(shell: Shell, rooms: Rooms, sink: RecordingSink) -> None:
    waits = "until [ -e go ]; do sleep 0.02; done"
    started = shell.outcome("run", command=f"echo ready; {waits}; echo more; touch said; {NAP}", background=True)
    assert re.fullmatch(r"ready\n\[c1: running for \d s\]", started.content)
    assert started.data["process_id"] == "c1"
    shell("run", command="touch go")
    wait_for("more", rooms.workspace / "said")
    assert re.fullmatch(r"(?s)c1: running for \d s: echo ready.*", shell("read"))
    stopped = shell("stop", id="c1")
    assert re.fullmatch(r"more\n\[c1: stopped, with everything it had started after \d s\]", stopped)
    assert shell("read", id="c1", start_line=1) == "ready\nmore\n"
    assert processes_with(NAP) == []
    assert sink.said("call") == sink.printed() == "ready\nmore\n"


def test_new_output_is_told_once(shell: Shell) -> None:
    shell("run", command="echo once; sleep 1000", background=True)
    assert re.fullmatch(r"\[c1: running for \d s\]", shell("read", id="c1"))


def test_a_background_process_that_fails_at_once_says_so_at_once(shell: Shell) -> None:
    told = shell("run", command="echo no; exit 4", background=True)
    assert told == "no\n[c1: exit code 4 after 0 s]"


def test_another_command_s_timeout_does_not_end_a_background_process(shell: Shell) -> None:
    shell("run", command="sleep 1000", background=True)
    shell("run", command="sleep 1000", timeout_seconds=1)
    assert "c1: running" in shell("read")


def test_there_are_only_so_many_background_processes(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_BACKGROUND", 1)
    shell("run", command="sleep 1000", background=True)
    with pytest.raises(ToolError, match="1 background processes are running already"):
        shell("run", command="sleep 1000", background=True)
    shell("stop", id="c1")
    assert "running" in shell("run", command="sleep 1000", background=True)


def test_what_ends_everything_is_seen_in_the_list(shell: Shell, wall: Wall) -> None:
    shell("run", command="sleep 1000", background=True)
    wall.end_all()
    assert "c1: stopped" in shell("read")


def test_a_process_that_is_not_there_can_not_be_stopped(shell: Shell) -> None:
    assert shell("read") == "There are no background processes."
    with pytest.raises(ToolError, match="no background process 'c9'"):
        shell("stop", id="c9")
