"""What runs as B inside the wall: it does what A asks over the socket that it inherits as descriptor 0.

It is given to the interpreter as text (`python -I -S -c`), with its siblings beside it, so it uses the standard
library only, and the oldest Python that a machine may offer to B (3.9). A trusts nothing that it says.

Each message is a 4-byte length and a JSON object with `id`; descriptors travel with the request that uses them.
"""

# Importing pathlib would be half of the time that the wall takes to go up.
# ruff: noqa: PTH103, PTH118, PTH120, PTH123

from __future__ import annotations

import base64
import contextlib
import json
import os
import selectors
import signal
import socket
import stat
import struct
import sys
import time

from sandbox_task.isolation.confinement.inside import standing
from sandbox_task.isolation.keeper import hand_over, new_keeper, words
from sandbox_task.isolation.processes import (
    Process,
    adopt_orphans,
    close_to_others,
    descendants,
    knows_scopes,
    processes,
    send_signal,
    signal_all,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO, Any

KILL_ROUNDS = 500
FREEZE_ROUNDS = 100
MOST_SPARE = 4


class Refused(Exception):
    """A request that can't be done, in words for the model."""


class Executor:
    """Each command has a keeper (see `keep`), so that it can be ended with all that it started, and nothing else."""

    def __init__(self, sock: socket.socket, *, own_namespace: bool) -> None:
        self.sock = sock
        self.is_apart = own_namespace or knows_scopes()  # what it signals can be nobody else's
        self.selector = selectors.DefaultSelector()
        self.keepers: dict[int, int] = {}  # id of the request that started the command -> pid
        self.spare: list[tuple[int, socket.socket]] = []  # those without a command
        self.held: list[Process] = []
        self.buffer = bytearray()
        self.fds: list[int] = []

    def serve(self) -> None:
        woken, wake = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self.send({"hello": identity()})
        self.selector.register(self.sock, selectors.EVENT_READ, self.receive)
        self.selector.register(woken, selectors.EVENT_READ, lambda: self.wake(woken))
        while True:
            for key, _ in self.selector.select():
                key.data()

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
            del self.buffer[: 4 + length]
            self.handle(message)

    def handle(self, message: dict[str, Any]) -> None:
        number = message["id"]
        try:
            answer = getattr(self, "do_" + message["op"])(message)
        except (OSError, ValueError, Refused) as error:
            answer = {"error": words(error)}
        if answer is not None:
            self.send({"id": number, **answer})

    def wake(self, woken: int) -> None:
        os.read(woken, 4096)
        self.reap()

    def do_start(self, message: dict[str, Any]) -> None:
        fds = [self.fds.pop(0) for _ in range(message["fds"])]
        self.reap()  # a spare one may have been killed
        try:
            keeper, line = self.spare.pop() if self.spare else new_keeper()
            self.keepers[message["id"]] = keeper
            self.selector.register(line, selectors.EVENT_READ, lambda: self.hear(line, message["id"]))
            hand_over(line, message, fds)
        finally:
            for fd in fds:
                os.close(fd)

    def hear(self, line: socket.socket, number: int) -> None:
        """How a command ended; a keeper that says nothing was killed, and what it kept has become ours."""
        self.selector.unregister(line)
        said = b""
        with contextlib.suppress(ConnectionError):
            said = line.recv(4096)
        answer = json.loads(said) if said else {"lost": True}
        if answer.pop("free", False) and len(self.spare) < MOST_SPARE:
            self.spare.append((self.keepers.pop(number), line))
        else:
            line.close()
        if not said:
            self.wait_until_reaped(number)
            self.end(self.orphans)
        self.send({"id": number, **answer})

    def wait_until_reaped(self, number: int) -> None:
        """A dying process closes its files first and hands over its children later: only then are they found."""
        for _ in range(KILL_ROUNDS):
            self.reap()
            if number not in self.keepers:
                return
            time.sleep(0.002)

    def do_kill(self, message: dict[str, Any]) -> dict[str, Any]:
        keeper = self.keepers.get(message["command"])
        if keeper is not None:
            os.kill(keeper, signal.SIGCONT)
            self.end(lambda: descendants(keeper))
        self.end(self.orphans)
        return {"ok": True}

    def do_interrupt(self, message: dict[str, Any]) -> dict[str, Any]:
        keeper = self.keepers.get(message["command"])
        if keeper is not None:
            os.kill(keeper, signal.SIGINT)
        return {"ok": True}

    def do_kill_all(self, _message: dict[str, Any]) -> dict[str, Any]:
        self.kill_all()
        return {"ok": True}

    def do_hold(self, _message: dict[str, Any]) -> dict[str, Any]:
        """Everything stands still until `release`; a keeper without a command does so by itself."""
        for _ in range(KILL_ROUNDS):
            spare = {pid for pid, _ in self.spare}
            self.held = [process for process in descendants(os.getpid()) if process.pid not in spare]
            ours = self.keepers.values()  # closed to this process, too, and hold nothing open to write to
            moving = [each for each in self.held if not (each.is_still or (each.pid in ours and each.is_frozen))]
            if not moving:
                return {"held": len(self.held)}
            send_signal(moving, signal.SIGSTOP)
            time.sleep(0.0005)
        raise Refused("some processes can't be stopped")

    def do_release(self, _message: dict[str, Any]) -> dict[str, Any]:
        send_signal(self.held, signal.SIGCONT)
        self.held = []
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
        if self.is_apart:
            signal_all(signal.SIGKILL)
        self.end(lambda: descendants(os.getpid()))

    def end(self, find: Callable[[], list[Process]]) -> None:
        """Until nothing of it is left. Who forks and leaves without pause is never there when /proc is read: so all
        stand still while it is."""
        for _ in range(KILL_ROUNDS):
            if not self.freeze():
                signal_all(signal.SIGKILL)  # somebody wakes the others: then it costs all of them
            alive = find()
            for process in alive:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process.pid, signal.SIGKILL)
            signal_all(signal.SIGCONT)
            if not alive:
                return
            self.reap()
            time.sleep(0.002)
        raise Refused("some processes can't be ended")

    def freeze(self) -> bool:
        """Whether everything below this process stands still."""
        for _ in range(FREEZE_ROUNDS):
            signal_all(signal.SIGSTOP)
            if all(process.is_frozen for process in descendants(os.getpid())):
                return True
            time.sleep(0.001)
        return False

    def orphans(self) -> list[Process]:
        """What is below this process without a keeper in between."""
        keepers = {*self.keepers.values(), *(pid for pid, _ in self.spare)}
        direct = [process for process in processes() if process.parent == os.getpid() and process.pid not in keepers]
        return [*direct, *(below for process in direct for below in descendants(process.pid))]

    def reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, _ = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                self.keepers = {number: keeper for number, keeper in self.keepers.items() if keeper != pid}
                self.spare = [(keeper, line) for keeper, line in self.spare if keeper != pid]

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


def identity() -> dict[str, Any]:
    with open("/proc/self/status", encoding="ascii") as file:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    privileges = {name: int(fields[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs")}
    return {"uid": os.getuid(), "gid": os.getgid(), **privileges, "walls": standing}


def main() -> None:
    sock = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.umask(0o002)
    adopt_orphans()
    close_to_others()
    Executor(sock, own_namespace=sys.argv[1] == "namespace").serve()
