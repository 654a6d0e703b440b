"""The GitHub rules on fakes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sandpiper.errors import GitHubError
from sandpiper.logic.github.deliveries import Delivery
from sandpiper.logic.github.orders import Orders
from sandpiper.logic.github.telling import Teller
from sandpiper.logic.repos import RepoRules
from sandpiper.models.github import GitHubOrigin, PullRequest, Topic
from sandpiper.models.identity import Identity
from sandpiper.models.spec import RunSpec
from sandpiper.testing.github import FakeHeadWatch
from sandpiper.testing.hub import FakeHolds, FakeHub, FakeTopics
from tests.unit.logic.world import World

if TYPE_CHECKING:
    from sandpiper.logic.github.places import Place

REPOSITORY = "acme/shop"
OWNER = Identity(user="github:ann", org="github:acme")
ORIGIN = GitHubOrigin(
    installation_id=42, repository=REPOSITORY, number=7, command="implement", sender="ann", origin="issue_comment",
    comment_id=70,
)  # fmt: skip
SPEC = RunSpec(task="Add it", repo=REPOSITORY, repo_url="https://github.test/acme/shop.git", github=ORIGIN)
PULL = PullRequest(head_sha="a" * 40, head_ref="topic", base_ref="main")
BUSY = GitHubError("GitHub answered with 503", code=503, retryable=True)


def delivery(text: str = "a logout button", **fields: Any) -> Delivery:
    given: dict[str, Any] = {
        "id": "d-1", "verb": "implement", "text": text, "installation_id": 42, "repository": REPOSITORY,
        "default_branch": "main", "sender": "ann", "number": 7, "comment_id": 70,
    }  # fmt: skip
    return Delivery(**{**given, **fields})


def pull_topic(**pull: Any) -> Topic:
    return Topic(number=8, title="Logout", body="Closes #7", author="ann", pull=PULL.model_copy(update=pull))


@dataclass
class HubWorld:
    world: World = field(default_factory=World)
    hub: FakeHub = field(default_factory=FakeHub)
    topics: FakeTopics = field(default_factory=FakeTopics)
    watch: FakeHeadWatch = field(default_factory=FakeHeadWatch)

    def __post_init__(self) -> None:
        self.holds = FakeHolds(self.world.clock)
        self.hubs: list[tuple[int, str]] = []
        world = self.world
        self.teller = Teller(
            self.hub_of, world.runs, world.blobs, self.topics, self.holds, world.clock, "https://console.test"
        )
        self.orders = Orders(
            hub_of=self.hub_of,
            runs=self.world.runs,
            starter=self.world.starter,
            controls=self.world.controls,
            topics=self.topics,
            watch=self.watch,
            holds=self.holds,
            rules=RepoRules("https://github.test"),
            tell=self.teller.tell,
        )

    def hub_of(self, place: Place) -> FakeHub:
        self.hubs.append((place.installation_id, place.repository))
        return self.hub

    def run_here(self) -> str:
        """A run that was asked for on issue 7, at work."""
        run_id = self.world.running(OWNER, SPEC)
        self.topics.note(self.world.get(run_id))
        return run_id
