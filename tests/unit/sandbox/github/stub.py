"""As much of GitHub's API as the sandbox uses, in memory, on loopback; every request is kept."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, list[str]]
    body: Any
    token: str


@dataclass
class Refusal:
    """The next requests like this one are answered so."""

    method: str
    path: str
    status: int
    message: str
    times: int = 1


@dataclass
class StubGitHub:
    pulls: list[Json] = field(default_factory=list)
    reviews: list[Json] = field(default_factory=list)
    threads: list[Json] = field(default_factory=list)
    files: list[Json] = field(default_factory=list)
    check_runs: list[Json] = field(default_factory=list)
    statuses: list[Json] = field(default_factory=list)
    suites: list[Json] = field(default_factory=list)
    logs: dict[int, str] = field(default_factory=dict)
    comments: dict[int, list[str]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"github": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def pull(self, number: int = 7, **more: Any) -> Json:
        pull = {
            "number": number,
            "html_url": f"https://github.example/o/r/pull/{number}",
            "state": "open",
            "merged": False,
            "draft": False,
            "body": "",
            "head": {"ref": "topic"},
            **more,
        }
        self.pulls.append(pull)
        return pull

    def thread(self, body: str, path: str, line: int, **more: Any) -> Json:
        thread = {
            "id": f"T{len(self.threads)}",
            "path": path,
            "line": line,
            "isResolved": False,
            "isOutdated": False,
            "comments": {"nodes": [{"body": body, "viewerDidAuthor": True}]},
            **more,
        }
        self.threads.append(thread)
        return thread

    def calls(self, method: str, path: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.method == method and re.fullmatch(path, asked.path)]

    def answer(self, asked: Asked) -> tuple[int, Any]:
        self.asked.append(asked)
        for refusal in self.refusals:
            if refusal.times and refusal.method == asked.method and re.fullmatch(refusal.path, asked.path):
                refusal.times -= 1
                return refusal.status, {"message": refusal.message}
        for method, pattern, route in _ROUTES:
            if method == asked.method and (found := re.fullmatch(pattern, asked.path)):
                return route(self, asked, *found.groups())
        return 404, {"message": "Not Found"}


def _open_pull(github: StubGitHub, asked: Asked) -> tuple[int, Any]:
    if any(pull["head"]["ref"] == asked.body["head"] and pull["state"] == "open" for pull in github.pulls):
        return 422, {"message": "Validation Failed: A pull request already exists"}
    fields = {**asked.body, "head": {"ref": asked.body["head"]}}
    return 201, github.pull(100 + len(github.pulls), **fields)


def _find_pulls(github: StubGitHub, asked: Asked) -> tuple[int, Any]:
    branch = asked.query["head"][0].partition(":")[2]
    return 200, [pull for pull in github.pulls if pull["head"]["ref"] == branch and pull["state"] == "open"]


def _get_pull(github: StubGitHub, _asked: Asked, number: str) -> tuple[int, Any]:
    found = [pull for pull in github.pulls if pull["number"] == int(number)]
    return (200, found[0]) if found else (404, {"message": "Not Found"})


def _change_pull(github: StubGitHub, asked: Asked, number: str) -> tuple[int, Any]:
    status, pull = _get_pull(github, asked, number)
    pull.update(asked.body)
    return status, pull


def _review(github: StubGitHub, asked: Asked, _number: str) -> tuple[int, Any]:
    review = {"id": 900 + len(github.reviews), "html_url": "https://github.example/review", **asked.body}
    github.reviews.append(review)
    return 200, review


def _graphql(github: StubGitHub, asked: Asked) -> tuple[int, Any]:
    if "resolveReviewThread" in asked.body["query"]:
        thread = next(thread for thread in github.threads if thread["id"] == asked.body["variables"]["id"])
        thread["isResolved"] = True
        return 200, {"data": {"resolveReviewThread": {"thread": {"id": thread["id"], "isResolved": True}}}}
    page = {"pageInfo": {"hasNextPage": False, "endCursor": None}, "nodes": github.threads}
    return 200, {"data": {"repository": {"pullRequest": {"reviewThreads": page}}}}


def _new_check(github: StubGitHub, asked: Asked) -> tuple[int, Any]:
    github.check_runs.append({"id": 500 + len(github.check_runs), **asked.body})
    return 201, github.check_runs[-1]


def _checks(github: StubGitHub, asked: Asked, sha: str) -> tuple[int, Any]:
    wanted = asked.query.get("check_name", [None])[0]
    found = [run for run in github.check_runs if run["head_sha"] == sha and wanted in {None, run["name"]}]
    return 200, {"total_count": len(found), "check_runs": found}


def _edit(github: StubGitHub, asked: Asked, comment: str) -> tuple[int, Any]:
    github.comments.setdefault(int(comment), []).append(asked.body["body"])
    return 200, {"id": int(comment)}


_R = "/repos/o/r"
_ROUTES: tuple[tuple[str, str, Callable[..., tuple[int, Any]]], ...] = (
    ("GET", _R, lambda _github, _asked: (200, {"default_branch": "main"})),
    ("POST", f"{_R}/pulls", _open_pull),
    ("GET", f"{_R}/pulls", _find_pulls),
    ("GET", rf"{_R}/pulls/(\d+)", _get_pull),
    ("PATCH", rf"{_R}/pulls/(\d+)", _change_pull),
    ("POST", rf"{_R}/issues/\d+/labels", lambda _github, _asked: (200, [])),
    ("PATCH", rf"{_R}/issues/comments/(\d+)", _edit),
    ("POST", rf"{_R}/pulls/(\d+)/reviews", _review),
    ("GET", rf"{_R}/pulls/(\d+)/reviews", lambda github, _asked, _number: (200, github.reviews)),
    ("GET", rf"{_R}/pulls/(\d+)/files", lambda github, _asked, _number: (200, github.files)),
    ("POST", "/graphql", _graphql),
    ("POST", f"{_R}/check-runs", _new_check),
    ("GET", rf"{_R}/commits/(\w+)/check-runs", _checks),
    ("GET", rf"{_R}/commits/\w+/status", lambda github, _asked: (200, {"statuses": github.statuses})),
    ("GET", rf"{_R}/commits/\w+/check-suites", lambda github, _asked: (200, {"check_suites": github.suites})),
    ("GET", rf"{_R}/actions/jobs/(\d+)/logs", lambda _github, _asked, job: (302, f"/logs/{job}")),
    ("GET", r"/logs/(\d+)", lambda github, _asked, job: (200, github.logs[int(job)])),
)


class _Handler(BaseHTTPRequestHandler):
    github: StubGitHub

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        place = urlsplit(self.path)
        asked = Asked(
            self.command,
            place.path.removeprefix("/api/v3").removeprefix("/api"),
            parse_qs(place.query),
            json.loads(body) if body else None,
            self.headers.get("authorization", "").removeprefix("Bearer "),
        )
        status, answer = self.github.answer(asked)
        data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        self.send_response(status)
        if status == 302:
            self.send_header("Location", f"{self.github.url.replace('127.0.0.1', 'localhost')}{answer}")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_PATCH = do_GET  # noqa: N815 - the base class's names

    def log_message(self, *_: object) -> None:
        """Quiet."""
