"""The status comment, kept up to date by the control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandpiper.errors import GitHubError
from sandpiper.logic.outcomes import Ending
from sandpiper.models.run import PullRequestInfo, RunResult
from tests.unit.logic.github.hub_world import BUSY, OWNER, SPEC, HubWorld, delivery
from tests.unit.logic.world import SPEC as BY_HTTPS

if TYPE_CHECKING:
    from sandpiper.models.run import Run


@pytest.fixture
def here() -> HubWorld:
    return HubWorld()


def test_the_same_comment_is_edited_as_the_run_goes(here: HubWorld) -> None:
    run_id = here.run_here()
    here.teller.tell(run_id)
    here.world.steps.finalize(run_id, Ending(cancelled=True))
    here.teller.tell(run_id)
    assert list(here.hub.comments) == [1]
    assert "cancelled" in here.hub.comments[1]
    assert here.hub.edits == 1


def test_a_run_that_waits_is_reached_from_the_pull_request_that_it_opened(here: HubWorld) -> None:
    run_id = here.run_here()
    pull = PullRequestInfo(number=9, url="u")
    waits = RunResult(outcome="suspended", suspend_reason="awaiting_ci", pull_request=pull)
    here.world.suspend(run_id, waits)
    assert here.orders.obey(delivery("", verb="status", number=9, is_pull=True)) == "refused"
    here.teller.tell(run_id)
    assert here.orders.obey(delivery("", verb="status", number=9, is_pull=True, id="d-2")) == "status"
    assert here.orders.obey(delivery("", verb="cancel", number=9, is_pull=True, id="d-3")) == "cancel"
    assert here.orders.obey(delivery("", verb="status", number=10, is_pull=True, id="d-4", run_id=run_id)) == "refused"


def test_a_run_that_was_asked_for_by_https_is_told_nowhere(here: HubWorld) -> None:
    here.teller.tell(here.world.running(spec=BY_HTTPS))
    assert not here.hub.comments
    assert not here.hubs


def test_a_comment_whose_id_was_lost_is_found_by_its_marker(here: HubWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = here.run_here()
    with monkeypatch.context() as dying:
        dying.setattr(here.world.runs, "revise", _die)
        with pytest.raises(KeyboardInterrupt):
            here.teller.tell(run_id)
    here.teller.tell(run_id)
    assert list(here.hub.comments) == [1]
    assert here.world.get(run_id).status_comment_id == 1


def test_who_is_late_leaves_and_whoever_held_the_comment_looks_again(here: HubWorld) -> None:
    run_id = here.run_here()

    def meanwhile(number: int, body: str) -> int:
        here.world.steps.finalize(run_id, Ending(cancelled=True))
        here.teller.tell(run_id)  # as another function would
        here.hub.comments[1] = body
        return 1

    here.hub.comment = meanwhile  # type: ignore[method-assign]
    here.teller.tell(run_id)
    assert list(here.hub.comments) == [1]
    assert "cancelled" in here.hub.comments[1]


def test_a_failure_that_may_pass_is_tried_again_later(here: HubWorld) -> None:
    run_id = here.run_here()
    here.hub.failures = [BUSY]
    with pytest.raises(GitHubError):
        here.teller.tell(run_id)
    here.teller.tell(run_id)
    assert list(here.hub.comments) == [1]


def test_a_failure_that_stays_is_an_event_of_the_run(here: HubWorld) -> None:
    run_id = here.run_here()
    here.hub.failures = [GitHubError("GitHub answered with 403: This installation has been suspended", code=403)]
    here.teller.tell(run_id)
    name, data = here.world.last_event(run_id)
    assert name == "warning"
    assert "This installation has been suspended" in data["message"]


def test_a_comment_that_somebody_deleted_is_not_written_again(here: HubWorld) -> None:
    run_id = here.run_here()
    here.teller.tell(run_id)
    here.hub.comments.clear()
    here.teller.tell(run_id)
    assert not here.hub.comments


def test_the_diff_of_finished_work_is_shown(here: HubWorld) -> None:
    run_id = here.run_here()
    here.world.blobs.put("runs/x/diff.patch", b"+new line", content_type="text/plain")
    key = here.world.hand_in(run_id, RunResult(outcome="completed", diff_key="runs/x/diff.patch"))
    here.world.steps.finalize(run_id, Ending(result_key=key))
    here.teller.tell(run_id)
    assert "+new line" in here.hub.comments[1]


@pytest.mark.parametrize("spec", [SPEC, BY_HTTPS], ids=["github", "https"])
def test_the_workflow_has_github_told_of_what_no_sandbox_tells(here: HubWorld, spec: object) -> None:
    told: list[str] = []
    steps = here.world.steps
    object.__setattr__(steps, "tell_github", told.append)
    first = here.world.running(OWNER, spec)  # type: ignore[arg-type]
    second = here.world.start(OWNER, spec)  # type: ignore[arg-type]
    here.world.acquire(second)  # waits in line
    steps.recover(first, "SandboxLost", "gone")
    here.world.steps.prepare(first)
    here.world.begin(first)
    here.world.suspend(first, RunResult(outcome="suspended", suspend_reason="paused"))
    steps.finalize(first, Ending(cancelled=True))
    assert told == ([second, first, first, first] if spec is SPEC else [])


def _die(*_: object) -> Run:
    raise KeyboardInterrupt
