from __future__ import annotations

import pytest

from sandpiper.errors import Conflict, NotFound, Unavailable
from sandpiper.logic.start_run import Starter, wait_for_end
from sandpiper.models.spec import RunSpec
from sandpiper.testing.fakes import FakeWorkflow
from tests.unit.logic.world import ANN, BOB, SPEC, World


class BrokenWorkflow(FakeWorkflow):
    def start(self, run_id: str, payload: object) -> None:
        message = "Step Functions is away"
        raise ConnectionError(message)


def test_a_started_run_is_queued_and_has_an_execution_of_its_name(world: World) -> None:
    run = world.starter.start(SPEC, ANN, {})
    assert (run.status, run.owner, run.org) == ("queued", "ann", "acme")
    assert world.workflow.started == {run.run_id: {"run_id": run.run_id}}
    assert world.event_types(run.run_id) == ["run_queued"]


def test_secrets_are_kept_apart_from_the_run_and_its_events(world: World) -> None:
    run = world.starter.start(SPEC, ANN, {"github_token": "ghs_secret"})
    assert world.secrets.get(run.run_id) == {"github_token": "ghs_secret"}
    events = world.runs.events(run.run_id, after=0, limit=10)
    assert "ghs_secret" not in run.model_dump_json() + "".join(event.model_dump_json() for event in events)


def test_options_without_effect_are_said_in_an_event(world: World) -> None:
    run = world.starter.start(SPEC.model_copy(update={"unused_options": ("temperature",)}), ANN, {})
    assert world.last_event(run.run_id) == (
        "warning",
        {"message": "Accepted without effect: temperature.", "options": ["temperature"]},
    )


def test_a_run_that_cannot_be_started_says_so_and_the_caller_may_try_again() -> None:
    world = World(workflow=BrokenWorkflow())
    with pytest.raises(Unavailable) as refusal:
        world.starter.start(SPEC, ANN, {"github_token": "t"})
    assert refusal.value.retryable
    (run,) = world.runs.list_by_owner("ann", status=None, repo=None, limit=10, cursor=None).items
    assert run.status == "failed"
    assert run.error is not None
    assert run.error.type == "internal_error"
    assert run.ended_at == world.clock.now()
    assert world.secrets.stored == {}
    assert world.event_types(run.run_id) == ["run_queued", "run_failed"]


def test_a_start_whose_answer_was_lost_counts_when_the_run_has_moved_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start_and_lose_the_answer(run_id: str, _: object) -> None:
        world.runs.change(run_id, allowed=("queued",), changes={"status": "provisioning"})
        raise ConnectionError

    monkeypatch.setattr(world.workflow, "start", start_and_lose_the_answer)
    assert world.status(world.starter.start(SPEC, ANN, {}).run_id) == "provisioning"


def test_the_caller_may_try_again_even_if_the_failure_cannot_be_written_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(workflow=BrokenWorkflow())

    def broken(*_: object, **__: object) -> None:
        raise ConnectionError

    monkeypatch.setattr(world.runs, "change", broken)
    with pytest.raises(Unavailable):
        world.starter.start(SPEC, ANN, {})


def test_the_same_key_gives_the_same_run(world: World) -> None:
    first = world.starter.start(SPEC, ANN, {}, "k")
    assert world.starter.start(SPEC, ANN, {}, "k").run_id == first.run_id
    assert len(world.workflow.started) == 1


def test_the_same_key_of_another_owner_is_another_run(world: World) -> None:
    assert world.starter.start(SPEC, ANN, {}, "k").run_id != world.starter.start(SPEC, BOB, {}, "k").run_id


def test_the_same_key_with_another_body_is_a_conflict(world: World) -> None:
    world.starter.start(SPEC, ANN, {}, "k")
    with pytest.raises(Conflict):
        world.starter.start(RunSpec(task="something else"), ANN, {}, "k")


def test_a_run_whose_starter_died_before_the_execution_is_started_by_the_repeat(world: World) -> None:
    run_id = world.starter.start(SPEC, ANN, {}, "k").run_id
    world.workflow.started.clear()
    world.starter.start(SPEC, ANN, {}, "k")
    assert list(world.workflow.started) == [run_id]


def test_a_key_whose_start_failed_can_be_used_again() -> None:
    world = World(workflow=BrokenWorkflow())
    with pytest.raises(Unavailable):
        world.starter.start(SPEC, ANN, {}, "k")
    mended = FakeWorkflow()
    starter = Starter(world.runs, world.secrets, mended, world.clock, world.rules)
    run = starter.start(SPEC, ANN, {}, "k")
    assert run.status == "queued"
    assert list(mended.started) == [run.run_id]
    assert starter.start(SPEC, ANN, {}, "k").run_id == run.run_id


def test_a_finished_run_is_not_started_again_by_its_key(world: World) -> None:
    run = world.starter.start(SPEC, ANN, {}, "k")
    world.runs.change(run.run_id, allowed=("queued",), changes={"status": "completed"})
    world.workflow.started.clear()
    assert world.starter.start(SPEC, ANN, {}, "k").status == "completed"
    assert world.workflow.started == {}


def test_waiting_ends_when_the_run_ends(world: World) -> None:
    run = world.starter.start(SPEC, ANN, {})
    pauses: list[int] = []

    def pause() -> None:
        pauses.append(1)
        if len(pauses) == 2:
            world.runs.change(run.run_id, allowed=("queued",), changes={"status": "completed"})

    assert wait_for_end(world.runs, run, polls=10, pause=pause).status == "completed"
    assert len(pauses) == 2


def test_waiting_gives_up_after_so_many_looks(world: World) -> None:
    run = world.starter.start(SPEC, ANN, {})
    assert wait_for_end(world.runs, run, polls=3, pause=lambda: None).status == "queued"


def test_an_unknown_run_is_not_found(world: World) -> None:
    with pytest.raises(NotFound):
        world.get("run-00000000000000000000000000")
