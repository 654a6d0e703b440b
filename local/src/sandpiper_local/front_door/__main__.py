"""`python -m sandpiper_local.front_door SETTINGS_JSON`"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from typing import TYPE_CHECKING

from aiohttp import web

from sandpiper_local.aws import HOST
from sandpiper_local.front_door.app import backend_session, make_app, make_runner

if TYPE_CHECKING:
    from collections.abc import Mapping


async def serve(settings: Mapping[str, str]) -> None:
    async with backend_session() as session:
        app = make_app(
            session,
            http_backend=settings["http_backend"],
            websocket_backend=settings["websocket_backend"],
            public_url=settings["public_url"],
        )
        runner = make_runner(app)
        await runner.setup()
        await web.TCPSite(runner, HOST, int(settings["port"])).start()
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        await stop.wait()
        await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve(json.loads(sys.argv[1])))
