"""The scripted model behind the Messages API's own paths, plus a few of its own under `/_`."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from aiohttp import web

from sandpiper_local.scripted_model import fallback
from sandpiper_local.scripted_model.errors import ProtocolError, error_body
from sandpiper_local.scripted_model.protocol import check_count, check_create
from sandpiper_local.scripted_model.scenario import Fault, Reply, Scenario, ScenarioError, parse_scenario
from sandpiper_local.scripted_model.wire import digest, input_tokens, message_for, stream_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandpiper_local.scripted_model.record import Record

MAX_REQUEST_BYTES = 64 * 1024 * 1024  # the API itself takes 32 MB; larger ones are for us to refuse
MODELS = ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5")


class Refusal(Exception):
    """An answer in the API's error shape."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


class ModelServer:
    def __init__(self, scenarios: Iterable[Scenario], record: Record) -> None:
        self._scenarios = list(scenarios)
        self._record = record

    def app(self) -> web.Application:
        app = web.Application(client_max_size=MAX_REQUEST_BYTES)
        app.add_routes([
            web.post("/v1/messages", self._create),
            web.post("/v1/messages/count_tokens", self._count),
            web.get("/v1/models", self._models),
            web.get("/_requests", self._requests),
            web.delete("/_requests", self._forget),
            web.post("/_scenarios", self._add_scenario),
        ])  # fmt: skip
        return app

    def add(self, scenario: Scenario) -> None:
        """The newest comes first, so that a test can override what is there."""
        self._scenarios.insert(0, scenario)

    async def _create(self, request: web.Request) -> web.StreamResponse:
        body = await _json_or_none(request)
        entry = self._record.begin(request.path, request.headers, body)
        try:
            _authenticate(request)
            body = _checked(body)
            _check(check_create, request, body)
            seen = self._record.times_seen(digest(body))
            entry["digest"] = digest(body)
            name, reply = self._choose(body)
            fault = reply.fault if reply.fault is not None and seen < reply.fault.times else Fault()
            await _suffer(fault)
        except Refusal as refusal:
            self._record.complete(entry, status=refusal.status, error=str(refusal))
            return _refused(refusal)
        # before the answer leaves, so that whoever has it finds it in the record
        self._record.complete(entry, status=200, scenario=name)
        return await _send(
            request, message_for(body, reply), stream=bool(body.get("stream")), cut=fault.cut_after_bytes
        )

    async def _count(self, request: web.Request) -> web.StreamResponse:
        body = await _json_or_none(request)
        entry = self._record.begin(request.path, request.headers, body)
        try:
            _authenticate(request)
            body = _checked(body)
            _check(check_count, request, body)
        except Refusal as refusal:
            self._record.complete(entry, status=refusal.status, error=str(refusal))
            return _refused(refusal)
        self._record.complete(entry, status=200)
        return web.json_response({"input_tokens": input_tokens(body)})

    def _choose(self, body: dict[str, Any]) -> tuple[str, Reply]:
        for scenario in self._scenarios:
            if scenario.match.fits(body):
                return scenario.name, self._next_reply(scenario, body)
        return fallback.NAME, fallback.fallback_reply(body)

    def _next_reply(self, scenario: Scenario, body: dict[str, Any]) -> Reply:
        try:
            return scenario.reply_to(body)
        except ScenarioError as error:
            raise Refusal(400, str(error)) from None

    async def _models(self, request: web.Request) -> web.Response:
        try:
            _authenticate(request)
        except Refusal as refusal:
            return _refused(refusal)
        data = [{"type": "model", "id": name, "display_name": f"{name} (scripted)"} for name in MODELS]
        return web.json_response({"data": data, "has_more": False, "first_id": MODELS[0], "last_id": MODELS[-1]})

    async def _requests(self, _request: web.Request) -> web.Response:
        return web.json_response({"requests": self._record.entries()})

    async def _forget(self, _request: web.Request) -> web.Response:
        self._record.clear()
        return web.Response(status=204)

    async def _add_scenario(self, request: web.Request) -> web.Response:
        try:
            scenario = parse_scenario(await _json_or_none(request), origin="the body")
        except ScenarioError as error:
            return _refused(Refusal(400, str(error)))
        self.add(scenario)
        return web.json_response({"name": scenario.name}, status=201)


async def _json_or_none(request: web.Request) -> Any:
    try:
        return await request.json()
    except ValueError:
        return None


def _checked(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise Refusal(400, "The request body is not valid JSON: an object is needed")
    return body


def _authenticate(request: web.Request) -> None:
    bearer = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
    if not bearer and not request.headers.get("x-api-key"):
        raise Refusal(401, "x-api-key: header or bearer token is required")


def _check(rules: Any, request: web.Request, body: dict[str, Any]) -> None:
    if "anthropic-version" not in request.headers:
        raise Refusal(400, "anthropic-version: header is required")
    beta = "anthropic-beta" in request.headers or request.query.get("beta") == "true"
    try:
        rules(body, beta=beta)
    except ProtocolError as error:
        raise Refusal(400, str(error)) from None


async def _suffer(fault: Fault) -> None:
    await asyncio.sleep(fault.delay_seconds)
    if fault.status is not None:
        headers = {} if fault.retry_after is None else {"retry-after": f"{fault.retry_after:g}"}
        raise Refusal(fault.status, f"a scripted fault ({fault.status})", headers)


def _refused(refusal: Refusal) -> web.Response:
    return web.json_response(error_body(refusal.status, str(refusal)), status=refusal.status, headers=refusal.headers)


async def _send(request: web.Request, message: dict[str, Any], *, stream: bool, cut: int | None) -> web.StreamResponse:
    data = b"".join(stream_of(message)) if stream else json.dumps(message).encode()
    response = web.StreamResponse(headers={"cache-control": "no-cache"})
    response.content_type = "text/event-stream" if stream else "application/json"
    response.content_length = None if stream else len(data)
    await response.prepare(request)
    await response.write(data if cut is None else data[:cut])
    if cut is None:
        await response.write_eof()
    elif request.transport is not None:
        request.transport.close()
    return response
