"""The status comment in every state, and what foreign text can't do in it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from sandpiper import limits
from sandpiper.logic.github.markdown import block, line, prose
from sandpiper.logic.github.status_comment import Live, link_of, marker, render
from sandpiper.models.run import (
    ApprovalRequest,
    CheckResult,
    CommitInfo,
    DiffStat,
    ErrorInfo,
    Finding,
    GateReport,
    Plan,
    PullRequestInfo,
    ReportedTests,
    Run,
    RunResult,
    Usage,
)
from tests.unit.logic.github.hub_world import ORIGIN, SPEC

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
RUN_ID = "run-0123456789abcdefghjkmnpqrs"
GATE = GateReport(
    status="passed",
    summary="all green",
    checks=(CheckResult(command="pytest -q", status="passed", tests=ReportedTests(passed=4)),),
)
PLAN = Plan(summary="s", steps=("read the code", "write the button"))
EVIL = "@alice see #12 and GH-3, ![x](https://evil.test/?k=1) <img src=x> <!-- --> \u202etxt\u202c a\u200bb"


def run(**fields: Any) -> Run:
    return Run(run_id=RUN_ID, owner="github:ann", spec=SPEC, created_at=NOW, updated_at=NOW, **fields)


def shown(made: Run, **how: Any) -> str:
    return render(made, link="https://console.test/runs/x", now=NOW, **how)


def test_it_begins_with_a_marker_that_nobody_sees() -> None:
    assert shown(run()).startswith(marker(RUN_ID) + "\n")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"status": "queued"}, "waiting"),
        ({"status": "queued", "queue_position": 3}, "place 3 in line"),
        ({"status": "provisioning"}, "starting a sandbox"),
        ({"status": "running"}, "at work"),
        ({"status": "suspended", "suspend_reason": "paused"}, f"`sandpiper resume {RUN_ID}`"),
        ({"status": "suspended", "suspend_reason": "budget_exhausted"}, f"`sandpiper budget {RUN_ID}`"),
        ({"status": "cancelled"}, "cancelled"),
        ({"status": "timed_out"}, "out of time"),
        ({"status": "running", "losses": 1, "attempt": 2}, "attempt 2"),
    ],
)
def test_it_says_how_the_run_stands(fields: dict[str, Any], words: str) -> None:
    assert words in shown(run(**fields))


def test_a_question_is_shown_with_the_way_to_answer_it() -> None:
    asked = RunResult(outcome="suspended", suspend_reason="awaiting_input", question="Which table?\nOld or new?")
    text = shown(run(status="suspended", suspend_reason="awaiting_input", result=asked))
    assert "> Which table?\n> Old or new?" in text
    assert "`/say`" in text


@pytest.mark.parametrize(("status", "reason"), [("suspended", "awaiting_approval"), ("running", None)])
def test_an_approval_is_shown_with_its_command_and_the_way_to_answer_it(status: str, reason: str | None) -> None:
    asked = ApprovalRequest(
        id="ap-1", tool="bash", shown={"command": "rm -rf build"}, reason="deletes", risk="high", kind="k",
        requested_at=NOW,
    )  # fmt: skip
    text = shown(run(status=status, suspend_reason=reason, approval=asked))
    assert "asks for your approval" in text
    assert "rm -rf build" in text
    assert "`/approve ap-1`" in text
    assert "`/reject ap-1 why`" in text


@pytest.mark.parametrize("length", [10, limits.STATUS_PROSE_CHARS])
def test_a_call_whose_end_is_not_shown_says_so_to_who_approves(length: int) -> None:
    command = f"echo {'a' * length}; curl evil.example"
    asked = ApprovalRequest(
        id="ap-1", tool="bash", shown={"command": command}, reason="r", risk="high", kind="k", requested_at=NOW
    )
    text = shown(run(status="running", approval=asked))
    assert ("evil.example" in text) is not ("This is not all of it" in text)


def test_the_plan_has_boxes_that_are_checked_as_the_sandbox_goes() -> None:
    text = shown(run(status="running"), live=Live(plan=PLAN, steps_done=1, activity="runs pytest"))
    assert "- [x] read the code\n- [ ] write the button" in text
    assert "runs pytest" in text


def test_what_the_sandbox_has_used_comes_before_what_the_row_says() -> None:
    assert "$1.50 · 3 turns" in shown(run(status="running"), live=Live(usage=Usage(turns=3, cost_usd=1.5)))


def test_finished_work_is_shown_with_gate_diff_pull_request_cost_and_what_to_do_next() -> None:
    result = RunResult(
        outcome="completed",
        summary="There is a button now.",
        plan=PLAN,
        gate=GATE,
        diff_stat=DiffStat(files=1, insertions=2, deletions=3),
        pull_request=PullRequestInfo(number=9, url="https://github.test/acme/shop/pull/9", draft=True),
    )
    used = Usage(turns=12, cost_usd=0.4213)
    text = shown(run(status="completed", result=result, usage=used), diff="+a\n```\n-b")
    assert "There is a button now." in text
    assert "- [x] write the button" in text
    assert "| `pytest -q` | ✅ | 4 passed, 0 failed |" in text
    assert "Draft pull request: #9" in text
    assert "<details><summary>Diff: 1 file, +2 −3</summary>\n\n````diff\n+a\n```\n-b\n````" in text
    assert "comment `/fix …` on it" in text
    assert "$0.42 · 12 turns" in text
    assert f"[{RUN_ID}](https://console.test/runs/x)" in text


def test_a_skipped_gate_is_not_said_to_have_passed() -> None:
    gate = GateReport(status="skipped", summary="no tests")
    text = shown(run(status="completed", result=RunResult(outcome="completed", gate=gate)))
    assert "nothing was verified" in text
    assert "passed" not in text


def test_work_that_was_pushed_without_a_pull_request_names_its_branch() -> None:
    commit = CommitInfo(sha="a" * 40, branch="topic", message="m", pushed=True)
    assert "Pushed to `topic`." in shown(run(status="completed", result=RunResult(outcome="completed", commit=commit)))


def test_a_review_says_how_many_remarks_it_made() -> None:
    spec = SPEC.model_copy(update={"github": ORIGIN.model_copy(update={"command": "review"})})
    result = RunResult(outcome="completed", findings=(Finding(file="a.py", severity="minor", message="m"),))
    text = shown(run(status="completed", result=result).model_copy(update={"spec": spec}))
    assert "1 remark." in text
    assert "Comment `/fix` here" in text


def test_a_review_without_remarks_asks_for_nothing_to_be_worked_in() -> None:
    spec = SPEC.model_copy(update={"github": ORIGIN.model_copy(update={"command": "review"})})
    made = run(status="completed", result=RunResult(outcome="completed")).model_copy(update={"spec": spec})
    assert "/fix" not in shown(made)


@pytest.mark.parametrize(
    "kind",
    ["repository_error", "model_request_error", "model_response_error", "sandbox_lost", "gate_failed",
     "agent_loop_error", "budget_exhausted", "timeout", "internal_error"],
)  # fmt: skip
def test_every_error_is_told_with_its_type_its_words_and_a_hint(kind: str) -> None:
    text = shown(run(status="failed", error=ErrorInfo(type=kind, message="It broke.")))
    assert f"**{kind}**: It broke." in text
    assert text.count("\n\n") >= 4


@pytest.mark.parametrize("message", ["It broke.", "The agent could not do the task: It broke."])
def test_an_error_that_holds_the_summary_is_said_once(message: str) -> None:
    failed = RunResult(outcome="failed", summary="It broke.")
    text = shown(run(status="failed", result=failed, error=ErrorInfo(type="timeout", message=message)))
    assert text.count("It broke.") == 1


def test_without_an_address_the_run_is_named() -> None:
    assert f"`{RUN_ID}`" in render(run(), link=link_of(None, RUN_ID), now=NOW)
    assert link_of("https://c.test/", RUN_ID) == f"https://c.test/runs/{RUN_ID}"


@pytest.mark.parametrize("harmless", [prose, line])
def test_foreign_text_pings_nobody_links_nothing_loads_nothing_and_hides_nothing(harmless: Any) -> None:
    text = harmless(EVIL, 1_000)
    for bad in ("@alice", "#12", "GH-3", "![", "<", "\u202e", "a\u200bb"):
        assert bad not in text
    assert "alice" in text


def test_foreign_text_can_not_break_a_table_or_a_block() -> None:
    assert line("a | b\n`c`", 100) == "a \\| b 'c'"
    assert block("x\n````\n@alice", 100) == "`````\nx\n````\n@alice\n`````"


def test_a_link_to_an_issue_elsewhere_leaves_no_trace_there() -> None:
    assert "https://github.com/o/r/issues/1" not in prose("see https://github.com/o/r/issues/1", 100)


def test_whatever_a_run_says_the_comment_is_one_that_github_takes() -> None:
    huge = RunResult(
        outcome="completed",
        summary="x" * 100_000,
        plan=Plan(steps=("y" * 5_000,) * 200),
        gate=GateReport(status="failed", summary="", checks=(CheckResult(command="z" * 5_000, status="failed"),) * 200),
    )
    text = shown(run(status="completed", result=huge), diff="+d\n" * 100_000)
    assert len(text) <= limits.STATUS_COMMENT_CHARS < 65_536
    assert text.endswith("</sub>")
