"""`python -m sandpiper_local.ecs_agent SETTINGS_JSON`, with the root's credentials in the environment."""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
from pathlib import Path

from botocore.session import Session

from sandpiper_local.ecs_agent.agent import Agent, Settings
from sandpiper_local.ecs_agent.bell import NAME, Bell

_LOOK_SECONDS = 1  # even if nobody rings


def main(text: str) -> None:
    logging.basicConfig(format="%(asctime)s %(message)s")
    logging.getLogger("sandpiper_local").setLevel(logging.INFO)
    given = json.loads(text)
    settings = Settings(
        cluster=given["cluster"],
        task_stopped_function=given["task_stopped_function"],
        endpoint=given["endpoint"],
        region=given["region"],
        logs=Path(given["logs"]),
        scratch=Path(given["scratch"]),
        tools=Path(given["tools"]) if given["tools"] else None,
    )
    session = Session()
    ecs, sts, functions = (session.create_client(service) for service in ("ecs", "sts", "lambda"))
    agent = Agent(settings, ecs=ecs, sts=sts, functions=functions)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        with Bell(settings.scratch / NAME) as bell:
            while not stop.is_set():
                agent.poll()
                bell.wait([agent.hears], _LOOK_SECONDS)
    finally:
        agent.close()


if __name__ == "__main__":
    main(sys.argv[1])
