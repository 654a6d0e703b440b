"""A stand-in for the supervisor: a process that holds a secret in its environment, memory, descriptors and files."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CODE = """
import ctypes, os, signal, socket, sys, threading
secret = os.environ["PLANTED_SECRET"].encode()
held = ctypes.create_string_buffer(secret)
kept = os.open(sys.argv[1], os.O_RDONLY)
name = "\\0" + sys.argv[2]
server = socket.socket(socket.AF_UNIX)
server.bind(name)
server.listen()
def answer():
    while True:
        peer, _ = server.accept()
        try:
            peer.sendall(secret)
        except OSError:
            pass  # whoever came is gone again: the broker, which refuses a peer that is not B's only when it sees it
        peer.close()
threading.Thread(target=answer, daemon=True).start()
signal.signal(signal.SIGUSR1, lambda *_: None)
print(ctypes.addressof(held), kept, flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def supervisor(private: Path, shared: Path) -> Iterator[dict[str, str]]:
    """What attacks may name. `private` is closed to others; `shared` lets everybody read and write."""
    secret, name = secrets.token_hex(16), secrets.token_hex(8)
    file = private / "secret"
    file.write_text(secret, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-c", _CODE, str(file), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PLANTED_SECRET": secret},
        text=True,
        cwd=private,
    )
    with process:
        assert process.stdout
        address, fd = process.stdout.readline().split()
        yield {
            "secret": secret,
            "pid": str(process.pid),
            "address": address,
            "fd": fd,
            "socket": name,
            "private": str(private),
            "shared": str(shared),
            "session": str(os.getsid(0)),
        }
        process.communicate("")
