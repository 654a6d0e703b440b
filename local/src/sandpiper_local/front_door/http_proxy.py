"""The HTTP API at `/`: requests go to ministack's API Gateway and answers come back as they are.

One difference from AWS, on purpose: what API Gateway itself refuses (no token, no such route) has the one error shape
here. On AWS an HTTP API has no gateway responses, so its clients see `{"message": …}` for those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import ClientConnectionError, ClientResponse, ClientSession, web
from multidict import CIMultiDict
from yarl import URL

from sandpiper_local.front_door.answers import error_response, gateway_message
from sandpiper_local.front_door.local_repos import TOKEN_HEADER, find_local_repo, share_repo
from sandpiper_local.front_door.shares import NotARepository

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandpiper_local.front_door.local_repos import LocalRepo
    from sandpiper_local.front_door.shares import Shares

MAX_BODY_BYTES = 10 * 1024 * 1024  # API Gateway's
_REFUSAL_BYTES = 64 * 1024
_HOP_BY_HOP = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
    "upgrade", "host", "content-length",
})  # fmt: skip


class TooLarge(Exception):
    pass


class HttpProxy:
    def __init__(self, session: ClientSession, shares: Shares, *, backend: str, public_url: str) -> None:
        self._session = session
        self._shares = shares
        self._backend = backend
        self._public_url = public_url

    async def serve(self, request: web.Request) -> web.StreamResponse:
        try:
            body = await _bounded_body(request)
        except TooLarge:
            return error_response(413, f"the request is larger than {MAX_BODY_BYTES} bytes")
        repo = find_local_repo(body) if (request.method, request.path) == ("POST", "/execute") else None
        try:
            if repo is not None:
                return await self._execute_locally(request, body, repo)
            return await self._forward(request, body, end_to_end(request.headers))
        except TimeoutError:
            return error_response(504, "the API did not answer in time")
        except ClientConnectionError:
            return error_response(502, "the API can't be reached")

    async def _execute_locally(self, request: web.Request, body: bytes, repo: LocalRepo) -> web.StreamResponse:
        headers = end_to_end(request.headers)
        try:
            shared = await share_repo(
                body, repo, self._shares, base_url=self._public_url, token=headers.get(TOKEN_HEADER)
            )
        except NotARepository as error:
            return await self._refuse_path(headers, repo, str(error))
        headers[TOKEN_HEADER] = shared.token
        response = await self._forward(request, shared.body, headers)
        if response.status >= 400:
            self._shares.revoke(shared.share, shared.token)
        return response

    async def _refuse_path(self, headers: CIMultiDict[str], repo: LocalRepo, message: str) -> web.StreamResponse:
        """Only to callers whom the API knows: nobody else may ask which paths exist."""
        credentials = {"Authorization": headers.get("Authorization", "")}
        async with self._session.get(self._url("/runs?limit=1"), headers=credentials) as answer:
            if answer.status in {401, 403}:
                return error_response(answer.status, _explained(answer.status, "Unauthorized"))
        return error_response(
            422, f"{repo.field}: {message}", details=[{"field": repo.field, "message": message}]
        )  # fmt: skip

    async def _forward(self, request: web.Request, body: bytes, headers: CIMultiDict[str]) -> web.StreamResponse:
        url = self._url(request.rel_url.raw_path_qs if request.rel_url.raw_path else request.path_qs)
        async with self._session.request(
            request.method, url, headers=headers, data=body or None, allow_redirects=False
        ) as answer:
            return await _pass_back(request, answer)

    def _url(self, path: str) -> URL:
        return URL(self._backend + path, encoded=True)


async def _bounded_body(request: web.Request) -> bytes:
    if (request.content_length or 0) > MAX_BODY_BYTES:
        raise TooLarge
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise TooLarge
    return bytes(body)


def end_to_end(headers: Mapping[str, str]) -> CIMultiDict[str]:
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in _HOP_BY_HOP)


async def _pass_back(request: web.Request, answer: ClientResponse) -> web.StreamResponse:
    headers = end_to_end(answer.headers)
    if answer.status >= 400 and (answer.content_length or 0) <= _REFUSAL_BYTES:
        body = await answer.read()
        message = gateway_message(answer.status, body)
        if message is not None:
            return error_response(answer.status, _explained(answer.status, message))
        return web.Response(status=answer.status, headers=headers, body=body)
    response = web.StreamResponse(status=answer.status, headers=headers)
    response.content_length = answer.content_length
    await response.prepare(request)
    async for chunk in answer.content.iter_any():
        await response.write(chunk)
    await response.write_eof()
    return response


def _explained(status: int, message: str) -> str:
    words = {
        401: "a token is needed: Authorization: Bearer <token>",
        403: "the token was refused: it is not valid, has expired, or may not do this",
        404: "there is no such route",
        503: "the API is not available right now",
    }
    return words.get(status, message)
