"""Everything a client of the local stack talks to, on one port."""

from __future__ import annotations

from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

from sandpiper_local.front_door.git_http import GitHttp
from sandpiper_local.front_door.http_proxy import HttpProxy
from sandpiper_local.front_door.shares import Shares
from sandpiper_local.front_door.websocket_proxy import WebSocketProxy

_BACKEND_SECONDS = 35  # API Gateway gives a function 30


def backend_session() -> ClientSession:
    """Call it inside the event loop. Answers are passed on as they come, compressed or not."""
    timeout = ClientTimeout(total=None, sock_connect=5, sock_read=_BACKEND_SECONDS)
    return ClientSession(auto_decompress=False, timeout=timeout, connector=TCPConnector(limit=0))


def make_app(session: ClientSession, *, http_backend: str, websocket_backend: str, public_url: str) -> web.Application:
    shares = Shares()
    proxy = HttpProxy(session, shares, backend=http_backend, public_url=public_url)
    app = web.Application()
    app.router.add_get("/ws", WebSocketProxy(session, backend=websocket_backend).serve)
    app.router.add_routes(GitHttp(shares).routes())
    app.router.add_route("*", "/{path:.*}", proxy.serve)
    return app


def make_runner(app: web.Application) -> web.AppRunner:
    """Bodies stay as they came: git compresses its own, and a client may too."""
    return web.AppRunner(app, access_log=None, auto_decompress=False, shutdown_timeout=1)
