from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from sandpiper.models.events import EVENT_TYPES
from sandpiper_cli.client import Link, event_of
from sandpiper_cli.closing import closing_lines, diff_lines
from sandpiper_cli.narrate import OUTPUT_LINES, Narrator
from sandpiper_cli.render import ConsoleView, Ending, is_animated
from sandpiper_cli.text import byte_size, neutralise, one_line, seconds
from tests.unit.cli.fake_api import RUN_ID, a_run, event

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202egnp.exe"


def told(kind: str, **data: Any) -> list[str]:
    return [line.text for line in Narrator().tell(event_of(event(1, kind, **data)))]


def closed(**result: Any) -> list[str]:
    return [line.text for line in closing_lines(a_run(status="completed", result=result), None, None)]


@given(st.text())
def test_no_text_makes_a_terminal_do_anything(text: str) -> None:
    harmless = neutralise(text)
    assert not [char for char in harmless if (ord(char) < 32 and char not in "\t\n") or 0x7F <= ord(char) < 0xA0]


def test_control_characters_are_shown_and_not_dropped() -> None:
    assert neutralise(EVIL) == "␛]0;owned␇␛[2J<U+009B>31m␍<U+202E>gnp.exe"


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_every_event_is_told_without_escape_sequences_even_with_odd_data(kind: str) -> None:
    odd: dict[str, Any] = {"error": {"type": EVIL, "message": EVIL}, "plan": {"summary": EVIL, "steps": [EVIL]}}
    fields = ("text", "command", "path", "branch", "message", "summary", "reason", "tool", "repo", "status", "title")
    for data in ({}, odd | dict.fromkeys(fields, EVIL), {"preview": EVIL, "truncated": True, "data_key": "k"}):
        assert "\x1b" not in "".join(told(kind, **data))


def test_a_plan_is_a_check_list() -> None:
    lines = told("planning_completed", plan={"summary": "Fix it", "steps": ["read", "write"]})
    assert lines == ["Plan: Fix it", "  ☐ read", "  ☐ write"]


@pytest.mark.parametrize(
    ("kind", "data", "lines"),
    [
        (
            "run_suspended",
            {"reason": "awaiting_input", "question": "Which?"},
            ["Suspended: waiting for an answer", "  Which?"],
        ),
        ("run_message_received", {"n": 1, "by": "ann", "text": "Hello"}, ["ann: Hello"]),
        (
            "agent_budget_extended",
            {"by": "ann", "old": {"max_turns": 3, "max_cost_usd": 1}, "new": {"max_turns": 27, "max_cost_usd": 2}},
            ["Budget raised by ann: 3 turns → 27 turns, $1.00 → $2.00"],
        ),
        (
            "agent_no_progress",
            {"reason": "same_call_same_outcome", "times": 3, "tool": "run_command"},
            ["No progress: run_command came to the same 3 times"],
        ),
        ("agent_finish_rejected", {"reason": "a test fails"}, ["Not finished yet: a test fails"]),
        (
            "gate_check_failed",
            {"command": "pytest", "newly_failing": ["test_a", "test_b"]},
            ["  ✘ pytest", "    test_a", "    test_b"],
        ),
        ("gate_baseline_completed", {"command": "pytest", "status": "failed"}, ["Before the work: pytest fails"]),
    ],
)
def test_an_event_is_told_in_words(kind: str, data: dict[str, Any], lines: list[str]) -> None:
    assert told(kind, **data) == lines


def test_the_end_of_a_review_shows_its_findings() -> None:
    findings = [
        {"file": "a.py", "line": 3, "severity": "major", "message": f"Leaks {EVIL}\nbadly", "suggestion": "Close it."},
        {"file": "b.py", "line": None, "severity": "info", "message": "Fine.", "suggestion": None},
    ]
    lines = closed(findings=findings)
    assert lines[0].startswith("a.py:3 major Leaks ␛]0;owned")
    assert lines[1:4] == ["    badly", "    → Close it.", "b.py info Fine."]


def test_the_end_of_a_suite_run_names_the_failing_tests() -> None:
    tests = {"passed": 4, "failed": 25, "skipped": 1, "failing": [f"test_{n}" for n in range(25)]}
    suite = {"name": "pytest", "command": "pytest -q", "status": "failed", "duration_ms": 1500, "tests": tests}
    lines = closed(suites=[suite])
    assert lines[:2] == ["Suite   pytest failed: 4 passed, 25 failed, 1 skipped, 1.5 s", "  ✘ test_0 fails"]
    assert "  … 5 more (--json has all)" in lines


def test_the_end_shows_story_gate_and_durations() -> None:
    check = {"command": "pytest", "status": "failed", "newly_failing": ["test_a"]}
    lines = closed(
        story={"id": "US-1", "title": "Log in", "verdict": "FAILED"},
        gate={"status": "failed", "summary": "1 check: 1 failed", "checks": [check]},
        durations_ms={"clone": 1200, "agent": 65_000},
    )
    for line in (
        "Story   US-1 Log in: FAILED",
        "Gate    failed: 1 check: 1 failed",
        "  ✘ test_a fails now",
        "Time    clone 1.2 s, agent 1 min 05 s",
    ):
        assert line in lines


def test_long_output_is_bounded_and_the_rest_is_counted() -> None:
    narrator = Narrator()
    narrator.tell(event_of(event(1, "tool_started", tool="run_command", command="make")))
    text = "".join(f"line {n}\n" for n in range(OUTPUT_LINES + 30))
    shown = [
        line.text
        for part in (text[:100], text[100:])  # wherever the output was cut into events
        for line in narrator.tell(event_of(event(2, "tool_output", text=part)))
    ]
    closing = narrator.tell(event_of(event(3, "tool_completed", exit_code=2, duration_ms=1500)))
    assert shown == [f"    line {n}" for n in range(OUTPUT_LINES)]
    assert [line.text for line in closing] == ["    … 30 more lines in the log", "    exit 2, 1.5 s"]


def test_output_that_was_left_out_of_the_events_is_counted_too() -> None:
    narrator = Narrator()
    narrator.tell(event_of(event(1, "tool_output", text="", omitted_bytes=5 * 1024**2)))
    closing = narrator.tell(event_of(event(2, "tool_completed", exit_code=0, duration_ms=10)))
    assert closing[0].text == "    … 5.0 MB and more in the log"


@pytest.mark.parametrize("kind", ["run_recovered", "run_suspended", "run_cancelled", "run_failed", "run_timed_out"])
def test_what_a_lost_sandbox_had_begun_is_over_with_it(kind: str) -> None:
    narrator = Narrator()
    narrator.tell(event_of(event(1, "tool_started", tool="run_command", command="make")))
    narrator.tell(event_of(event(2, "tool_output", text="\n" * OUTPUT_LINES + "hidden\nhalf a line")))
    closing = narrator.tell(event_of(event(3, kind, reason="paused")))
    assert closing[0].text == "    … 2 more lines in the log"
    assert [line.text for line in narrator.tell(event_of(event(4, "tool_output", text="new\n")))] == ["    new"]


def test_a_last_line_without_a_newline_is_shown() -> None:
    narrator = Narrator()
    assert narrator.tell(event_of(event(1, "tool_output", text="half a li"))) == []
    closing = narrator.tell(event_of(event(2, "tool_completed", exit_code=0, duration_ms=10)))
    assert [line.text for line in closing] == ["    half a li", "    exit 0, 0.0 s"]


def test_a_red_check_names_the_first_tests_that_are_newly_failing() -> None:
    names = [f"test_{number}" for number in range(7)]
    lines = told("gate_check_failed", command="pytest", newly_failing=names)
    assert lines == ["  ✘ pytest", *(f"    {name}" for name in names[:5]), "    and 2 more"]


def test_how_a_check_ended_before_the_work_is_told() -> None:
    assert told("gate_baseline_completed", command="pytest", status="failed") == ["Before the work: pytest fails"]


def test_the_live_view_shows_lines_the_gate_and_the_outcome() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100, highlight=False, markup=False)
    gate = {"status": "failed", "summary": "red", "checks": [{"command": "pytest [x]", "status": "failed"}]}
    run = a_run(status="failed", result={"gate": gate}, error={"type": "gate_failed", "message": "The gate is red."})
    with ConsoleView(console) as view:
        view.event(event_of(event(1, "agent_message", text=f"Working {EVIL}")))
        view.ended(Ending(run, None, Link("https://s3/log", "soon")))
    shown = screen.getvalue()
    for words in ("Working ␛]0;owned", "Quality gate", "pytest [x]", "failed: The gate is red.", "https://s3/log"):
        assert words in shown
    assert "\x1b]0;" not in shown


def test_no_color_means_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert not is_animated(Console(file=io.StringIO(), force_terminal=True))


def test_a_diff_is_coloured_by_line_and_bounded() -> None:
    lines = diff_lines("+++ b/x\n@@ -1 +1 @@\n-old\n+new\n same\n", limit=4, run_id=RUN_ID)
    assert [line.style for line in lines] == ["title", "hunk", "removed", "added", "dim"]
    assert lines[-1].text == f"… 1 more lines: sandpiper diff {RUN_ID}"


def test_a_run_that_never_had_a_sandbox_can_be_closed() -> None:
    run = a_run(status="cancelled")
    assert [line.text for line in closing_lines(run, None, None)] == ["", f"{RUN_ID} cancelled"]


def test_a_run_whose_sandboxes_were_lost_says_what_it_cost() -> None:
    run = a_run(status="failed", usage={"turns": 2, "input_tokens": 10, "output_tokens": 5, "cost_usd": 0.25})
    assert closing_lines(run, None, None)[-1].text == "Cost    $0.2500 (2 turns, 10 tokens in, 5 out)"


def test_the_end_names_the_pull_request() -> None:
    url = "https://github.com/acme/till/pull/2"
    assert closed(pull_request={"number": 2, "url": url, "draft": True})[-2:] == ["Pull    #2 (draft)", url]


def test_a_summary_that_the_error_has_said_is_not_said_again() -> None:
    error = {"type": "agent_loop_error", "message": "The agent could not do the task: no compiler."}
    run = a_run(status="failed", error=error, result={"summary": "no compiler."})
    assert "".join(line.text for line in closing_lines(run, None, None)).count("no compiler.") == 1


def test_figures_are_written_for_people() -> None:
    assert [seconds(0.04), seconds(12.3), seconds(95)] == ["0.0 s", "12 s", "1 min 35 s"]
    assert [byte_size(7), byte_size(2048), byte_size(5 * 1024**2)] == ["7 bytes", "2.0 KB", "5.0 MB"]
    assert one_line("a\n b" + "c" * 9, 6) == "a bcc…"


@pytest.mark.parametrize(("files", "words"), [(0, "none"), (1, "1 file, +2 -1"), (2, "2 files, +2 -1")])
def test_the_number_of_changed_files_is_told_in_good_english(files: int, words: str) -> None:
    stat = {"files": files, "insertions": 2, "deletions": 1}
    run = {"run_id": RUN_ID, "status": "completed", "result": {"diff_stat": stat}}
    assert f"Changes {words}" in [line.text for line in closing_lines(run, None, None)]
