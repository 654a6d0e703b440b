"""A's end of the socket to the executor. What comes from there is untrusted bytes: bounded, checked, never obeyed.

So it comes as JSON, of which nothing worse can be made than a value. What goes there is trusted, and goes by `marshal`,
which the executor has read in no time.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import marshal
import os
import socket
import struct
import threading
from typing import TYPE_CHECKING, Any

from sandbox_task.isolation.wall import WallError, WallLost
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HEADER = struct.Struct(">I")
_FOR_ANY_PYTHON = 2  # a notation that every one reads: it may be another than A's


class Answer:
    """One answer that is on its way; `fd` becomes readable when it is there, so that it can be polled with a pipe."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._arrived = threading.Event()
        self._message: Mapping[str, Any] | None = None

    def deliver(self, message: Mapping[str, Any] | None) -> None:
        self._message = message
        self._arrived.set()
        os.eventfd_write(self.fd, 1)

    def arrives(self, seconds: float) -> bool:
        return self._arrived.wait(seconds)

    def wait(self, seconds: float) -> Mapping[str, Any]:
        """Raises WallLost if none comes, WallError if it is a refusal."""
        if not self.arrives(seconds) or self._message is None:
            raise WallLost("The sandbox's executor does not answer.")
        if isinstance(error := self._message.get("error"), str):
            raise WallError(error.encode(errors="replace").decode()[: limits.WALL_ERROR_CHARS])
        return self._message


class Channel:
    """Used by several threads. Who sends never waits for who hands out answers, or both ends could wait for ever."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._sending = threading.Lock()
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._pending: dict[int, Answer] = {}
        self._lost = False
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", limits.KILL_SECONDS, 0))

    def start(self) -> Mapping[str, Any]:
        """The executor's first words; from then on answers are handed out as they come."""
        self._sock.settimeout(limits.KILL_SECONDS)
        hello = self._receive()
        self._sock.settimeout(None)
        threading.Thread(target=self._read_answers, name="wall", daemon=True).start()
        return hello

    def request(self, op: str, fields: Mapping[str, Any], fds: Sequence[int] = ()) -> Answer:
        answer = self._expect()
        body = marshal.dumps({"id": answer.number, "op": op, "fds": len(fds), **fields}, _FOR_ANY_PYTHON)
        try:
            with self._sending:
                self._send(_HEADER.pack(len(body)) + body, fds)
        except OSError as error:
            self.forget(answer)
            self.close()  # half a request may have gone out; whoever waits is told by the end of the stream
            raise WallLost("The sandbox's executor is gone.") from error
        return answer

    def ask(self, op: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.finish(self.request(op, fields))

    def finish(self, answer: Answer) -> Mapping[str, Any]:
        try:
            return answer.wait(limits.KILL_SECONDS)
        finally:
            self.forget(answer)

    def forget(self, answer: Answer) -> None:
        with self._lock:
            self._pending.pop(answer.number, None)
            os.close(answer.fd)

    @property
    def is_lost(self) -> bool:
        return self._lost

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._lost = True

    def _expect(self) -> Answer:
        with self._lock:
            answer = Answer(next(self._numbers))
            self._pending[answer.number] = answer
            if self._lost:
                answer.deliver(None)
            return answer

    def _send(self, data: bytes, fds: Sequence[int]) -> None:
        sent = socket.send_fds(self._sock, [data], list(fds)) if fds else 0
        self._sock.sendall(data[sent:])

    def _read_answers(self) -> None:
        try:
            with contextlib.suppress(OSError, ValueError, RecursionError, WallLost):
                while True:
                    self._deliver(self._receive())
        finally:
            with self._lock:
                self._lost = True
                for answer in self._pending.values():
                    answer.deliver(None)
                self._sock.close()

    def _deliver(self, message: Mapping[str, Any]) -> None:
        number = message.get("id")
        with self._lock:
            answer = self._pending.pop(number, None) if isinstance(number, int) else None
            if answer is not None:
                answer.deliver(message)

    def _receive(self) -> Mapping[str, Any]:
        (length,) = _HEADER.unpack(self._receive_exactly(_HEADER.size))
        if length > limits.EXECUTOR_FRAME_BYTES:
            raise WallLost("The sandbox's executor sent more than an answer can be.")
        message = json.loads(self._receive_exactly(length))
        if not isinstance(message, dict):
            raise WallLost("The sandbox's executor sent something that is no answer.")
        return message

    def _receive_exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            part = self._sock.recv(min(count - len(data), 1 << 16))
            if not part:
                raise WallLost("The sandbox's executor is gone.")
            data += part
        return bytes(data)
