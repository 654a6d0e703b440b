"""A model that answers at once: a server in a process of its own that plays scripts and notes when it did what.

The scripted model checks every request and counts its tokens, which takes longer than the turn of a bare loop. This one
only looks up what comes next, so that what lies between its answer and the next request is the client's own time.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
from aiohttp import web

from sandpiper_local.scripted_model.conversation import replies_so_far
from sandpiper_local.scripted_model.wire import as_json, events_of, sse

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.1"
SCRIPT = re.compile(r"script-[0-9a-f]{32}")  # what the task says
USAGE = {"input_tokens": 1000, "output_tokens": 20, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}


@dataclass(frozen=True)
class InstantModel:
    url: str

    def play(self, script: str, replies: list[list[dict[str, Any]]]) -> None:
        """`replies` are lists of content blocks."""
        httpx.put(f"{self.url}/_scripts/{script}", json=replies).raise_for_status()

    def own_times(self, script: str) -> list[float]:
        """The seconds from each answer to the next request of the conversation."""
        return [float(seconds) for seconds in httpx.get(f"{self.url}/_scripts/{script}").raise_for_status().json()]


@contextmanager
def instant_model() -> Iterator[InstantModel]:
    with subprocess.Popen([sys.executable, "-m", "bench.instant_model"], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield InstantModel(str(process.stdout and process.stdout.readline()).strip())
        finally:
            process.terminate()


class Script:
    def __init__(self, replies: list[list[dict[str, Any]]]) -> None:
        messages = [_message(number, content) for number, content in enumerate(replies)]
        self._whole = [json.dumps(as_json(message)).encode() for message in messages]
        self._streams = [b"".join(map(sse, events_of(message))) for message in messages]
        self._asked: dict[int, float] = {}
        self._answered: dict[int, float] = {}

    async def answer(self, request: web.Request, body: dict[str, Any], at: float) -> web.StreamResponse:
        place = replies_so_far(body["messages"])
        self._asked[place] = at
        is_stream = body.get("stream")
        kind, answers = ("text/event-stream", self._streams) if is_stream else ("application/json", self._whole)
        response = web.StreamResponse(headers={"content-type": kind})
        await response.prepare(request)
        await response.write_eof(answers[place])
        self._answered[place] = time.monotonic()
        return response

    def own_times(self) -> list[float]:
        return [asked - self._answered[place - 1] for place, asked in sorted(self._asked.items()) if place]


def _message(number: int, content: list[dict[str, Any]]) -> dict[str, Any]:
    calls = any(block["type"] == "tool_use" for block in content)
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": content,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": USAGE,
    }


class Server:
    def __init__(self) -> None:
        self._scripts: dict[str, Script] = {}

    def app(self) -> web.Application:
        app = web.Application(client_max_size=64 * 1024**2)
        app.add_routes([
            web.post("/v1/messages", self._answer),
            web.put("/_scripts/{name}", self._add),
            web.get("/_scripts/{name}", self._times),
        ])  # fmt: skip
        return app

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        data = await request.read()
        at = time.monotonic()
        body = json.loads(data)
        named = SCRIPT.search(data.decode()) if body.get("tools") else None  # without tools: a title for the talk
        script = self._scripts[named[0]] if named else Script([[{"type": "text", "text": "A talk"}]])
        return await script.answer(request, body, at)

    async def _add(self, request: web.Request) -> web.Response:
        self._scripts[request.match_info["name"]] = Script(await request.json())
        return web.Response(status=204)

    async def _times(self, request: web.Request) -> web.Response:
        return web.json_response(self._scripts[request.match_info["name"]].own_times())


def main() -> None:
    listening = socket.create_server((HOST, 0))
    print(f"http://{HOST}:{listening.getsockname()[1]}", flush=True)
    web.run_app(Server().app(), sock=listening, print=None, access_log=None)


if __name__ == "__main__":
    main()
