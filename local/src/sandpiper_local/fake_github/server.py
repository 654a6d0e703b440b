"""Everything on one port: the API below /api/v3 as on an Enterprise server, git, pages, and /_fake."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aiohttp import web

from sandpiper_local.aws import HOST
from sandpiper_local.fake_github.admin import Admin
from sandpiper_local.fake_github.calls import Dispatcher, Route
from sandpiper_local.fake_github.failures import Failures
from sandpiper_local.fake_github.git_access import GitAccess
from sandpiper_local.fake_github.graphql.schema import graphql
from sandpiper_local.fake_github.hub import Hub
from sandpiper_local.fake_github.pages import Pages
from sandpiper_local.fake_github.routes import (
    app,
    checks,
    git_data,
    issues,
    pulls,
    reactions,
    repositories,
    review_comments,
    reviews,
)
from sandpiper_local.fake_github.webhooks import Webhooks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_MODULES = (app, repositories, git_data, issues, reactions, review_comments, reviews, pulls, checks)
_GRAPHQL = Route("POST", "/graphql", graphql)
_MAX_BYTES = 100 * 1024**2
_WITH_SLASHES = re.compile(r"\{(ref|path|basehead|branch)\}")


def routes() -> list[Route]:
    return [route for module in _MODULES for route in module.ROUTES]


def served_routes() -> list[tuple[str, str]]:
    """Method and path as GitHub's own description names them."""
    return [(route.method, route.path) for route in routes()]


class GitHubServer:
    """`observe_answer(route, status, body)` and `observe_event(name, payload)` see all that it says."""

    def __init__(
        self,
        root: Path,
        *,
        observe_answer: Callable[[Route, int, Any], None] | None = None,
        observe_event: Callable[[str, Any], None] | None = None,
    ) -> None:
        self.hub = Hub(root, Failures(), Webhooks(observe_event))
        self._dispatcher = Dispatcher(self.hub, observe_answer)

    def app(self) -> web.Application:
        application = web.Application(client_max_size=_MAX_BYTES)
        for route in _in_order(routes()):
            # a name with slashes in it is one name, here as there
            path = _WITH_SLASHES.sub(r"{\1:.+}", route.path)
            application.router.add_route(route.method, f"/api/v3{path}", self._dispatcher.serving(route))
        for path in ("/api/v3/graphql", "/api/graphql"):
            application.router.add_post(path, self._dispatcher.serving(_GRAPHQL))
        application.router.add_route("*", "/api/{rest:.*}", _unknown)
        for part in (Admin(self.hub), Pages(self.hub), GitAccess(self.hub)):
            application.router.add_routes(part.routes())
        application.on_cleanup.append(self.hub.webhooks.close)
        return application

    async def start(self, port: int) -> web.AppRunner:
        runner = web.AppRunner(self.app(), access_log=None, auto_decompress=False, shutdown_timeout=1)
        await runner.setup()
        await web.TCPSite(runner, HOST, port).start()
        self.hub.url = f"http://{HOST}:{runner.addresses[0][1]}"
        return runner


def _in_order(known: list[Route]) -> list[Route]:
    """What ends in a fixed word comes before a name that may hold slashes and would swallow it."""
    return sorted(known, key=lambda route: route.path.endswith(("{ref}", "{path}", "{branch}")))


async def _unknown(_: web.Request) -> web.Response:
    return web.json_response({"message": "Not Found", "documentation_url": "https://docs.github.com/rest"}, status=404)
