"""A plain page for an issue or a pull request, so that a person can look."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from aiohttp import web

from sandpiper_local.fake_github.errors import Refusal
from sandpiper_local.fake_github.views.common import time_of
from sandpiper_local.fake_github.views.pulls import diff_base, pull_of

if TYPE_CHECKING:
    from sandpiper_local.fake_github.hub import Hub
    from sandpiper_local.fake_github.state import Comment, Issue, Repository

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = (
    "body{font:16px sans-serif;max-width:60em;margin:2em auto}pre{white-space:pre-wrap;background:#f6f8fa;padding:1em}"
)


class Pages:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/", self.home),
            web.get("/{owner}/{repo}/{kind:issues|pull}/{number:\\d+}", self.issue),
            web.get("/_logs/{repo:\\d+}/{job:\\d+}", self.log),
        ]

    async def home(self, _: web.Request) -> web.Response:
        items = [
            f'<li><a href="{escape(_path(repository, issue))}">{escape(repository.full_name)}#{issue.number}</a> '
            f"{escape(issue.title)} ({issue.state})</li>"
            for repository in self._hub.repositories.values()
            for issue in repository.issues.values()
        ]
        return _page("Fake GitHub", f"<ul>{''.join(items)}</ul>")

    async def issue(self, request: web.Request) -> web.Response:
        try:
            repository = self._hub.repository(f"{request.match_info['owner']}/{request.match_info['repo']}")
            issue = self._hub.issue(repository, int(request.match_info["number"]))
        except Refusal:
            raise web.HTTPNotFound from None
        parts = [_words(issue.user.login, time_of(issue.created_at), issue.body or "")]
        parts += [_comment(comment) for comment in issue.comments]
        if issue.pull:
            parts += _pull(repository, issue)
        return _page(f"{repository.full_name}#{issue.number} {issue.title}", "".join(parts))

    async def log(self, request: web.Request) -> web.Response:
        wanted = (int(request.match_info["repo"]), int(request.match_info["job"]))
        for repository in self._hub.repositories.values():
            for run in repository.workflow_runs:
                for job in run.jobs:
                    if (repository.id, job.id) == wanted:
                        return web.Response(text=job.log)
        raise web.HTTPNotFound


def _path(repository: Repository, issue: Issue) -> str:
    return f"/{repository.full_name}/{'pull' if issue.pull else 'issues'}/{issue.number}"


def _pull(repository: Repository, issue: Issue) -> list[str]:
    pull = pull_of(issue)
    state = "merged" if pull.merged_at else "draft" if pull.draft else issue.state
    parts = [f"<p>{escape(pull.head_ref)} → {escape(pull.base_ref)}, {state}</p>"]
    parts += [_words(f"{one.user.login}: {one.state}", "", one.body) for one in pull.reviews]
    parts += [
        _words(f"{one.user.login} on {one.path}:{one.line}", time_of(one.created_at), one.body) for one in pull.comments
    ]
    diff = repository.git.diff(diff_base(repository, pull), pull.head_sha)
    return [*parts, f"<h2>Diff</h2><pre>{escape(diff)}</pre>"]


def _comment(comment: Comment) -> str:
    reactions = " ".join(reaction.content for reaction in comment.reactions)
    return _words(f"{comment.user.login} {reactions}", time_of(comment.created_at), comment.body)


def _words(who: str, when: str, body: str) -> str:
    return f"<h3>{escape(who)} <small>{escape(when)}</small></h3><pre>{escape(body)}</pre>"


def _page(title: str, body: str) -> web.Response:
    text = f"<!doctype html><title>{escape(title)}</title><style>{_STYLE}</style><h1>{escape(title)}</h1>{body}"
    return web.Response(text=text, content_type="text/html", headers={"Content-Security-Policy": _POLICY})
