"""`python -m sandpiper_local.fake_github --port N --state DIR`: says its URL in one JSON line, and serves."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from pathlib import Path

from sandpiper_local.fake_github.server import GitHubServer


async def serve(state: Path, port: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server = GitHubServer(state)
    runner = await server.start(port)
    sys.stdout.write(json.dumps({"url": server.hub.url}) + "\n")
    sys.stdout.flush()
    await stop.wait()
    await runner.cleanup()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="sandpiper_local.fake_github", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--state", type=Path, required=True, metavar="DIR", help="where its repositories lie")
    return parser.parse_args()


if __name__ == "__main__":
    options = _options()
    asyncio.run(serve(options.state, options.port))
