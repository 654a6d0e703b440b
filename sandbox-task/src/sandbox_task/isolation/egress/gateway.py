"""All that B can reach of what A offers: the proxy and the git relay. One per run; it outlives a wall that is lost."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox_task.isolation.egress import (
    broker,
    connecting,
    guarding,
    handover,
    listeners,
    notifications,
    socket_filter,
)
from sandbox_task.isolation.egress.policy import Policy
from sandbox_task.isolation.egress.proxy import Proxy, Refused, look_up
from sandbox_task.isolation.wall import WallError
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from sandbox_task.isolation.egress.server import Server

PROXY_DOOR, GIT_DOOR = 3128, 9418  # in a namespace of B's own, where nothing else can be
_LOOPBACK = "127.0.0.1"
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_CERTIFICATE_VARIABLES = (
    *("SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"),
    *("CARGO_HTTP_CAINFO",),
)


@dataclass(frozen=True)
class Passage:
    """What a backend needs to know. `before` is a call that B's interpreter makes ahead of the executor, and what it
    returns, if anything, is called when that is ready; `passage` is the first of `modules`, which need each other.
    `take_over` takes from the executor's socket what comes there ahead of its first words. Raises WallError."""

    env: dict[str, str] = field(default_factory=dict)
    before: str = "None"
    modules: tuple[ModuleType, ...] = ()
    take_over: Callable[[socket.socket], None] | None = None


class Gateway:
    """Closed to everything until it is given a policy."""

    def __init__(
        self,
        *,
        on_refusal: Callable[[str, str], None],
        git: Server | None = None,
        resolve: Callable[[str, int], list[str]] = look_up,
    ) -> None:
        self.proxy = Proxy(Policy(), on_refusal=on_refusal, resolve=resolve)
        self._servers = [self.proxy.server, *([git] if git else [])]
        self._held: list[tuple[Server, socket.socket]] = []
        self.git_port: int | None = None

    def open(self, find_policy: Callable[[], Policy]) -> None:
        """Before the first command of the repository or of the model. To find out what may be reached takes a moment,
        because package managers are asked for it: only who wants to go out waits."""
        found: Future[Policy] = Future()
        self.proxy.policy = found
        threading.Thread(target=_settle, args=(found, find_policy), name="egress-policy", daemon=True).start()

    def may_ask_for(self, host: str, port: int) -> bool:
        """Whether a person can open it: it is closed, and the operator would let it be opened."""
        try:
            policy = self.proxy.current_policy(host)
        except Refused:
            return False
        return policy.refusal(host, port) is not None and policy.opened(host, port).refusal(host, port) is None

    def open_host(self, host: str, port: int) -> str | None:
        """As a person wants it. Why it still can't be reached, or None."""
        try:
            self.proxy.policy = policy = self.proxy.current_policy(host).opened(host, port)
        except Refused as refused:
            return refused.reason
        return policy.refusal(host, port)

    def into_namespace(self) -> Passage:
        """For a wall with a network of its own."""
        doors = (PROXY_DOOR, GIT_DOOR)[: len(self._servers)]
        self.git_port = dict(enumerate(doors)).get(1)
        before = f"passage.hand_over({doors!r})"
        return Passage(proxy_environment(PROXY_DOOR), before, (handover,), self._take_over)

    def on_loopback(self) -> Passage:
        """For a wall that shares this machine's network: the broker lets B through to these doors."""
        self._replace([socket.create_server((_LOOPBACK, 0), backlog=128) for _ in self._servers])
        doors = [listener.getsockname()[1] for _, listener in self._held]
        self.git_port = dict(enumerate(doors)).get(1)
        return guard(doors, proxy_environment(doors[0]))

    def close(self) -> None:
        for server in self._servers:
            server.close()
        self._held.clear()

    def _take_over(self, line: socket.socket) -> None:
        line.settimeout(limits.KILL_SECONDS)
        said, fds, _, _ = socket.recv_fds(line, 1, len(self._servers))
        listeners = [socket.socket(fileno=fd) for fd in fds]
        if not said or len(listeners) != len(self._servers):
            raise WallError("The sandbox's executor is gone.")
        self._replace(listeners)

    def _replace(self, listeners: list[socket.socket]) -> None:
        """The doors of a wall that is gone lead nowhere."""
        for server, listener in self._held:
            server.drop(listener)
        self._held = list(zip(self._servers, listeners, strict=True))
        for server, listener in self._held:
            server.serve(listener)


def _settle(future: Future[Policy], find: Callable[[], Policy]) -> None:
    try:
        future.set_result(find())
    except Exception as error:  # noqa: BLE001 - raised again in whoever waits for it
        future.set_exception(error)


def guard(doors: list[int], env: dict[str, str]) -> Passage:
    """Closes the network of this machine to B but for these ports of loopback."""
    names = socket_filter.calls()
    closing = f"{names.seccomp}, {socket_filter.program(names)!r}"
    before = f"passage.stand_guard(frozenset({sorted(doors)!r}), {closing})"
    return Passage(env, before, (guarding, notifications, listeners, connecting, broker))


def proxy_environment(port: int) -> dict[str, str]:
    """What package managers, git, curl and the languages' own libraries look for."""
    url, java = f"http://{_LOOPBACK}:{port}", f"-Dhttps.proxyHost={_LOOPBACK} -Dhttps.proxyPort={port}"
    names = ("http_proxy", "https_proxy", "all_proxy")
    proxies = {spelling: url for name in names for spelling in (name, name.upper())}
    direct = dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1")
    others = {"NODE_USE_ENV_PROXY": "1", "MAVEN_OPTS": java, "GRADLE_OPTS": java}
    certificates = dict.fromkeys(_CERTIFICATE_VARIABLES, str(_CERTIFICATES)) if _CERTIFICATES.exists() else {}
    return {**proxies, **direct, **others, **certificates}
