"""The scripted model as an object: a server on a free port of the loopback, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Self

from aiohttp import web

from sandpiper_local.scripted_model.record import Record
from sandpiper_local.scripted_model.scenario import Scenario, parse_scenario
from sandpiper_local.scripted_model.server import ModelServer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from sandpiper_local.scripted_model.cache import PromptCache

HOST = "127.0.0.1"


async def serve(server: ModelServer, port: int) -> tuple[web.AppRunner, str]:
    """Listen; returns what to clean up and the URL."""
    runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, HOST, port)
    await site.start()
    return runner, f"http://{HOST}:{runner.addresses[0][1]}"


class ScriptedModel:
    """`with ScriptedModel([{...}]) as model: … model.url … model.requests`"""

    def __init__(
        self,
        scenarios: Iterable[Scenario | Mapping[str, Any]] = (),
        *,
        port: int = 0,
        record_dir: Path | None = None,
        cache: PromptCache | None = None,
    ) -> None:
        self._record = Record(record_dir)
        self._server = ModelServer(map(_scenario, scenarios), self._record, cache)
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="scripted-model", daemon=True)
        self._runner: web.AppRunner | None = None
        self.url = ""

    def start(self) -> Self:
        self._thread.start()
        self._runner, self.url = self._run(serve(self._server, self._port))
        return self

    def stop(self) -> None:
        if self._runner is not None:
            self._run(self._runner.cleanup())
            self._runner = None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def add(self, scenario: Scenario | Mapping[str, Any]) -> None:
        self._server.add(_scenario(scenario))

    @property
    def requests(self) -> list[dict[str, Any]]:
        return self._record.entries()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=30)


def _scenario(given: Scenario | Mapping[str, Any]) -> Scenario:
    return given if isinstance(given, Scenario) else parse_scenario(given, origin="the scenario")
