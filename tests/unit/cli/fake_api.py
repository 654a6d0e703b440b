"""A small Sandpiper API on the loopback: real HTTP and a real socket, with the faults that a test asks for."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import WSMsgType, web

TOKEN = "a-token"
RUN_ID = "run-01jd0000000000000000000000"


def event(seq: int, kind: str = "agent_message", **data: Any) -> dict[str, Any]:
    return {
        "run_id": RUN_ID,
        "seq": seq,
        "ts": "2026-11-18T06:00:00Z",
        "attempt": 1,
        "type": kind,
        "data": data or {"text": f"words {seq}"},
    }


def a_run(**changes: Any) -> dict[str, Any]:
    return {
        "run_id": RUN_ID,
        "status": "completed",
        "suspend_reason": None,
        "type": "bug-fix",
        "task": "Fix it",
        "repo": "owner/repo",
        "created_at": "2026-11-18T06:00:00Z",
        "attempt": 1,
        "last_seq": 0,
        "queue_position": None,
        "question": None,
        "approval": None,
        "budget": {"max_turns": 48, "max_cost_usd": None, "max_total_tokens": None, "timeout_seconds": 900},
        "result": None,
        "error": None,
    } | changes


def a_quota(**changes: Any) -> dict[str, Any]:
    starts = {"name": "starts_per_day", "limit": 25, "used": 25, "left": 0, "opens_at": "2026-11-19T06:00:00Z"}
    dollars = {"name": "monthly_usd", "limit": 100, "used": 12.5, "left": 87.5, "opens_at": None}
    no_limit = {"name": "concurrency", "limit": None, "used": 1, "left": None, "opens_at": None}
    return {"scope": "user", "name": "ann", "limits": [starts, dollars, no_limit]} | changes


@dataclass
class SocketScript:
    """What is sent after one subscription; then it is cut, or stays silent."""

    frames: list[Any] | None = None  # None: all events after the one asked for
    then_cut: bool = False
    refusal: dict[str, Any] | None = None  # in place of `subscribed`


@dataclass
class FakeApi:
    run: dict[str, Any] = field(default_factory=a_run)
    events: list[dict[str, Any]] = field(default_factory=list)
    sockets: list[SocketScript] = field(default_factory=list)  # one per subscription; then the default
    refuses_sockets: bool = False
    failures: list[tuple[int, dict[str, Any]]] = field(default_factory=list)  # answers that come first
    files: dict[str, bytes] = field(default_factory=dict)  # those named `…-…` are parts of the log
    requests: list[dict[str, Any]] = field(default_factory=list)
    subscriptions: list[int] = field(default_factory=list)
    url: str = ""

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._runner = web.AppRunner(self._app(), shutdown_timeout=0.1)
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(timeout=10)
        return self

    def __exit__(self, *_exc: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(timeout=10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def bodies(self, path: str) -> list[Any]:
        return [request["body"] for request in self.requests if request["path"] == path]

    async def _listen(self) -> None:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    def _app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        run = f"/runs/{RUN_ID}"
        app.add_routes([
            web.get("/health", self._health),
            web.post("/execute", self._execute),
            web.get("/runs", self._runs),
            web.get(run, self._run),
            web.get(f"{run}/events", self._events),
            web.get(f"{run}/logs", self._logs),
            web.get(f"{run}/diff", self._link),
            web.post(f"{run}/cancel", self._run),
            web.post(f"{run}/budget", self._run),
            web.post(f"{run}/messages", self._message),
            web.post(f"{run}/resume", self._run),
            web.post(f"{run}/pause", self._run),
            web.post(f"{run}/approvals/{{approval}}", self._run),
            web.get("/usage", self._usage),
            web.get("/quotas/{kind}/{name}", self._quota),
            web.put("/quotas/{kind}/{name}", self._quota),
            web.post("/tickets", self._ticket),
            web.get("/files/{name}", self._file),
            web.get("/ws", self._socket),
        ])  # fmt: skip
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else None
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append({"path": request.path, "query": dict(request.query), "headers": headers, "body": body})
        if request.path not in {"/health", "/ws"} and not request.path.startswith("/files/"):
            if self.failures:
                status, error = self.failures.pop(0)
                return web.json_response({"success": False, "error": error}, status=status)
            if headers.get("authorization") != f"Bearer {TOKEN}":
                error = {"type": "authentication_error", "message": "Who are you?", "request_id": "req-1"}
                return web.json_response({"success": False, "error": error}, status=401)
        response: web.StreamResponse = await handler(request)
        return response

    async def _health(self, _request: web.Request) -> web.Response:
        return web.json_response({"status": "healthy", "version": "0.1.0", "checks": {"database": True}})

    async def _execute(self, _request: web.Request) -> web.Response:
        return web.json_response({"success": True, "run_id": RUN_ID, "status": "queued"}, status=202)

    async def _runs(self, _request: web.Request) -> web.Response:
        return web.json_response({"success": True, "runs": [self.run], "cursor": None})

    async def _run(self, _request: web.Request) -> web.Response:
        last = max((found["seq"] for found in self.events), default=0)
        return web.json_response({"success": True, "run": self.run | {"last_seq": last}})

    async def _message(self, _request: web.Request) -> web.Response:
        return web.json_response({"success": True, "n": 4, "run": self.run})

    async def _usage(self, request: web.Request) -> web.Response:
        month = request.query.get("month", "2026-11")
        figures = {"input_tokens": 1000, "output_tokens": 300, "cache_read_tokens": 200, "cache_write_tokens": 34}
        totals = {"runs": 2, "turns": 9, "cost_usd": 1.25}
        return web.json_response({"success": True, "month": month, **totals, **figures, "quotas": [a_quota()]})

    async def _quota(self, request: web.Request) -> web.Response:
        kind, name = request.match_info["kind"], request.match_info["name"]
        return web.json_response({"success": True, "quota": a_quota(scope=kind.removesuffix("s"), name=name)})

    async def _events(self, request: web.Request) -> web.Response:
        after, limit = int(request.query["after"]), int(request.query["limit"])
        page = [found for found in self.events if found["seq"] > after][:limit]
        return web.json_response({"success": True, "events": page, "last_seq": len(self.events)})

    async def _logs(self, request: web.Request) -> web.Response:
        if not (names := sorted(name for name in self.files if "-" in name)):
            return await self._link(request)
        later = [name for name in names if name > request.query.get("after", "")][: int(request.query["limit"])]
        parts = [{"name": name, "url": f"{self.url}/files/{name}"} for name in later]
        return web.json_response({"success": True, "url": None, "expires_at": "soon", "parts": parts})

    async def _link(self, request: web.Request) -> web.Response:
        name = request.path.rpartition("/")[2]
        if name not in self.files:
            error = {"type": "not_found", "message": f"There is no {name} yet."}
            return web.json_response({"success": False, "error": error}, status=404)
        url = f"{self.url}/files/{name}?signature=abc"
        return web.json_response({"success": True, "url": url, "expires_at": "2026-11-18T06:15:00Z"})

    async def _file(self, request: web.Request) -> web.Response:
        return web.Response(body=self.files[request.match_info["name"]])

    async def _ticket(self, _request: web.Request) -> web.Response:
        url = self.url.replace("http", "ws") + "/ws"
        return web.json_response({"success": True, "ticket": "once", "websocket_url": url, "expires_at": "soon"})

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        if self.refuses_sockets or request.query.get("ticket") != "once":
            return web.Response(status=403)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            if message.type is WSMsgType.TEXT and json.loads(message.data)["action"] == "subscribe":
                script = self.sockets.pop(0) if self.sockets else SocketScript()
                await self._play(socket, script, json.loads(message.data)["after"])
                if script.then_cut and request.transport is not None:
                    request.transport.abort()
        return socket

    async def _play(self, socket: web.WebSocketResponse, script: SocketScript, after: int) -> None:
        self.subscriptions.append(after)
        if script.refusal is not None:
            await socket.send_json({"type": "error", "error": script.refusal})
            return
        last = max((found["seq"] for found in self.events), default=0)
        await socket.send_json({"type": "subscribed", "run_id": RUN_ID, "after": after, "last_seq": last})
        replay = [{"type": "event", "event": found} for found in self.events if found["seq"] > after]
        for frame in replay if script.frames is None else script.frames:
            await (socket.send_str(frame) if isinstance(frame, str) else socket.send_json(frame))
