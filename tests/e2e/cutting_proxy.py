"""A bad network between a client and the stack: a TCP relay that can cut every connection at any moment."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Coroutine

_CHUNK = 64 * 1024


class CuttingProxy:
    """Stands in front of one URL. Answers name the proxy where they named what is behind it, as NAT would do."""

    def __init__(self, url: str) -> None:
        self._port = urlsplit(url).port or 80
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._open: set[asyncio.StreamWriter] = set()
        self.sockets_opened = 0
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]
        # the address is replaced in answers whose length has been announced
        assert len(str(self.port)) == len(str(self._port))
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    def __exit__(self, *_exc: object) -> None:
        self._server.close()
        self.cut()
        self._run(self._finished())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> int:
        """Reset whatever is open now; returns how many connections that were."""
        return self._run(self._cut())

    def _run[T](self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=30)

    async def _cut(self) -> int:
        cut = len(self._open)
        for writer in self._open:
            writer.transport.abort()
        return cut

    async def _finished(self) -> None:
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind_reader, behind_writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._open |= {writer, behind_writer}
        await asyncio.gather(self._relay(reader, behind_writer), self._relay(behind_reader, writer))
        self._open -= {writer, behind_writer}

    async def _relay(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while chunk := await source.read(_CHUNK):
                self.sockets_opened += b"101 Switching Protocols" in chunk
                target.write(chunk.replace(b":%d/ws" % self._port, b":%d/ws" % self.port))
                await target.drain()
        target.close()
