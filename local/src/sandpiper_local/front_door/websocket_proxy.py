"""The WebSocket API at `/ws`. The backend is asked first, so a refused ticket is an HTTP status and no open socket."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiohttp import ClientConnectionError, ClientSession, WSMsgType, WSServerHandshakeError, web
from yarl import URL

from sandpiper_local.front_door.answers import error_response

if TYPE_CHECKING:
    from aiohttp import ClientWebSocketResponse

    type Socket = web.WebSocketResponse | ClientWebSocketResponse

MAX_MESSAGE_BYTES = 128 * 1024  # API Gateway's


class WebSocketProxy:
    def __init__(self, session: ClientSession, *, backend: str) -> None:
        self._session = session
        self._backend = backend

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if not web.WebSocketResponse().can_prepare(request).ok:
            return error_response(400, "this address speaks WebSocket only")
        url = URL(f"{self._backend}?{request.rel_url.raw_query_string}", encoded=True)
        try:
            async with self._session.ws_connect(url, max_msg_size=0) as backend:
                return await _join(request, backend)
        except WSServerHandshakeError as error:
            return error_response(error.status, "the ticket was refused: it is not valid, was used before, or expired")
        except (ClientConnectionError, TimeoutError):
            return error_response(502, "the WebSocket API can't be reached")


async def _join(request: web.Request, backend: ClientWebSocketResponse) -> web.WebSocketResponse:
    client = web.WebSocketResponse(max_msg_size=MAX_MESSAGE_BYTES)
    await client.prepare(request)
    directions = {asyncio.create_task(_pump(client, backend)), asyncio.create_task(_pump(backend, client))}
    _, open_still = await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
    for direction in open_still:
        direction.cancel()
    await asyncio.gather(*directions, return_exceptions=True)
    return client


async def _pump(source: Socket, target: Socket) -> None:
    """Until one side is closed; its close code is passed on."""
    try:
        async for message in source:
            if message.type is WSMsgType.TEXT:
                await target.send_str(message.data)
            elif message.type is WSMsgType.BINARY:
                await target.send_bytes(message.data)
    except ConnectionResetError:
        pass  # the target went away first
    await target.close(code=_sendable(source.close_code))


def _sendable(code: int | None) -> int:
    """1005 and 1006 mean "no code was received" and may not be sent."""
    return 1000 if code in {None, 1005, 1006} else int(code or 1000)
