"""The scripted model behind the paths of the Messages API and of Bedrock, plus a few of its own under `/_`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aiohttp import web

from sandpiper_local.scripted_model import fallback
from sandpiper_local.scripted_model.cache import PromptCache
from sandpiper_local.scripted_model.errors import ProtocolError, Refusal
from sandpiper_local.scripted_model.protocol import check_count
from sandpiper_local.scripted_model.scenario import Fault, Reply, Scenario, ScenarioError, parse_scenario
from sandpiper_local.scripted_model.wire import digest, input_tokens, message_for
from sandpiper_local.scripted_model.wires import (
    ConverseWire,
    InvokeWire,
    MessagesWire,
    Wire,
    authenticate,
    is_beta,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from sandpiper_local.scripted_model.record import Record

MAX_REQUEST_BYTES = 64 * 1024 * 1024  # the API itself takes 32 MB; larger ones are for us to refuse
MODELS = ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5")
_EVENTS_BEFORE_TROUBLE = 2


class ModelServer:
    def __init__(self, scenarios: Iterable[Scenario], record: Record, cache: PromptCache | None = None) -> None:
        self._scenarios = list(scenarios)
        self._record = record
        self._cache = cache or PromptCache()

    def app(self) -> web.Application:
        app = web.Application(client_max_size=MAX_REQUEST_BYTES)
        app.add_routes([
            web.post("/v1/messages", self._speaking(MessagesWire())),
            web.post("/model/{model}/invoke-with-response-stream", self._speaking(InvokeWire())),
            web.post("/model/{model}/converse-stream", self._speaking(ConverseWire())),
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

    def _speaking(self, wire: Wire) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def answer(request: web.Request) -> web.StreamResponse:
            body = await _json_or_none(request)
            entry = self._record.begin(request.path, request.headers, body)
            try:
                conversation = _read(wire, request, body)
                seen = self._record.times_seen(digest(conversation))
                entry["digest"] = digest(conversation)
                name, reply = self._choose(conversation)
                fault = reply.fault if reply.fault is not None and seen < reply.fault.times else Fault()
                await _suffer(fault)
            except Refusal as refusal:
                self._record.complete(entry, status=refusal.status, error=str(refusal))
                return _refused(wire, refusal)
            message = message_for(conversation, reply, self._cache.usage(conversation))
            # before the answer leaves, so that whoever has it finds it in the record
            self._record.complete(entry, status=200, scenario=name, usage=message["usage"])
            if isinstance(wire, MessagesWire) and not conversation.get("stream"):
                return web.Response(body=whole(message), content_type="application/json")
            return await _stream(request, wire, message, fault, reply.pace_seconds)

        return answer

    async def _count(self, request: web.Request) -> web.StreamResponse:
        body = await _json_or_none(request)
        entry = self._record.begin(request.path, request.headers, body)
        try:
            authenticate(request)
            body = _checked(body)
            _obeying(lambda: check_count(body, beta=is_beta(request)))
        except Refusal as refusal:
            self._record.complete(entry, status=refusal.status, error=str(refusal))
            return _refused(MessagesWire(), refusal)
        self._record.complete(entry, status=200)
        return web.json_response({"input_tokens": input_tokens(body)})

    def _choose(self, conversation: dict[str, Any]) -> tuple[str, Reply]:
        for scenario in self._scenarios:
            if scenario.match.fits(conversation):
                return scenario.name, self._next_reply(scenario, conversation)
        return fallback.NAME, fallback.fallback_reply(conversation)

    def _next_reply(self, scenario: Scenario, conversation: dict[str, Any]) -> Reply:
        try:
            return scenario.reply_to(conversation)
        except ScenarioError as error:
            raise Refusal(400, str(error)) from None

    async def _models(self, request: web.Request) -> web.Response:
        try:
            authenticate(request)
        except Refusal as refusal:
            return _refused(MessagesWire(), refusal)
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
            return _refused(MessagesWire(), Refusal(400, str(error)))
        self.add(scenario)
        return web.json_response({"name": scenario.name}, status=201)


async def _json_or_none(request: web.Request) -> Any:
    try:
        return await request.json()
    except ValueError:
        return None


def _read(wire: Wire, request: web.Request, body: Any) -> dict[str, Any]:
    return _obeying(lambda: wire.read(request, _checked(body)))


def _checked(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise Refusal(400, "The request body is not valid JSON: an object is needed")
    return body


def _obeying[T](rules: Callable[[], T]) -> T:
    try:
        return rules()
    except ProtocolError as error:
        raise Refusal(400, str(error)) from None


async def _suffer(fault: Fault) -> None:
    await asyncio.sleep(fault.delay_seconds)
    if fault.status is not None:
        headers = {} if fault.retry_after is None else {"retry-after": f"{fault.retry_after:g}"}
        raise Refusal(fault.status, fault.message or f"a scripted fault ({fault.status})", headers)


def _refused(wire: Wire, refusal: Refusal) -> web.Response:
    body, headers = wire.refuse(refusal)
    return web.json_response(body, status=refusal.status, headers=headers)


async def _stream(
    request: web.Request, wire: Wire, message: dict[str, Any], fault: Fault, pace_seconds: float
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"cache-control": "no-cache"})
    response.content_type = wire.content_type
    await response.prepare(request)
    frames = _with_trouble(wire, wire.frames(message), fault)
    for piece in frames if pace_seconds else [b"".join(frames)[: fault.cut_after_bytes]]:
        await response.write(piece)
        await asyncio.sleep(pace_seconds)
    if fault.cut_after_bytes is None:
        await response.write_eof()
    elif request.transport is not None:
        request.transport.close()
    return response


def _with_trouble(wire: Wire, frames: list[bytes], fault: Fault) -> list[bytes]:
    if fault.stream_error is not None:
        return [*frames[:_EVENTS_BEFORE_TROUBLE], wire.error_frame(fault.stream_error)]
    if fault.garbled:
        return [*frames[:_EVENTS_BEFORE_TROUBLE], wire.garbage]
    return frames[: fault.end_after_events]
