"""Backend `bwrap`: doors of A inside B's network namespace. B makes them before anything foreign runs; A keeps them.

A socket belongs to the namespace in which it was made, whoever holds it; so A answers there itself, and B has nothing
that it could break, replace or look into. Given to B's interpreter as text (see `executor`).
"""

from __future__ import annotations

from sandbox_task.isolation.slim import Socket, os, send_fds, socket

_WAITING = 128


def hand_over(doors: tuple[int, ...]) -> None:
    """Over the socket to A that is descriptor 0, before the executor's first words."""
    listeners = [listen(door) for door in doors]
    with Socket(fileno=os.dup(0)) as line:
        send_fds(line, b"d", [listener.fileno() for listener in listeners])
    for listener in listeners:
        listener.close()


def listen(door: int) -> Socket:
    listener = Socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", door))
    listener.listen(_WAITING)
    return listener
