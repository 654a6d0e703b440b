"""A place on the fake GitHub that one test has for itself: an account, a repository with the App on it, people."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from tests.e2e.support import Person, git, wait_for

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Mapping

    from sandpiper_local.fake_github.client import GitHubAdmin
    from tests.e2e.conftest import Stack

CHECKED = {"answer": "41\n", "check.sh": "grep -q 4 answer\n", ".sandpiper.yml": "checks: ['sh check.sh']\n"}


@dataclass(frozen=True)
class Place:
    stack: Stack
    github: GitHubAdmin
    name: str  # owner/name of the repository
    writer: str
    installation: int
    git_dir: Path
    closing: contextlib.ExitStack

    def api(self, path: str, method: str = "GET", body: Any = None) -> Any:
        """Below the repository, as somebody who may write there."""
        return self.github.call(method, f"/repos/{self.name}{path}", body, by=self.writer)

    def issue(self, title: str = "It is wrong", body: str = "") -> int:
        return self.github.open_issue(self.name, title, body, by=self.writer)

    def pull(self, files: Mapping[str, str | None], *, branch: str = "topic") -> int:
        self.github.commit(self.name, branch, files, by=self.writer)
        return self.github.open_pull(self.name, branch, by=self.writer)

    def comment(self, number: int, text: str, *, by: str | None = None) -> int:
        return int(self.github.comment(self.name, number, text, by=by or self.writer)["id"])

    def delivery(self, comment_id: int) -> dict[str, Any]:
        """The webhook about a comment, when it has been answered."""

        def look() -> dict[str, Any] | None:
            answered = (one for one in self.github.deliveries if one["event"] == "issue_comment" and one["response"])
            return next((one for one in answered if json.loads(one["body"])["comment"]["id"] == comment_id), None)

        return wait_for(look)

    def ask(self, number: int, text: str, *, by: str | None = None) -> Asked:
        """A comment that starts a run."""
        comment_id = self.comment(number, text, by=by)
        run_id = json.loads(self.delivery(comment_id)["response"])["run_id"]
        person = self.closing.enter_context(Person(self.stack, f"github:{by or self.writer}"))
        return Asked(self, person, run_id, number, comment_id)

    def deliver_again(self, comment_id: int, *, times: int) -> list[httpx.Response]:
        """The very same webhook, all at once."""
        delivery = self.delivery(comment_id)
        url = f"{self.stack.api_url}/github/webhook"

        def send(_: int) -> httpx.Response:
            return httpx.post(url, content=delivery["body"].encode(), headers=delivery["headers"], timeout=30)

        with ThreadPoolExecutor(times) as pool:
            return list(pool.map(send, range(times)))

    def reactions(self, comment_id: int, *, count: int = 1) -> list[str]:
        """By name, when there are as many as are waited for."""

        def look() -> list[str] | None:
            found = [reaction["content"] for reaction in self.api(f"/issues/comments/{comment_id}/reactions")]
            return found if len(found) >= count else None

        return wait_for(look)

    def said(self, number: int) -> list[dict[str, Any]]:
        """By the App."""
        comments = self.api(f"/issues/{number}/comments?per_page=100")
        return [comment for comment in comments if comment["user"]["type"] == "Bot"]

    def answer(self, number: int) -> str:
        """What the App says first."""
        return wait_for(lambda: next((str(one["body"]) for one in self.said(number)), None))

    def calls(self) -> list[dict[str, Any]]:
        """Of everybody but the people here."""
        made = [call for call in self.github.calls if f"/repos/{self.name}" in call["path"]]
        return [call for call in made if call["actor"] != self.writer]

    def show(self, path: str, ref: str) -> str:
        """A file on a branch."""
        return git("show", f"{ref}:{path}", at=self.git_dir)


@dataclass(frozen=True)
class Asked:
    """A run that somebody has asked for in a comment."""

    place: Place
    person: Person
    run_id: str
    number: int
    comment_id: int

    def started(self) -> dict[str, Any]:
        return wait_for(self._run)

    def _run(self) -> dict[str, Any] | None:
        answer = self.person.http.get(f"/runs/{self.run_id}")
        return dict(answer.json()["run"]) if answer.status_code == 200 else None

    def end(self) -> dict[str, Any]:
        self.started()
        return self.person.end_of(self.run_id)

    def approval(self) -> dict[str, Any]:
        """What it asks for, when it does."""
        self.started()
        return wait_for(lambda: self.person.run(self.run_id)["approval"])

    def status(self, *words: str) -> str:
        """The status comment, when it has these words; there is one and no other."""

        def look() -> str | None:
            mine = [
                one["body"] for one in self.place.said(self.number) if self.run_id in one["body"].partition("\n")[0]
            ]
            assert len(mine) <= 1
            return mine[0] if mine and all(word in mine[0] for word in words) else None

        return wait_for(look)


def make_place(stack: Stack, closing: contextlib.ExitStack, files: Mapping[str, str]) -> Place:
    assert stack.github is not None
    owner, writer = f"org-{uuid.uuid4().hex[:8]}", f"dev-{uuid.uuid4().hex[:8]}"
    name = f"{owner}/shop"
    created = stack.github.add_repository(name, files, permissions={writer: "write", "rob": "read"})
    installation = stack.github.install(owner, [name])
    return Place(stack, stack.github, name, writer, installation, Path(created["git_dir"]), closing)
