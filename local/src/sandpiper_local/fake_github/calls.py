"""One request to the API on its way through: found, recorded, let in or not, answered."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiohttp import web

from sandpiper_local.fake_github.auth import Actor, actor_of, check_access, count_request
from sandpiper_local.fake_github.errors import DOCS, Refusal, not_found
from sandpiper_local.fake_github.failures import Recorded
from sandpiper_local.front_door.git_http import basic_credentials

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sandpiper_local.fake_github.failures import Failure
    from sandpiper_local.fake_github.hub import Hub
    from sandpiper_local.fake_github.state import Issue, Repository

MAX_PAGE = 100
_READING = frozenset({"GET", "HEAD"})


@dataclass
class Call:
    hub: Hub
    actor: Actor
    params: dict[str, str]
    query: dict[str, str]
    body: Any
    accept: str
    found: Repository | None = None

    @property
    def repo(self) -> Repository:
        if self.found is None:
            raise not_found()
        return self.found

    @property
    def issue(self) -> Issue:
        return self.hub.issue(
            self.repo, self.number("issue_number" if "issue_number" in self.params else "pull_number")
        )

    @property
    def pull(self) -> Issue:
        if self.issue.pull is None:
            raise not_found()
        return self.issue

    def number(self, name: str) -> int:
        if not self.params[name].isdigit():
            raise not_found()
        return int(self.params[name])

    def text(self, name: str, *, resource: str) -> str:
        """A field of the body that must be there."""
        value = self.body.get(name)
        if not isinstance(value, str) or not value.strip():
            error = {"resource": resource, "field": name, "code": "missing_field"}
            raise Refusal(422, "Validation Failed", errors=[error])
        return value


@dataclass
class Answer:
    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Page:
    """All items; the caller gets the part that was asked for. `key`: the name under which they stand in an object."""

    items: Sequence[Any]
    key: str | None = None


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    handler: Callable[[Call], Any]
    permission: str = ""  # of a token for the repository in the path
    by_anyone: bool = False
    app_only: bool = False


def created(body: Any) -> Answer:
    return Answer(body, 201)


def no_content() -> Answer:
    return Answer(None, 204)


class Dispatcher:
    """`observe(route, status, body)` sees every answer that comes out of a route."""

    def __init__(self, hub: Hub, observe: Callable[[Route, int, Any], None] | None = None) -> None:
        self._hub, self._observe = hub, observe

    def serving(self, route: Route) -> Callable[[web.Request], Any]:
        async def serve(request: web.Request) -> web.StreamResponse:
            path = request.path.removeprefix("/api/v3")
            body = await _body(request)
            failure = self._hub.failures.take(request.method, path)
            if failure and failure.delay:
                await asyncio.sleep(failure.delay)
            await self._pushes_end(request)
            credential = credential_of(request)
            answer = (
                _injected(failure) if failure and failure.status else self._answer(route, request, body, credential)
            )
            self._record(request, path, body, credential, answer.status)
            if failure and failure.cut and request.transport:
                request.transport.abort()
            return _response(answer)

        return serve

    async def _pushes_end(self, request: web.Request) -> None:
        """Who has pushed sees what came of it, although git's answer ends before our work on it does."""
        name = f"{request.match_info.get('owner')}/{request.match_info.get('repo')}"
        if repository := self._hub.repositories.get(name):
            async with self._hub.pushing(repository):
                pass

    def _answer(self, route: Route, request: web.Request, body: Any, credential: str | None) -> Answer:
        headers: dict[str, str] = {}
        try:
            actor = actor_of(self._hub, credential)
            if actor.token:
                headers = count_request(self._hub, actor.token)
            call = Call(
                self._hub, actor, dict(request.match_info), dict(request.query), body, request.headers.get("Accept", "")
            )
            self._let_in(route, call)
            answer = _as_answer(route.handler(call), request)
        except Refusal as refusal:
            return Answer(refusal.body, refusal.status, headers | refusal.headers)
        except Moved as moved:
            return moved.answer(str(request.url), request.method)
        if self._observe:
            self._observe(route, answer.status, answer.body)
        answer.headers = headers | answer.headers
        return answer

    def _let_in(self, route: Route, call: Call) -> None:
        if route.app_only:
            if call.actor.kind != "app":
                raise Refusal(401, "A JSON web token could not be decoded")
            return
        if call.actor.kind == "app":
            raise Refusal(401, "Requires authentication")
        if "owner" in call.params:
            call.found = self._repository(call)
        if route.permission:
            self._check(route, call)

    def _check(self, route: Route, call: Call) -> None:
        permission = _permission_for(route, call)
        check_access(call.actor, call.repo, permission, by_anyone=route.by_anyone)
        if route.method not in _READING and call.repo.archived:
            raise Refusal(403, "Repository was archived so is read-only.")

    def _repository(self, call: Call) -> Repository:
        name = f"{call.params['owner']}/{call.params['repo']}"
        if moved := self._hub.renamed.get(name):
            raise Moved(name, moved.full_name)
        return self._hub.repository(name)

    def _record(self, request: web.Request, path: str, body: Any, credential: str | None, status: int) -> None:
        token = self._hub.tokens.get(credential or "")
        actor = token.user.login if token else ("app" if credential else "anonymous")
        self._hub.failures.calls.append(Recorded(request.method, path, dict(request.query), body, actor, status))


class Moved(Exception):
    """The repository has another name by now."""

    def __init__(self, old: str, new: str) -> None:
        super().__init__(f"{old} is {new}")
        self._old, self._new = old, new

    def answer(self, url: str, method: str) -> Answer:
        target = url.replace(f"/repos/{self._old}", f"/repos/{self._new}", 1)
        body = {"message": "Moved Permanently", "url": target, "documentation_url": DOCS}
        return Answer(body, 301 if method in _READING else 307, {"Location": target})


def _permission_for(route: Route, call: Call) -> str:
    """A pull request's comments and labels are open to who may write pull requests, too."""
    name, _, level = route.permission.partition(":")
    token = call.actor.token
    if name != "issues" or token is None or token.permissions is None or not _is_on_a_pull(call):
        return route.permission
    return f"pull_requests:{level}" if token.permissions.get("pull_requests") in {level, "write"} else route.permission


def _is_on_a_pull(call: Call) -> bool:
    number, comment = call.params.get("issue_number", ""), call.params.get("comment_id", "")
    return any(
        str(issue.number) == number or comment in {str(one.id) for one in issue.comments} for issue in call.repo.pulls
    )


def credential_of(request: web.Request) -> str | None:
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "basic":
        return (basic_credentials(request.headers["Authorization"]) or ("", ""))[1]
    return value.strip() or None


async def _body(request: web.Request) -> Any:
    raw = await request.read()
    if not raw:
        return {}
    try:
        return json.loads(raw)
    except ValueError:
        raise web.HTTPBadRequest(text='{"message": "Problems parsing JSON"}', content_type="application/json") from None


def _injected(failure: Failure) -> Answer:
    status = failure.status or 500
    return Answer({"message": failure.message, "documentation_url": DOCS}, status, failure.headers)


def _as_answer(result: Any, request: web.Request) -> Answer:
    if isinstance(result, Answer):
        return result
    return _paged(result, request) if isinstance(result, Page) else Answer(result)


def _paged(page: Page, request: web.Request) -> Answer:
    size = min(max(int(request.query.get("per_page", 30)), 1), MAX_PAGE)
    number = max(int(request.query.get("page", 1)), 1)
    part = list(page.items[(number - 1) * size : number * size])
    headers = {}
    if len(page.items) > number * size:
        following = request.url.update_query({"page": str(number + 1)})
        headers["Link"] = f'<{following}>; rel="next"'
    body = part if page.key is None else {"total_count": len(page.items), page.key: part}
    return Answer(body, 200, headers)


def _response(answer: Answer) -> web.Response:
    if answer.body is None:
        return web.Response(status=answer.status, headers=answer.headers)
    if isinstance(answer.body, str):
        return web.Response(status=answer.status, headers=answer.headers, text=answer.body)
    return web.json_response(answer.body, status=answer.status, headers=answer.headers)
