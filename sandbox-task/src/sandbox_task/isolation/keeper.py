"""Between the executor and a command: who starts it, tells how it ended, and holds together all that it starts.

Given to the interpreter behind the wall as text, as the executor is (see there).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
from typing import Any, NoReturn

from sandbox_task.isolation.processes import adopt_orphans


def new_keeper() -> tuple[int, socket.socket]:
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        keep(theirs)
    theirs.close()
    return pid, ours


def hand_over(line: socket.socket, message: dict[str, Any], fds: list[int]) -> None:
    body = json.dumps(message).encode()
    job = struct.pack(">I", len(body)) + body
    line.sendall(job[socket.send_fds(line, [job], fds) :])


def keep(line: socket.socket) -> NoReturn:
    """The life of a keeper: one command after the other, as long as none leaves something behind.

    Whatever loses its parent there becomes the keeper's child, so that the tree below it is all that the command
    started: daemons that forked twice and sessions of their own included.
    """
    try:
        adopt_orphans()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, nothing)
        # The socket to A above all: while a copy of it is open, A does not notice that the executor is gone.
        os.closerange(3, line.fileno())
        os.closerange(line.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
        while keep_one(line):
            pass
        while True:
            os.wait()
    finally:
        os._exit(0)


def keep_one(line: socket.socket) -> bool:
    """Whether this one is free for the next."""
    message, fds = receive(line)
    try:
        pid = start(message, fds)
    except (OSError, ValueError) as error:
        line.sendall(json.dumps({"error": words(error), "free": True}).encode())
        return True
    finally:
        for fd in fds:
            os.close(fd)
    signal.signal(signal.SIGINT, lambda *_: os.killpg(pid, signal.SIGINT))
    ended, status = 0, 0
    while ended != pid:
        ended, status = os.wait()
    signal.signal(signal.SIGINT, nothing)
    free = not has_children()
    line.sendall(json.dumps({"exit": os.waitstatus_to_exitcode(status), "free": free}).encode())
    return free


def receive(line: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """A command with its descriptors."""
    data, fds, _, _ = socket.recv_fds(line, 1 << 16, 4)
    if not data:
        os._exit(0)
    (length,) = struct.unpack(">I", data[:4])
    body = bytearray(data[4:])
    while len(body) < length:
        body += line.recv(1 << 16)
    return json.loads(body), fds


def start(message: dict[str, Any], fds: list[int]) -> int:
    child = subprocess.Popen(
        message["argv"],
        cwd=message["cwd"],
        env=message["env"],
        stdin=fds[1] if len(fds) > 1 else subprocess.DEVNULL,
        stdout=fds[0],
        stderr=fds[0],
        start_new_session=True,
    )
    child.returncode = 0  # waited for by `keep_one`, never by Popen
    return child.pid


def has_children() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def nothing(*_: object) -> None:
    """A handler, because what is ignored would be ignored by the commands, too."""


def words(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)
    return str(error)
