"""`unshare --net python -m tests.security.metadata`: who gets a task's credentials from the address where ECS has them.

Prints for each wall, and for none, whether they were given out to a command that knows the whole address.
"""

from __future__ import annotations

import fcntl
import secrets
import shutil
import socket
import struct
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox_task.isolation.choose import put_up_wall
from sandbox_task.isolation.launch import Rooms, open_rooms
from tests.security.bare import NoWall

if TYPE_CHECKING:
    from tests.security.attacks import Place

ADDRESS = "169.254.170.2"
WORKER = 10002
_SET_ADDRESS, _SET_FLAGS, _UP = 0x8916, 0x8914, 0x1 | 0x40
CREDENTIALS, PATH = secrets.token_hex(16), f"/v2/credentials/{secrets.token_hex(16)}"


class Metadata(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == PATH else 404)
        self.end_headers()
        if self.path == PATH:
            self.wfile.write(CREDENTIALS.encode())

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


def give_addresses() -> None:
    """To the loopback interface of a network that is new: its own address and ECS's."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        fcntl.ioctl(line, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))
        address = struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton(ADDRESS))
        fcntl.ioctl(line, _SET_ADDRESS, struct.pack("16s16s", b"lo:1", address))


def try_from(name: str, place: Place) -> None:
    output = bytearray()
    ask = f"curl --noproxy '*' -sS --max-time 3 http://{ADDRESS}{PATH}; curl -sS --max-time 3 http://{ADDRESS}{PATH}"
    place.run(ask, timeout=20, on_output=output.extend)
    sys.stdout.write(f"{name} {'reached' if CREDENTIALS.encode() in output else 'refused'}\n")


def main(rooms: Rooms) -> None:
    give_addresses()
    server = HTTPServer((ADDRESS, 80), Metadata)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try_from("none", NoWall(rooms.workspace, uid=WORKER))
    for backend in ("uid", "bwrap"):
        wall = put_up_wall(backend, rooms, tools=None, worker_uid=WORKER)  # type: ignore[arg-type]
        try_from(backend, wall)
        wall.close()


if __name__ == "__main__":
    place = Path(tempfile.mkdtemp(prefix="sandpiper-attack-"))
    place.chmod(0o711)
    try:
        main(open_rooms(place / "rooms", WORKER))
    finally:
        shutil.rmtree(place)
