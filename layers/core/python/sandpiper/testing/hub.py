"""GitHub's conversation side in memory: what the control plane says there, and who may say what to it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from sandpiper import limits
from sandpiper.adapters import keys
from sandpiper.errors import GitHubError
from sandpiper.github_ports import Hold
from sandpiper.logic.github.places import numbers_of, place_name
from sandpiper.models.github import Author, Topic

if TYPE_CHECKING:
    from sandpiper.logic.github.conversation import Entry
    from sandpiper.logic.github.deliveries import Delivery
    from sandpiper.models.github import GitHubOrigin
    from sandpiper.models.run import Run
    from sandpiper.ports import Clock


class FakeHub:
    """One repository. `failures` are raised by the next calls, in order; `calls` counts them."""

    def __init__(self) -> None:
        self.writers = {"ann"}
        self.topics: dict[int, Topic] = {
            7: Topic(number=7, title="A logout button", body="There is none.", author="eve")
        }
        self.entries: list[Entry] = []
        self.reactions: set[tuple[str, int, str]] = set()
        self.comments: dict[int, str] = {}
        self.edits = 0
        self.failures: list[GitHubError | None] = []
        self.complete = True

    def may_write(self, login: str) -> bool:
        self._fail()
        return login in self.writers

    def author(self) -> Author | None:
        self._fail()
        return Author(name="sandpiper[bot]", email="9+sandpiper[bot]@users.noreply.github.test")

    def topic(self, number: int, *, is_pull: bool) -> Topic:
        self._fail()
        found = self.topics.get(number)
        if found is None or (found.pull is not None) != is_pull:
            raise GitHubError("GitHub answered with 404: Not Found", code=404)
        return found

    def said_on(self, topic: Topic, asked: Delivery) -> list[Entry]:  # noqa: ARG002 - entries have no id
        self._fail()
        return list(self.entries)

    def react(self, target: GitHubOrigin | Delivery, content: str) -> None:
        self._fail()
        self.reactions.add((target.origin, target.comment_id or target.number, content))

    def comment(self, number: int, body: str) -> int:  # noqa: ARG002 - one thread is enough here
        self._fail()
        self.comments[len(self.comments) + 1] = body
        return len(self.comments)

    def edit_comment(self, comment_id: int, body: str) -> None:
        self._fail()
        if comment_id not in self.comments:
            raise GitHubError("GitHub answered with 404: Not Found", code=404)
        self.edits += 1
        self.comments[comment_id] = body

    def comment_text(self, comment_id: int) -> str:
        self._fail()
        return self.comments[comment_id]

    def find_comment(self, number: int, marker: str) -> int | None:  # noqa: ARG002
        self._fail()
        return next((n for n, body in self.comments.items() if body.startswith(marker)), None)

    def checks_are_complete(self, sha: str) -> bool:  # noqa: ARG002
        return self.complete

    def _fail(self) -> None:
        if self.failures and (failure := self.failures.pop(0)):
            raise failure


class FakeTopics:
    def __init__(self) -> None:
        self._latest: dict[tuple[str, int], tuple[str, str]] = {}

    def note(self, run: Run) -> None:
        if run.spec.github is None:
            return
        noted = keys.created_key(run.created_at, run.run_id), run.run_id
        for number in numbers_of(run):
            key = place_name(run.spec.github), number
            self._latest[key] = max(noted, self._latest.get(key, noted))

    def latest(self, place: str, number: int) -> str | None:
        found = self._latest.get((place, number))
        return found[1] if found else None


class FakeHolds:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}
        self._lock = threading.Lock()

    def take(self, name: str, *, seconds: int) -> Hold | None:
        now = self._clock.now().timestamp()
        with self._lock:
            again = name in self._until
            if again and self._until[name] >= now:
                return None
            self._until[name] = now + seconds
            return Hold(again=again)

    def release(self, name: str, *, done: bool) -> None:
        with self._lock:
            self._until[name] = self._clock.now().timestamp() + limits.GITHUB_DELIVERY_SECONDS if done else 0
