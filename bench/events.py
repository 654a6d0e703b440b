"""From the append of an event to its frame at a subscriber, through stream, broadcast and WebSocket API.

Latency is taken one event at a time, from the call of `append`, as the sandbox calls it, to the frame in the client's
hands; its baseline is a ping on the same socket. Then a thousand events go to twenty subscribers as fast as they can
be appended: every subscriber has to get each of them once, in order.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import threading
import time
from typing import TYPE_CHECKING, Any

from websockets.sync.client import connect

from bench.stack import new_user, running_run
from sandpiper.models.events import NewEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from websockets.sync.client import ClientConnection

    from bench.report import Report
    from bench.stack import Stack
    from sandpiper.adapters.runs import DynamoRuns

WARM_UP = 10
SAMPLES = 150
GOAL_MS = 100
EVENTS = 1_000
SUBSCRIBERS = 20
FRAME_SECONDS = 120


def run(report: Report, stack: Stack) -> None:
    user, runs = new_user(), stack.runs()
    latency(report, stack, runs, user)
    crowd(report, stack, runs, user)


def latency(report: Report, stack: Stack, runs: DynamoRuns, user: str) -> None:
    run_id = running_run(runs, user)
    with subscribed(stack, user, run_id) as socket:
        samples = [(ping(socket), append(runs, run_id, socket)) for _ in range(WARM_UP + SAMPLES)][WARM_UP:]
    base, ours = (statistics.median(column) * 1000 for column in zip(*samples, strict=True))
    slow = statistics.quantiles([sample[1] for sample in samples], n=20)[-1] * 1000
    report.add(
        "event append → frame at a subscriber, p50",
        measured=f"{ours:.1f} ms (p95 {slow:.1f} ms, {SAMPLES} events)",
        baseline=f"{base:.1f} ms, ping → pong on the same socket",
        ratio=f"{ours / base:.2f}×",
        goal=f"≤ {GOAL_MS} ms",
        met=ours <= GOAL_MS,
    )


def crowd(report: Report, stack: Stack, runs: DynamoRuns, user: str) -> None:
    run_id = running_run(runs, user)
    received: list[list[int]] = [[] for _ in range(SUBSCRIBERS)]
    with contextlib.ExitStack() as sockets:
        opened = [sockets.enter_context(subscribed(stack, user, run_id)) for _ in range(SUBSCRIBERS)]
        readers = [
            threading.Thread(target=collect, args=(socket, numbers))
            for socket, numbers in zip(opened, received, strict=True)
        ]
        begin = time.perf_counter()
        for reader in readers:
            reader.start()
        for n in range(EVENTS):
            runs.append(run_id, [NewEvent(type="agent_message", data={"text": f"event {n}"})])
        appended = time.perf_counter() - begin
        for reader in readers:
            reader.join()
        seconds = time.perf_counter() - begin
    perfect = sum(numbers == list(range(2, EVENTS + 2)) for numbers in received)
    report.add(
        f"{EVENTS:,} events to {SUBSCRIBERS} subscribers",
        measured=f"{perfect} of {SUBSCRIBERS} got each once and in order; the last after {seconds:.1f} s",
        baseline=f"{appended:.1f} s, the appends alone",
        ratio=f"{seconds / appended:.2f}×",
        goal="no gap, no double",
        met=perfect == SUBSCRIBERS,
    )


def collect(socket: ClientConnection, numbers: list[int]) -> None:
    while not numbers or numbers[-1] < EVENTS + 1:
        numbers.append(frame(socket)["event"]["seq"])


def ping(socket: ClientConnection) -> float:
    begin = time.perf_counter()
    socket.send('{"action":"ping"}')
    assert frame(socket)["type"] == "pong"
    return time.perf_counter() - begin


def append(runs: DynamoRuns, run_id: str, socket: ClientConnection) -> float:
    begin = time.perf_counter()
    (event,) = runs.append(run_id, [NewEvent(type="agent_message", data={"text": "bench"})])
    assert frame(socket)["event"]["seq"] == event.seq
    return time.perf_counter() - begin


def frame(socket: ClientConnection) -> dict[str, Any]:
    received: dict[str, Any] = json.loads(socket.recv(timeout=FRAME_SECONDS))
    return received


@contextlib.contextmanager
def subscribed(stack: Stack, user: str, run_id: str) -> Iterator[ClientConnection]:
    """A socket that has seen the run's first event."""
    with stack.api(user) as api:
        ticket = api.ticket()
    with connect(f"{ticket.websocket_url}?ticket={ticket.ticket}", proxy=None, open_timeout=60) as socket:
        socket.send(json.dumps({"action": "subscribe", "run_id": run_id, "after": 1}))
        assert frame(socket)["type"] == "subscribed"
        yield socket
