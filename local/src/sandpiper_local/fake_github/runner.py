"""The fake GitHub as an object: a server on a port of the loopback, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Self

from sandpiper_local.fake_github.client import GitHubAdmin
from sandpiper_local.fake_github.server import GitHubServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from aiohttp import web

    from sandpiper_local.fake_github.calls import Route


class FakeGitHub(GitHubAdmin):
    """`with FakeGitHub(tmp_path) as github: … github.api_url …`"""

    def __init__(
        self,
        root: Path,
        *,
        port: int = 0,
        observe_answer: Callable[[Route, int, Any], None] | None = None,
        observe_event: Callable[[str, Any], None] | None = None,
    ) -> None:
        self._server = GitHubServer(root, observe_answer=observe_answer, observe_event=observe_event)
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fake-github", daemon=True)
        self._runner: web.AppRunner | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._runner = self._run(self._server.start(self._port))
        super().__init__(self._server.hub.url)
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()
        if self._runner is not None:
            self._run(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=30)
