"""Runs that ask a person first, and runs that are paused: real supervisor, wall and git; model and AWS are fakes."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from sandpiper.logic.control import Answer, Controls
from sandpiper.logic.quotas import QuotaRules
from sandpiper.models.identity import Identity
from sandpiper.models.quota import Quota
from sandpiper.models.spec import RunSpec
from sandpiper.testing.fakes import FakeQuotas
from tests.unit.sandbox.git_server import TOKEN, GitServer
from tests.unit.sandbox.world import RUN_ID, World, done, plan, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox_task.model.port import Message

PERSON = Identity(user="user")
FILES = {"answer": "41\n", ".sandpiper.yml": "checks: ['true']\n"}
DISCARD = "echo tried >> tried; git reset --hard"
YES = Answer("approve")


@pytest.fixture
def patient(world: World) -> World:
    """Waits in the sandbox for as long as it is allowed to."""
    world.approval_wait_seconds = 600
    return world


@pytest.fixture
def impatient(world: World) -> World:
    world.approval_wait_seconds = 0
    return world


def spec(git_server: GitServer, **more: Any) -> RunSpec:
    url = git_server.create("r", FILES)
    return RunSpec(**{"task": "Change it", "type": "bug-fix", "repo": "o/r", "repo_url": url, **more})


def controls(world: World) -> Controls:
    quotas = QuotaRules(FakeQuotas(), world.clock, Quota())
    return Controls(world.runs, world.workflow, world.clock, quotas)


def answer(world: World, given: Answer) -> None:
    asked = world.runs.get(RUN_ID).approval
    assert asked is not None
    controls(world).answer(RUN_ID, asked.id, given, PERSON)


@contextmanager
def when(condition: Callable[[], object], act: Callable[[], object]) -> Iterator[None]:
    """Acts as soon as the condition holds, beside what goes on here."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            if condition():
                act()
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def is_asked(world: World) -> Callable[[], object]:
    return lambda: "approval_requested" in world.types and world.runs.get(RUN_ID).approval


def words(message: Message) -> str:
    return "\n".join(str(getattr(block, "text", getattr(block, "content", ""))) for block in message.blocks)


def test_an_approval_in_time_lets_the_call_be_made_in_the_same_sandbox(patient: World, git_server: GitServer) -> None:
    with when(is_asked(patient), lambda: answer(patient, YES)):
        model = patient.perform(spec(git_server), [plan(), run(DISCARD), done()])
    assert patient.result.outcome == "completed"
    assert "HEAD is now at" in words(model.requests[2].messages[-1])
    (asked,) = patient.told("approval_requested")
    assert (asked["tool"], asked["command"], asked["risk"], asked["call"]) == (
        "run_command",
        DISCARD,
        "medium",
        "call-2-0",
    )
    assert asked["reason"]
    types = [type_ for type_ in patient.types if type_.startswith(("approval_", "tool_started", "run_suspended"))]
    assert types == ["tool_started", "approval_requested", "approval_resolved", "tool_started", "tool_started"]


def test_a_rejection_and_its_note_are_what_the_model_is_told(patient: World, git_server: GitServer) -> None:
    with when(is_asked(patient), lambda: answer(patient, Answer("reject", "Use git stash"))):
        model = patient.perform(spec(git_server), [plan(), run(DISCARD), run("ls"), done()])
    (result,) = [block for block in model.requests[2].messages[-1].blocks if block.kind == "tool_result"]
    assert result.is_error
    assert "Use git stash" in result.content
    assert "tried" not in words(model.requests[3].messages[-1])


def test_without_an_answer_the_run_is_suspended_and_goes_on_with_the_same_request(
    impatient: World, git_server: GitServer
) -> None:
    both = [*run(DISCARD), *run("echo once >> once")]
    impatient.perform(spec(git_server), [plan(), both])
    result = impatient.result
    assert (result.outcome, result.suspend_reason) == ("suspended", "awaiting_approval")
    assert impatient.workflow.answers[impatient.task_token]["reason"] == "awaiting_approval"
    assert result.approval == impatient.runs.get(RUN_ID).approval
    assert result.approval is not None
    assert result.approval.shown["command"] == DISCARD
    answer(impatient, YES)
    model = impatient.go_on([run("cat once"), done()])
    assert impatient.result.outcome == "completed"
    first, second = [block for block in model.requests[0].messages[-1].blocks if block.kind == "tool_result"]
    assert ("HEAD is now at" in first.content, second.call_id) == (True, "call-2-1")
    assert len(impatient.told("approval_requested")) == 1
    assert words(model.requests[1].messages[-1]).startswith("once\n[exit")


def test_calls_that_were_approved_are_not_made_again_when_a_later_one_has_to_wait(
    impatient: World, git_server: GitServer
) -> None:
    both = [*run("echo a >> ../a 2>/dev/null || echo a >> a; git push"), *run("echo b >> b; npm publish")]
    impatient.perform(spec(git_server), [plan(), both])
    answer(impatient, YES)
    impatient.go_on([])
    assert impatient.result.suspend_reason == "awaiting_approval"
    answer(impatient, YES)
    impatient.go_on([done()])
    started = [event["command"] for event in impatient.told("tool_started") if event["tool"] == "run_command"]
    assert started == [arguments["command"] for _, arguments in both]
    assert len({event["approval_id"] for event in impatient.told("approval_requested")}) == 2


def test_an_approval_for_the_run_holds_for_its_kind_and_over_a_resume(impatient: World, git_server: GitServer) -> None:
    impatient.perform(spec(git_server), [plan(), run(DISCARD)])
    answer(impatient, Answer("approve", scope="run"))
    impatient.go_on([run("git clean -fd"), run("git push")])
    assert [event["kind"] for event in impatient.told("approval_requested")] == ["discard", "push"]
    answer(impatient, YES)
    impatient.go_on([run("git reset --hard HEAD"), done()])
    assert impatient.result.outcome == "completed"
    assert len(impatient.told("approval_requested")) == 2


@pytest.mark.parametrize(("trust", "asked"), [("strict", 1), ("balanced", 0), ("trusted", 0)])
def test_ordinary_commands_are_asked_about_in_strict_runs_only(
    impatient: World, git_server: GitServer, trust: str, asked: int
) -> None:
    impatient.perform(spec(git_server, trust_level=trust), [plan(), run("ls"), done()])
    assert len(impatient.told("approval_requested")) == asked
    assert impatient.result.outcome == ("suspended" if asked else "completed")


def test_a_trusted_run_is_never_asked(impatient: World, git_server: GitServer) -> None:
    impatient.perform(spec(git_server, trust_level="trusted"), [plan(), run(DISCARD), done()])
    assert impatient.result.outcome == "completed"


def test_code_is_asked_about_like_commands(impatient: World, git_server: GitServer) -> None:
    code = [("run_code", {"language": "python", "code": "import os\nos.system('git push')"})]
    impatient.perform(spec(git_server), [plan(), code])
    (asked,) = impatient.told("approval_requested")
    assert (asked["tool"], asked["kind"]) == ("run_code", "push")


@pytest.mark.parametrize(
    ("call", "seen"),
    [
        (("write_file", {"path": ".github/workflows/ci.yml", "content": "on: push\n"}), "on: push\n"),
        (("edit_file", {"path": ".sandpiper.yml", "edits": [{"old": "a", "new": "b"}]}), "replace: a\nby: b"),
    ],
)
def test_a_file_that_runs_later_is_not_approved_unseen(
    impatient: World, git_server: GitServer, call: tuple[str, dict[str, Any]], seen: str
) -> None:
    impatient.perform(spec(git_server, trust_level="strict"), [plan(), [call]])
    (asked,) = impatient.told("approval_requested")
    approval = impatient.runs.get(RUN_ID).approval
    assert approval is not None
    assert (asked["content"], approval.shown["content"], approval.kind) == (seen, seen, "runs_later")


def test_a_run_that_waits_for_an_approval_is_cancelled_at_once(patient: World, git_server: GitServer) -> None:
    with when(is_asked(patient), lambda: patient.stop.request("cancelled")):
        patient.perform(spec(git_server), [plan(), run(DISCARD)])
    assert patient.result.outcome == "cancelled"


def test_a_secret_in_a_command_is_shown_to_nobody(impatient: World, git_server: GitServer) -> None:
    impatient.perform(spec(git_server), [plan(), run(f"git push https://x:{TOKEN}@host/r")])
    assert impatient.result.suspend_reason == "awaiting_approval"
    assert TOKEN not in impatient.everything_that_left()
    assert TOKEN not in impatient.runs.get(RUN_ID).model_dump_json()


def test_a_very_long_call_is_whole_in_the_log_and_shown_as_far_as_it_goes(
    impatient: World, git_server: GitServer
) -> None:
    command = f"echo {'x' * 30_000}; git push"
    impatient.perform(spec(git_server), [plan(), run(command)])
    (asked,) = impatient.told("approval_requested")
    approval = impatient.runs.get(RUN_ID).approval
    assert approval is not None
    assert (asked["approval_id"], len(asked["command"]) < 2_100) == (approval.id, True)
    assert 20_000 < len(approval.shown["command"]) < 20_100
    assert "10,015 more characters" in approval.shown["command"]
    assert command in impatient.log


def test_a_finish_beside_a_call_that_has_to_wait_is_not_lost(impatient: World, git_server: GitServer) -> None:
    impatient.perform(spec(git_server), [plan(), [*done("All done."), *run(DISCARD)]])
    answer(impatient, YES)
    impatient.go_on([])
    assert (impatient.result.outcome, impatient.result.summary) == ("completed", "All done.")


# pause


def is_working(world: World, command: str) -> Callable[[], object]:
    return lambda: any(event.get("command") == command for event in world.told("tool_started"))


def test_a_pause_lets_the_command_in_hand_finish_and_nothing_is_done_twice(world: World, git_server: GitServer) -> None:
    slow = "sleep 1.5; echo slow >> done"
    with when(is_working(world, slow), lambda: controls(world).pause(RUN_ID, PERSON)):
        world.perform(spec(git_server), [plan(), [*run(slow), *run("echo next >> done")]])
    assert (world.result.outcome, world.result.suspend_reason) == ("suspended", "paused")
    assert "+slow" in world.diff
    assert "+next" not in world.diff
    controls(world).resume(RUN_ID, PERSON)
    model = world.go_on([run("cat done"), done()])
    assert world.result.outcome == "completed"
    assert words(model.requests[1].messages[-1]).startswith("slow\nnext\n")


def test_a_pause_now_breaks_off_the_command_in_hand_and_the_model_is_told(world: World, git_server: GitServer) -> None:
    endless = "echo begun >> done; sleep 600"
    with when(is_working(world, endless), lambda: controls(world).pause(RUN_ID, PERSON, now=True)):
        world.perform(spec(git_server), [plan(), run(endless)])
    assert (world.result.outcome, world.result.suspend_reason) == ("suspended", "paused")
    assert "+begun" in world.diff
    controls(world).resume(RUN_ID, PERSON)
    model = world.go_on([run("cat done"), done()])
    assert "paused while this was done" in words(model.requests[0].messages[-1])
    assert words(model.requests[1].messages[-1]).startswith("begun\n[exit")


def test_a_pause_before_the_first_turn_keeps_the_task(world: World, git_server: GitServer) -> None:
    asked = spec(git_server)
    world.store(asked)
    world.runs.put_control(RUN_ID, {"action": "pause", "by": "user", "data": {"now": True}})
    assert world.attempt_with([]).requests == []
    assert world.result.suspend_reason == "paused"
    controls(world).resume(RUN_ID, PERSON)
    model = world.go_on([plan(), done()])
    assert asked.task in words(model.requests[0].messages[0])


def test_a_pause_while_an_approval_is_waited_for_keeps_the_request(patient: World, git_server: GitServer) -> None:
    with when(is_asked(patient), lambda: controls(patient).pause(RUN_ID, PERSON, now=True)):
        patient.perform(spec(git_server), [plan(), run(DISCARD)])
    assert patient.result.suspend_reason == "paused"
    controls(patient).resume(RUN_ID, PERSON)
    answer(patient, YES)
    model = patient.go_on([done()])
    assert "HEAD is now at" in words(model.requests[0].messages[-1])
    assert len(patient.told("approval_requested")) == 1
