"""What runs as B inside the wall: it does what A asks over the socket that it inherits as descriptor 0.

It is given to the interpreter as text (`python -I -S -c`), with its siblings beside it, so it uses the standard
library only, and the oldest Python that a machine may offer to B (3.9). A trusts nothing that it says.

Each message is a 4-byte length and an object with `id`: by `marshal` what A says, which is trusted here, and as JSON
what is said to A. Descriptors travel with the request that uses them.
"""

# Importing pathlib would be half of the time that the wall takes to go up.
# ruff: noqa: PTH123

from __future__ import annotations

import marshal
import select
import struct
import sys
import time

from sandbox_task.isolation.confinement.inside import standing
from sandbox_task.isolation.keeper import hand_over, new_keeper, words
from sandbox_task.isolation.kernel import adopt_orphans, close_to_others
from sandbox_task.isolation.landlock import knows_scopes
from sandbox_task.isolation.processes import Process, below, descendants, send_signal, signal_all, snapshot
from sandbox_task.isolation.slim import Socket, as_json, leave, open_null, os, recv_fds, signal, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

KILL_ROUNDS = 500
FREEZE_ROUNDS = 100
MOST_SPARE = 4


class Executor:
    """Each command has a keeper (see `keep`), so that it can be ended with all that it started, and nothing else."""

    def __init__(self, sock: Socket, *, own_namespace: bool) -> None:
        self.sock = sock
        self.is_apart = own_namespace or knows_scopes()  # what it signals can be nobody else's
        self.poll = select.poll()
        self.callbacks: dict[int, Callable[[], None]] = {}
        self.keepers: dict[int, int] = {}  # id of the request that started the command -> pid
        self.spare: list[tuple[int, Socket]] = []  # those without a command
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
        self.listen(self.sock.fileno(), self.receive)
        self.listen(woken, lambda: self.wake(woken))
        while True:
            for fd, _ in self.poll.poll():
                self.callbacks[fd]()

    def listen(self, fd: int, callback: Callable[[], None]) -> None:
        self.poll.register(fd, select.POLLIN)
        self.callbacks[fd] = callback

    def receive(self) -> None:
        data, fds = recv_fds(self.sock, 1 << 16, 4)
        if not data:
            if not self.is_apart:
                self.kill_all()
            leave()  # and with this one, the wall around it ends what is left
        self.buffer += data
        self.fds += fds
        while len(self.buffer) >= 4:
            (length,) = struct.unpack(">I", self.buffer[:4])
            if len(self.buffer) < 4 + length:
                return
            message = marshal.loads(self.buffer[4 : 4 + length])  # noqa: S302 - A's
            del self.buffer[: 4 + length]
            self.handle(message)

    def handle(self, message: dict[str, Any]) -> None:
        number = message["id"]
        try:
            answer = getattr(self, "do_" + message["op"])(message)
        except (OSError, ValueError) as error:
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
            self.listen(line.fileno(), lambda: self.hear(line, message["id"]))
            hand_over(line, message, fds)
        finally:
            for fd in fds:
                os.close(fd)

    def hear(self, line: Socket, number: int) -> None:
        """How a command ended; a keeper that says nothing was killed, and what it kept has become ours."""
        self.poll.unregister(line)
        said = b""
        with suppress(ConnectionError):
            said = line.recv(4096)
        answer = marshal.loads(said) if said else {"lost": True}  # noqa: S302 - of our own making
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
        raise ValueError("some processes can't be stopped")

    def do_release(self, _message: dict[str, Any]) -> dict[str, Any]:
        send_signal(self.held, signal.SIGCONT)
        self.held = []
        return {"ok": True}

    def do_read(self, message: dict[str, Any]) -> dict[str, Any]:
        from sandbox_task.isolation.worker_files import read  # noqa: PLC0415 - the wall is up sooner without

        return read(message["root"], message["path"], message["offset"], message["limit"])

    def do_write(self, message: dict[str, Any]) -> dict[str, Any]:
        from sandbox_task.isolation.worker_files import write  # noqa: PLC0415 - likewise

        write(message["root"], message["path"], message["data"])
        return {"ok": True}

    def kill_all(self) -> None:
        if not self.is_apart:
            return self.end(lambda: descendants(os.getpid()))
        for _ in range(KILL_ROUNDS):
            signal_all(signal.SIGKILL)
            self.reap()
            if not descendants(os.getpid()):
                return None
            time.sleep(0.002)
        raise ValueError("some processes can't be ended")

    def end(self, find: Callable[[], list[Process]]) -> None:
        """Until nothing of it is left. Who forks and leaves without pause is never there when /proc is read: so all
        stand still while it is."""
        for _ in range(KILL_ROUNDS):
            if not self.freeze():
                signal_all(signal.SIGKILL)  # somebody wakes the others: then it costs all of them
            alive = find()
            for process in alive:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process.pid, signal.SIGKILL)
            signal_all(signal.SIGCONT)
            if not alive:
                return
            self.reap()
            time.sleep(0.002)
        raise ValueError("some processes can't be ended")

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
        everybody = [process for process in snapshot() if process.pid not in keepers]
        return [process for process in below(os.getpid(), everybody) if not process.is_over]

    def reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, _ = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                self.keepers = {number: keeper for number, keeper in self.keepers.items() if keeper != pid}
                self.spare = [(keeper, line) for keeper, line in self.spare if keeper != pid]

    def send(self, message: dict[str, Any]) -> None:
        body = as_json(message).encode(errors="replace")  # names of files can be no text
        self.sock.sendall(struct.pack(">I", len(body)) + body)


def identity() -> dict[str, Any]:
    with open("/proc/self/status", encoding="ascii") as file:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    privileges = {name: int(fields[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs")}
    return {"uid": os.getuid(), "gid": os.getgid(), **privileges, "walls": standing}


def main() -> None:
    sock = Socket(fileno=os.dup(0))
    os.dup2(open_null(), 0)
    os.umask(0o002)
    adopt_orphans()
    close_to_others()
    Executor(sock, own_namespace=sys.argv[1] == "namespace").serve()
