"""`git http-backend` behind a token: clone from and push to a shared repository. Streams both ways."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import os
import signal
from typing import TYPE_CHECKING

from aiohttp import web

from sandpiper_local.front_door.answers import error_response
from sandpiper_local.front_door.shares import git_environment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sandpiper_local.front_door.shares import Shares

_USER = "x-access-token"
_CHUNK = 64 * 1024


class GitHttp:
    def __init__(self, shares: Shares) -> None:
        self._shares = shares

    def routes(self) -> list[web.RouteDef]:
        path = "/git/{share}/{name}.git/{service:info/refs|git-upload-pack|git-receive-pack}"
        return [web.get(path, self.serve), web.post(path, self.serve)]

    async def serve(self, request: web.Request) -> web.StreamResponse:
        share = self._shares.find(request.match_info["share"], request.match_info["name"])
        token = basic_token(request.headers.get("Authorization", ""))
        # an unknown share and a wrong token look the same: the URL of a share is no secret, its existence is
        if share is None or token is None or not self._shares.allows(share, token):
            refusal = error_response(401, "this repository needs the token of a run")
            refusal.headers["WWW-Authenticate"] = 'Basic realm="sandpiper"'
            return refusal
        return await git_backend(request, share.git_dir, git_environment(share.path, share.git_dir))


def basic_token(authorization: str) -> str | None:
    user, token = basic_credentials(authorization) or ("", "")
    return token if user == _USER and token else None


def basic_credentials(authorization: str) -> tuple[str, str] | None:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return user, password


async def git_backend(request: web.Request, git_dir: Path, environment: Mapping[str, str]) -> web.StreamResponse:
    """The route's `service` of one repository. Who may is decided by the caller."""
    process = await asyncio.create_subprocess_exec(
        "git", "http-backend",
        env={**environment, **_cgi_environment(request, git_dir)},
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    feeding = asyncio.create_task(_feed(request, process))
    try:
        return await _answer(request, process)
    finally:
        feeding.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _cgi_environment(request: web.Request, git_dir: Path) -> dict[str, str]:
    """No CONTENT_LENGTH: the backend reads to the end of its input, so a chunked body needs no buffer."""
    return {
        "GIT_PROJECT_ROOT": str(git_dir),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": f"/{request.match_info['service']}",
        "QUERY_STRING": request.rel_url.raw_query_string,
        "REQUEST_METHOD": request.method,
        "CONTENT_TYPE": request.headers.get("Content-Type", ""),
        "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding", ""),
        "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
        "REMOTE_USER": _USER,
        "REMOTE_ADDR": request.remote or "",
    }


async def _feed(request: web.Request, process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None  # noqa: S101 - a pipe was asked for
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the backend has read enough
        async for chunk in request.content.iter_chunked(_CHUNK):
            process.stdin.write(chunk)
            await process.stdin.drain()
        process.stdin.close()


async def _answer(request: web.Request, process: asyncio.subprocess.Process) -> web.StreamResponse:
    assert process.stdout is not None  # noqa: S101 - a pipe was asked for
    response = web.StreamResponse()
    while line := (await process.stdout.readline()).strip():
        name, _, value = line.decode("latin-1").partition(": ")
        if name.lower() == "status":
            response.set_status(int(value.split()[0]))
        else:
            response.headers[name] = value
    if not response.headers:
        return error_response(502, "git could not serve the repository")
    await response.prepare(request)
    while chunk := await process.stdout.read(_CHUNK):
        await response.write(chunk)
    await response.write_eof()
    return response
