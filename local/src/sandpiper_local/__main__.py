"""`python -m sandpiper_local up|down|status`: the local stack without the command line client."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from sandpiper_local.errors import LocalError
from sandpiper_local.paths import default_state_dir
from sandpiper_local.processes import end_with_parent
from sandpiper_local.stack import DEFAULT_PORT, UpOptions, down, status, up


def main() -> int:
    options = _options()
    report = _report_json if options.json else _report_text
    try:
        if options.command == "up":
            if options.parent is not None:
                end_with_parent(options.parent, signal.SIGTERM)
            up(UpOptions(port=options.port, state_dir=options.state_dir, github=options.github), report)
        elif options.command == "down":
            report({"event": "down", "message": "stopped" if down(options.state_dir) else "nothing was running"})
        else:
            report({"event": "status", "message": json.dumps(status(options.state_dir))})
    except LocalError as error:
        report({"event": "error", "message": str(error), "exit_code": error.exit_code})
        return error.exit_code
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="sandpiper_local", description=__doc__)
    parser.add_argument("command", choices=["up", "down", "status"])
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 takes a free one")
    parser.add_argument("--state-dir", type=Path, default=default_state_dir(os.environ))
    parser.add_argument("--github", choices=["real", "fake"], default="real", help="fake: one of this stack's own")
    parser.add_argument("--parent", type=int, metavar="PID", help="stop when this process, which started us, ends")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    return parser.parse_args()


def _report_json(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _report_text(message: dict[str, Any]) -> None:
    if message["event"] == "ready":
        sys.stdout.write(f"ready: {message['api_url']} (socket {message['ws_url']}, model: {message['model']})\n")
    else:
        sys.stdout.write(f"{message['message']}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
