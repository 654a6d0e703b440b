"""Comments that steer a run: who is heard, what they mean, and what is answered."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sandpiper.errors import GitHubError
from sandpiper.logic.github.places import place_name
from sandpiper.models.run import ApprovalRequest, RunResult
from tests.unit.logic.github.hub_world import BUSY, ORIGIN, OWNER, SPEC, HubWorld, delivery


@pytest.fixture
def here() -> HubWorld:
    return HubWorld()


def test_cancel_reaches_the_last_run_of_the_issue_whoever_started_it(here: HubWorld) -> None:
    run_id = here.run_here()
    here.hub.writers.add("bob")
    assert here.orders.obey(delivery("", verb="cancel", sender="bob")) == "cancel"
    assert here.world.get(run_id).cancel_requested
    assert [request.by for request in here.world.runs.controls(run_id, after=0)] == ["github:bob"]
    assert ("issue_comment", 70, "+1") in here.hub.reactions


def test_a_message_is_left_once_however_often_it_is_delivered(here: HubWorld) -> None:
    run_id = here.run_here()
    here.hub.failures = [None, BUSY]  # it is stored, then the reaction fails
    with pytest.raises(GitHubError):
        here.orders.obey(delivery("use the other table", verb="say"))
    here.orders.obey(delivery("use the other table", verb="say"))
    assert [request.data for request in here.world.runs.controls(run_id, after=0)] == [{"text": "use the other table"}]


@pytest.mark.parametrize(
    ("verb", "text", "data"),
    [
        ("approve", "", {"decision": "approve"}),
        ("approve", "ap-1", {"decision": "approve"}),
        ("approve", "`AP-1` go on", {"decision": "approve"}),
        ("reject", "ap-1 too dangerous", {"decision": "reject", "note": "too dangerous"}),
        ("reject", "too dangerous", {"decision": "reject", "note": "too dangerous"}),
    ],
)
def test_what_a_run_asks_is_answered_by_a_comment(here: HubWorld, verb: str, text: str, data: dict[str, Any]) -> None:
    run_id = _asking(here)
    assert here.orders.obey(delivery(text, verb=verb)) == verb
    (answer,) = here.world.runs.controls(run_id, after=0)
    assert data.items() <= answer.data.items()


@pytest.mark.parametrize("text", ["ap-2", "AP-2", "`ap-2`"])
def test_the_approval_of_something_else_approves_nothing(here: HubWorld, text: str) -> None:
    run_id = _asking(here)
    assert here.orders.obey(delivery(text, verb="approve")) == "refused"
    assert not here.world.runs.controls(run_id, after=0)
    assert "has not asked" in here.hub.comments[1]


@pytest.mark.parametrize(("seconds", "did"), [(-1, "refused"), (0, "approve"), (5, "approve")])
def test_a_yes_that_names_nothing_is_none_to_what_was_asked_after_it(here: HubWorld, seconds: int, did: str) -> None:
    here.world.clock.advance(0.9)  # GitHub tells no fractions
    run_id = _asking(here)
    said_at = here.world.clock.now().replace(microsecond=0) + timedelta(seconds=seconds)
    assert here.orders.obey(delivery("", verb="approve", said_at=said_at.isoformat())) == did
    assert len(here.world.runs.controls(run_id, after=0)) == (did == "approve")
    if did == "refused":
        assert "`/approve ap-1`" in here.hub.comments[1]


def test_a_wish_for_a_run_that_is_not_there_is_refused_in_words(here: HubWorld) -> None:
    assert here.orders.obey(delivery("", verb="cancel")) == "refused"
    assert "There is no run here" in here.hub.comments[1]


def test_a_wish_for_a_run_that_has_ended_is_refused_in_words(here: HubWorld) -> None:
    run_id = here.run_here()
    here.world.runs.change(run_id, allowed=("running",), changes={"status": "completed"})
    assert here.orders.obey(delivery("", verb="cancel")) == "refused"
    assert "has ended already" in here.hub.comments[1]


@pytest.mark.parametrize(
    ("verb", "text", "told"),
    [("cancel", "/implement anew", "`/implement` was not done"), ("cancel", "please", None), ("say", "/fix it", None)],
)
def test_a_second_command_is_not_left_out_silently(here: HubWorld, verb: str, text: str, told: str | None) -> None:
    here.run_here()
    assert here.orders.obey(delivery(text, verb=verb)) == verb
    answers = [body for body in here.hub.comments.values() if body.startswith("@ann ")]
    assert [told in answer for answer in answers if told] == ([True] if told else [])


def test_words_are_needed_to_say_something(here: HubWorld) -> None:
    here.run_here()
    assert here.orders.obey(delivery("", verb="say")) == "refused"


def test_a_run_of_another_repository_can_not_be_spoken_to_by_quoting_it(here: HubWorld) -> None:
    run_id = here.run_here()
    elsewhere = delivery("rm -rf", verb="say", run_id=run_id, repository="eve/own")
    assert here.orders.obey(elsewhere) == "refused"
    assert not here.world.runs.controls(run_id, after=0)


def _asks(here: HubWorld) -> str:
    run_id = here.run_here()
    here.hub.comments[1] = "### Sandpiper: ❓ has a question\n\n> Which *table*, old &amp; new?"
    here.world.runs.change(run_id, allowed=("running",), changes={"status_comment_id": 1})
    return run_id


def test_a_reply_that_quotes_only_the_question_reaches_its_run(here: HubWorld) -> None:
    run_id = _asks(here)
    assert here.orders.obey(delivery("The old one", verb="say", is_reply=True, quoted="table, old & new?")) == "say"
    assert [request.data for request in here.world.runs.controls(run_id, after=0)] == [{"text": "The old one"}]


@pytest.mark.parametrize(("quoted", "sender"), [("I like it", "ann"), ("I like it", "rob")])
def test_a_reply_to_somebody_else_is_met_with_silence(here: HubWorld, quoted: str, sender: str) -> None:
    run_id = _asks(here)
    overheard = delivery("Me too", verb="say", is_reply=True, quoted=quoted, sender=sender)
    assert here.orders.obey(overheard) == "not to us"
    assert (here.hub.reactions, list(here.hub.comments)) == (set(), [1])
    assert not here.world.runs.controls(run_id, after=0)


def test_a_reply_that_says_nothing_is_told_so(here: HubWorld) -> None:
    run_id = _asks(here)
    assert here.orders.obey(delivery("", verb="say", is_reply=True, run_id=run_id)) == "refused"
    assert "only quotes me" in here.hub.comments[2]


def test_a_run_is_found_by_its_repositorys_number_whatever_that_is_called_now(here: HubWorld) -> None:
    known = ORIGIN.model_copy(update={"repository_id": 7})
    run_id = here.world.running(OWNER, SPEC.model_copy(update={"github": known}))
    here.topics.note(here.world.get(run_id))
    here.watch.watch(place_name(known), "f" * 40, run_id)
    renamed = {"repository": "acme/store", "repository_id": 7}
    assert here.orders.obey(delivery("hurry", verb="say", **renamed)) == "say"
    assert here.orders.obey(delivery(verb="checks", head_sha="f" * 40, id="d-2", **renamed)) == "woken"
    assert here.orders.obey(delivery("hurry", verb="say", id="d-3", repository_id=8)) == "refused"


def test_a_run_that_was_asked_for_by_https_can_not_be_spoken_to_from_github(here: HubWorld) -> None:
    run_id = here.world.running()
    assert here.orders.obey(delivery("stop", verb="say", run_id=run_id)) == "refused"


def test_a_run_that_waits_for_ci_is_woken_when_all_checks_are_complete(here: HubWorld) -> None:
    run_id = here.run_here()
    here.watch.watch("acme/shop", "f" * 40, run_id)
    checks = delivery(verb="checks", head_sha="f" * 40, sender="github-actions[bot]")
    here.hub.complete = False
    assert here.orders.obey(checks) == "nobody waits"
    here.hub.complete = True
    assert here.orders.obey(delivery(verb="checks", head_sha="f" * 40, id="d-2")) == "woken"
    token = here.world.suspend(run_id, RunResult(outcome="suspended", suspend_reason="paused"))
    assert here.world.workflow.answers[token] == {"cancelled": False}


def test_a_run_that_a_person_paused_is_not_woken_by_ci(here: HubWorld) -> None:
    run_id = here.run_here()
    here.watch.watch("acme/shop", "f" * 40, run_id)
    token = here.world.suspend(run_id, RunResult(outcome="suspended", suspend_reason="paused"))
    assert here.orders.obey(delivery(verb="checks", head_sha="f" * 40)) == "nobody waits"
    assert token not in here.world.workflow.answers


def test_checks_that_no_run_waits_for_are_nothing_to_us(here: HubWorld) -> None:
    assert here.orders.obey(delivery(verb="checks", head_sha="e" * 40)) == "nobody waits"


def _asking(here: HubWorld) -> str:
    run_id = here.run_here()
    asked = ApprovalRequest(
        id="ap-1", tool="bash", shown={"command": "rm -rf build"}, reason="deletes", risk="high", kind="destructive",
        requested_at=here.world.clock.now(),
    )  # fmt: skip
    here.world.runs.change(run_id, allowed=("running",), changes={"approval": asked})
    return run_id
