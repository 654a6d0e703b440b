"""What runs as B inside the wall: it does what A asks over the socket that it inherits as descriptor 0.

It is given to the interpreter as text (`python -I -S -c`), so it uses the standard library only, and the oldest
Python that a machine may offer to B (3.9). A trusts nothing that it says.

Each message is a 4-byte length and a JSON object with `id`; descriptors travel with the request that uses them.
"""

# Importing pathlib would be half of the time that the wall takes to go up.
# ruff: noqa: PTH103, PTH118, PTH120, PTH123, PTH208

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import selectors
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

PR_SET_CHILD_SUBREAPER = 36
KILL_ROUNDS = 500


class Refused(Exception):
    """A file request that can't be done, in words for the model."""


class Executor:
    def __init__(self, sock: socket.socket, *, own_namespace: bool) -> None:
        self.sock = sock
        self.own_namespace = own_namespace
        self.commands: dict[int, int] = {}  # pid -> id of the request
        self.buffer = b""
        self.fds: list[int] = []

    def serve(self) -> None:
        woken, wake = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self.send({"hello": identity()})
        with selectors.DefaultSelector() as selector:
            selector.register(self.sock, selectors.EVENT_READ)
            selector.register(woken, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self.sock:
                        self.receive()
                    else:
                        with contextlib.suppress(BlockingIOError):
                            os.read(woken, 4096)
                        self.reap()

    def receive(self) -> None:
        data, fds, _, _ = socket.recv_fds(self.sock, 1 << 16, 4)
        if not data:
            self.kill_all()
            sys.exit(0)
        self.buffer += data
        self.fds += fds
        while len(self.buffer) >= 4:
            (length,) = struct.unpack(">I", self.buffer[:4])
            if len(self.buffer) < 4 + length:
                return
            message = json.loads(self.buffer[4 : 4 + length])
            self.buffer = self.buffer[4 + length :]
            self.handle(message)

    def handle(self, message: dict[str, Any]) -> None:
        number = message["id"]
        try:
            answer = getattr(self, "do_" + message["op"])(message)
        except (OSError, Refused) as error:
            answer = {"error": words(error)}
        if answer is not None:
            self.send({"id": number, **answer})

    def do_start(self, message: dict[str, Any]) -> None:
        fds = [self.fds.pop(0) for _ in range(message["fds"])]
        try:
            child = subprocess.Popen(
                message["argv"],
                cwd=message["cwd"],
                env=message["env"],
                stdin=fds[1] if len(fds) > 1 else subprocess.DEVNULL,
                stdout=fds[0],
                stderr=fds[0],
                start_new_session=True,
            )
        finally:
            for fd in fds:
                os.close(fd)
        child.returncode = 0  # reaped by `reap`, never by Popen
        self.commands[child.pid] = message["id"]

    def do_kill_all(self, _message: dict[str, Any]) -> dict[str, Any]:
        self.kill_all()
        return {"ok": True}

    def do_read(self, message: dict[str, Any]) -> dict[str, Any]:
        path = inside(message["root"], message["path"])
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            size = regular(file)
            file.seek(message["offset"])
            data = file.read(message["limit"])
        return {"data": base64.b64encode(data).decode(), "size": size}

    def do_write(self, message: dict[str, Any]) -> dict[str, Any]:
        path = inside(message["root"], message["path"])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o664), "wb") as file:
            regular(file)
            file.truncate()
            file.write(base64.b64decode(message["data"]))
        return {"ok": True}

    def kill_all(self) -> None:
        """Until nothing is left but this process: a fork bomb may take several rounds."""
        for _ in range(KILL_ROUNDS):
            alive = everything_else() if self.own_namespace else descendants(os.getpid())
            for pid in alive:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            self.reap()
            if not alive:
                return
            time.sleep(0.002)

    def reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                number = self.commands.pop(pid, None)
                if number is not None:
                    self.send({"id": number, "exit": os.waitstatus_to_exitcode(status)})

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        self.sock.sendall(struct.pack(">I", len(body)) + body)


def inside(root: str, path: str) -> str:
    """The real place of `path`; a link that leads out of the workspace is refused."""
    real = os.path.realpath(os.path.join(root, path))
    if real != root and not real.startswith(root + "/"):
        raise Refused(f"{path} is outside the workspace")
    return real


def regular(file: IO[bytes]) -> int:
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise Refused("not a regular file")
    return status.st_size


def words(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)
    return str(error)


def processes() -> Iterator[tuple[int, int]]:
    """(pid, parent) of every live process that this one can see."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
                if state != b"Z":
                    yield int(name), int(parent)


def descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in processes():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def everything_else() -> list[int]:
    """In a pid namespace of its own: all but the namespace's init and this process. One signal reaches them at once."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(-1, signal.SIGKILL)
    return [pid for pid, _ in processes() if pid not in (1, os.getpid())]


def adopt_orphans() -> None:
    """A process whose parent ends becomes this one's child, and not that of somebody who can't find it."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def identity() -> dict[str, int]:
    with open("/proc/self/status", encoding="ascii") as file:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    privileges = ("CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs")
    return {"uid": os.getuid(), "gid": os.getgid(), **{name: int(fields[name], 16) for name in privileges}}


def main() -> None:
    sock = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.umask(0o002)
    adopt_orphans()
    Executor(sock, own_namespace=sys.argv[1] == "namespace").serve()


if __name__ == "__main__":
    main()
