"""The github function, called as the sandbox, the webhook, the workflow and the schedule call it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from github import handler as github
from github.world import World
from sandpiper.errors import GitHubError
from sandpiper.logic.github.minting import Minter
from sandpiper.logic.github.resolving import Resolver
from sandpiper.logic.github.signatures import proof, signature
from sandpiper.logic.github.sweep import Sweep
from sandpiper.models.github import RepositoryToken
from sandpiper.testing.github import FakeRemarks
from tests.unit.functions.support import LambdaContext
from tests.unit.logic.github.hub_world import BUSY, OWNER, SPEC, HubWorld, delivery

if TYPE_CHECKING:
    from sandpiper.logic.github.places import Place

SECRET = "webhook-secret"


class Here:
    def __init__(self) -> None:
        self.hub = HubWorld()
        self.failure: GitHubError | None = None
        self.redelivered: list[int] = []
        self.remarks = FakeRemarks("T1", "T2")
        clock = self.hub.world.clock
        lost = {
            "id": 5,
            "guid": "g",
            "status_code": 502,
            "delivered_at": (clock.now() - timedelta(hours=1)).isoformat(),
        }
        self.world = World(
            webhook_secret=lambda: SECRET,
            minter=Minter(self.hub.world.runs, self.mint),
            resolver=Resolver(self.hub.world.runs, lambda _: self.remarks),
            orders=self.hub.orders,
            teller=self.hub.teller,
            sweep=Sweep(lambda _: [lost], self.redelivered.append, clock),
        )

    def mint(self, place: Place, _permissions: Any) -> RepositoryToken:
        if self.failure:
            raise self.failure
        expires_at = self.hub.world.clock.now() + timedelta(hours=1)
        return RepositoryToken(token=f"ghs_for_{place.repository}", expires_at=expires_at)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Here:
    made = Here()
    monkeypatch.setattr(github, "world", lambda: made.world)
    return made


def call(**event: Any) -> dict[str, Any]:
    return github.handler(event, LambdaContext())  # type: ignore[arg-type]


def hand_on(made: Any, **changed: Any) -> dict[str, Any]:
    text = json.dumps(made.as_dict())
    return call(**{"action": "delivery", "delivery": text, "proof": proof(SECRET, text), **changed})


def test_the_sandbox_of_a_run_gets_a_token_for_its_repository(here: Here) -> None:
    run_id = here.hub.world.running(OWNER, SPEC)
    answer = call(action="token", run_id=run_id, attempt=1)
    assert answer == {"token": "ghs_for_acme/shop", "expires_at": "2026-01-01T13:00:01Z"}


def test_a_run_that_was_asked_for_by_https_gets_no_token(here: Here) -> None:
    assert call(action="token", run_id=here.hub.world.running(), attempt=1) == {"token": None}


def test_an_attempt_that_is_over_is_told_so(here: Here) -> None:
    run_id = here.hub.world.running(OWNER, SPEC)
    assert call(action="token", run_id=run_id, attempt=2)["error"]["type"] == "sandbox_lost"


def test_a_review_has_its_remarks_resolved(here: Here) -> None:
    run_id = here.hub.world.running(OWNER, SPEC.model_copy(update={"type": "code-review"}))
    assert call(action="resolve", run_id=run_id, attempt=1, threads=["T2", "T9"]) == {"resolved": 1}
    assert here.remarks.resolved == ["T2"]
    assert call(action="resolve", run_id=run_id, attempt=2, threads=["T1"])["error"]["type"] == "sandbox_lost"


def test_what_github_refuses_is_told_in_its_words(here: Here) -> None:
    here.failure = GitHubError("GitHub answered with 404: Not Found", code=404)
    run_id = here.hub.world.running(OWNER, SPEC)
    told = {
        "type": "repository_error",
        "message": "GitHub answered with 404: Not Found",
        "retryable": False,
        "code": 404,
    }
    assert call(action="token", run_id=run_id, attempt=1) == {"error": told}


def test_a_delivery_with_its_proof_is_obeyed(here: Here) -> None:
    run_id = hand_on(delivery())["did"]
    assert here.hub.world.status(run_id) == "queued"


@pytest.mark.parametrize(
    "made", ["", "sha256=" + "0" * 64, signature(SECRET, json.dumps(delivery().as_dict()).encode())]
)
def test_a_delivery_that_a_sandbox_made_up_is_not_obeyed(here: Here, made: str) -> None:
    assert hand_on(delivery(), proof=made) == {"did": "refused"}
    assert not here.hub.hubs


def test_the_proof_of_one_delivery_is_none_for_another(here: Here) -> None:
    other = json.dumps(delivery(repository="acme/secrets").as_dict())
    assert hand_on(delivery(), delivery=other) == {"did": "refused"}
    assert not here.hub.hubs


def test_a_delivery_that_github_could_not_answer_is_tried_again_by_aws(here: Here) -> None:
    here.hub.hub.failures = [BUSY]
    with pytest.raises(GitHubError):
        hand_on(delivery())


def test_a_delivery_of_an_app_that_is_gone_ends_in_the_log(here: Here, caplog: pytest.LogCaptureFixture) -> None:
    here.hub.hub.failures = [GitHubError("GitHub answered with 404: Integration not found", code=404)]
    assert hand_on(delivery()) == {"did": "refused by GitHub"}
    assert "Integration not found" in _logged(caplog)


def test_a_run_is_told_of(here: Here) -> None:
    run_id = here.hub.run_here()
    assert call(action="tell", run_id=run_id) == {}
    assert run_id in here.hub.hub.comments[1]


def test_the_schedule_has_lost_deliveries_sent_again(here: Here) -> None:
    assert call(source="aws.events", **{"detail-type": "Scheduled Event"}) == {"redelivered": 1, "refused": 0}
    assert here.redelivered == [5]


def test_no_token_is_logged(here: Here, caplog: pytest.LogCaptureFixture) -> None:
    call(action="token", run_id=here.hub.world.running(OWNER, SPEC), attempt=1)
    assert "token minted" in _logged(caplog)
    assert "ghs_for" not in _logged(caplog)


def test_an_action_that_nobody_knows_is_an_error(here: Here) -> None:
    with pytest.raises(ValueError, match="unknown action"):
        call(action="dance")


def _logged(caplog: pytest.LogCaptureFixture) -> str:
    return str([vars(record) for record in caplog.records])
