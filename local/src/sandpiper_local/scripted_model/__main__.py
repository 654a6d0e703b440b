"""`python -m sandpiper_local.scripted_model`: says its URL in one JSON line, and serves until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from pathlib import Path

from sandpiper_local.scripted_model.record import Record
from sandpiper_local.scripted_model.runner import serve
from sandpiper_local.scripted_model.scenario import ScenarioError, load_scenarios
from sandpiper_local.scripted_model.server import ModelServer


def main() -> int:
    options = _options()
    try:
        server = ModelServer(load_scenarios(options.scenario), Record(options.record))
    except ScenarioError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    asyncio.run(_serve(server, options.port))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="sandpiper_local.scripted_model", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--scenario", type=Path, nargs="+", action="extend", default=[], metavar="FILE_OR_DIR")
    parser.add_argument("--record", type=Path, metavar="DIR", help="write every request to a file here")
    return parser.parse_args()


async def _serve(server: ModelServer, port: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    runner, url = await serve(server, port)
    sys.stdout.write(json.dumps({"url": url}) + "\n")
    sys.stdout.flush()
    await stop.wait()
    await runner.cleanup()


if __name__ == "__main__":
    sys.exit(main())
