"""The proxy against a direct connection, and what the network's walls cost a command. Baselines by turns, same run."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import socket
import statistics
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast
from unittest.mock import patch

from sandbox_task.isolation import uid
from sandbox_task.isolation.choose import put_up_wall
from sandbox_task.isolation.egress.gateway import Passage, guard
from sandbox_task.isolation.egress.policy import make_policy
from sandbox_task.isolation.egress.proxy import Proxy
from sandbox_task.isolation.launch import open_rooms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.report import Report
    from sandbox_task.isolation.wall import Wall

ROUNDS = 9
MEGABYTES = 512
COMMANDS = 60
NAME = "origin.example"
WORKER = 10002


def run(report: Report) -> None:
    _throughput(report)
    if os.geteuid() == 0:
        _commands(report)


def _throughput(report: Report) -> None:
    with _process(_serve_bytes) as origin, _process(_serve_proxy, origin) as proxy:
        direct, through = [], []
        for _ in range(ROUNDS):
            direct.append(_download(origin, None))
            through.append(_download(proxy, origin))
    fast, slow = statistics.median(direct), statistics.median(through)
    ratio = statistics.median(after / before for before, after in zip(direct, through, strict=True))
    report.add(
        "download through the egress proxy, loopback",
        measured=f"{slow:.0f} MB/s",
        baseline=f"{fast:.0f} MB/s direct",
        ratio=f"{ratio:.2f}×",
        goal="≥ 0.5×",
        met=ratio >= 0.5,
    )


def _commands(report: Report) -> None:
    """Backend `uid`: with filter and broker, and with neither."""
    with _wall(guard) as guarded, _wall(lambda _doors, env: Passage(env)) as open_one:
        times: dict[str, list[float]] = {"guarded": [], "open": []}
        for _ in range(COMMANDS):
            for name, wall in (("guarded", guarded), ("open", open_one)):
                times[name].append(_command_seconds(wall) * 1000)
    guarded_ms, open_ms = statistics.median(times["guarded"]), statistics.median(times["open"])
    report.add(
        "a command behind the network's filter and broker (uid)",
        measured=f"{guarded_ms:.1f} ms",
        baseline=f"{open_ms:.1f} ms without them",
        ratio=f"{guarded_ms - open_ms:+.1f} ms",
        goal="≤ +1.5 ms",
        met=guarded_ms - open_ms <= 1.5,
    )


def _download(port: int, target: int | None) -> float:
    """MB/s."""
    buffer = bytearray(1 << 20)
    with socket.create_connection(("127.0.0.1", port)) as line:
        if target is not None:
            line.sendall(f"CONNECT {NAME}:{target} HTTP/1.1\r\n\r\n".encode())
            line.recv(1 << 10)
        started = time.perf_counter()
        line.sendall(b"go")
        received = 0
        while count := line.recv_into(buffer):
            received += count
        assert received == MEGABYTES << 20
        return MEGABYTES / (time.perf_counter() - started)


def _serve_bytes(listener: socket.socket) -> None:
    block = bytes(1 << 20)
    while True:
        line, _ = listener.accept()
        with line:
            line.recv(2)
            for _ in range(MEGABYTES):
                line.sendall(block)


def _serve_proxy(listener: socket.socket, origin: int) -> None:
    """With an allowance for loopback that no deployment has."""
    host = f"{NAME}:{origin}"
    policy = make_policy(
        ecosystems=(), registries={}, github_url="", egress=[host], allowed=[host], private=["127.0.0.0/8"]
    )
    proxy = Proxy(policy, on_refusal=lambda *_: None, resolve=lambda *_: ["127.0.0.1"])
    proxy.server.serve(listener)
    while True:
        time.sleep(60)


@contextmanager
def _process(serve: Callable[..., None], *arguments: int) -> Iterator[int]:
    """The port at which a process of its own serves."""
    listener = socket.create_server(("127.0.0.1", 0))
    process = multiprocessing.get_context("fork").Process(target=serve, args=(listener, *arguments), daemon=True)
    process.start()
    port = listener.getsockname()[1]
    listener.close()
    yield cast("int", port)
    process.kill()
    process.join()


@contextmanager
def _wall(before: Callable[[list[int], dict[str, str]], Passage]) -> Iterator[Wall]:
    root = Path(tempfile.mkdtemp(prefix="sandpiper-bench-"))
    root.chmod(0o711)
    with patch.object(uid, "guard", before):
        wall = put_up_wall("uid", open_rooms(root / "sandbox", WORKER), tools=None, worker_uid=WORKER)
    yield wall
    wall.close()
    shutil.rmtree(root)


def _command_seconds(wall: Wall) -> float:
    started = time.perf_counter()
    wall.run("true", timeout=30, on_output=lambda _data: None)
    return time.perf_counter() - started
