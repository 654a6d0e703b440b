"""Backend `bwrap`: doors of A inside B's network namespace. B makes them before anything foreign runs; A keeps them.

A socket belongs to the namespace in which it was made, whoever holds it; so A answers there itself, and B has nothing
that it could break, replace or look into. Given to B's interpreter as text (see `executor`).
"""

from __future__ import annotations

import os
import socket


def hand_over(doors: tuple[int, ...]) -> None:
    """Over the socket to A that is descriptor 0, before the executor's first words."""
    listeners = [socket.create_server(("127.0.0.1", door), backlog=128) for door in doors]
    line = socket.socket(fileno=os.dup(0))
    socket.send_fds(line, [b"d"], [listener.fileno() for listener in listeners])
    for sock in (line, *listeners):
        sock.close()
