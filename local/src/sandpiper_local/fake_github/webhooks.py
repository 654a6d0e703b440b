"""What the App is told, sent as GitHub sends it: signed, once, and never again by itself."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aiohttp import ClientError, ClientSession, ClientTimeout

from sandpiper_local.fake_github.state import Delivery
from sandpiper_local.fake_github.views.common import (
    installation_view,
    node_id,
    repository_view,
    short_repository_view,
    user_view,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandpiper_local.fake_github.hub import Hub
    from sandpiper_local.fake_github.state import App, Installation, Repository, User

_SECONDS = 10  # GitHub waits no longer for an answer


class Webhooks:
    """`observe(event, payload)` sees everything that is sent."""

    def __init__(self, observe: Callable[[str, Any], None] | None = None) -> None:
        self.deliveries: list[Delivery] = []
        self._pending: set[asyncio.Task[None]] = set()
        self._observe = observe

    def emit(
        self, hub: Hub, event: str, action: str | None, repository: Repository, sender: User, **payload: Any
    ) -> None:  # fmt: skip
        """To an App that is installed on the repository; nobody else hears of it."""
        installation = hub.installation_for(repository)
        if hub.app is None or installation is None or installation.suspended_at:
            return
        whole = {
            **({"action": action} if action else {}), **payload, "repository": repository_view(hub, repository),
            "sender": user_view(hub, sender),
            "installation": {"id": installation.id, "node_id": node_id("MDI", installation.id)},
        }  # fmt: skip
        self._send_new(hub, hub.app, event, whole, installation=installation.id, repository=repository.id)

    def emit_installation(self, hub: Hub, event: str, action: str, installation: Installation, **payload: Any) -> None:
        if hub.app is None:
            return
        whole = {
            "action": action, "installation": installation_view(hub, installation),
            "repositories": [short_repository_view(one) for one in installation.repositories], **payload,
            "sender": user_view(hub, installation.account),
        }  # fmt: skip
        self._send_new(hub, hub.app, event, whole, installation=installation.id)

    def ping(self, hub: Hub, app: App) -> None:
        since, hook = "2026-01-01T00:00:00Z", hub.new_id()
        config = {"content_type": "json", "insecure_ssl": "0", "url": app.webhook_url, "secret": "********"}
        payload = {"zen": "Keep it logically awesome.", "hook_id": hook, "hook": {
            "type": "App", "id": hook, "name": "web", "active": True, "events": [], "config": config, "app_id": app.id,
            "created_at": since, "updated_at": since, "url": f"{hub.api_url}/app/hook",
            "ping_url": f"{hub.api_url}/app/hook/pings", "deliveries_url": f"{hub.api_url}/app/hook/deliveries",
        }}  # fmt: skip
        self._send_new(hub, app, "ping", payload)

    def redeliver(self, hub: Hub, delivery: Delivery) -> None:
        """The same body and the same guid, under a number of its own."""
        if hub.app is not None:
            again = replace(delivery, id=hub.new_id(), redelivery=True, delivered_at=hub.clock.now())
            self._start(again, hub.app)

    async def settle(self) -> None:
        """Until everything on its way has arrived, and what that has set off."""
        while pending := [task for task in self._pending if not task.done()]:
            await asyncio.wait(pending)

    async def close(self, _: object = None) -> None:
        """What is still on its way never arrives."""
        for task in (pending := list(self._pending)):
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    def _send_new(
        self, hub: Hub, app: App, event: str, payload: dict[str, Any], *,
        installation: int | None = None, repository: int | None = None,
    ) -> None:  # fmt: skip
        if self._observe:
            self._observe(event, payload)
        body = json.dumps(payload).encode()
        guid = str(uuid.uuid4())
        delivery = Delivery(
            id=hub.new_id(), guid=guid, event=event, action=payload.get("action"), installation_id=installation,
            repository_id=repository, body=body, headers=_headers(app, event, guid, body), delivered_at=hub.clock.now(),
        )  # fmt: skip
        self._start(delivery, app)

    def _start(self, delivery: Delivery, app: App) -> None:
        self.deliveries.append(delivery)
        if not app.webhook_url:
            delivery.status = "no URL"
            return
        task = asyncio.get_running_loop().create_task(_deliver(delivery, app.webhook_url))
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)


def _headers(app: App, event: str, guid: str, body: bytes) -> dict[str, str]:
    signature = hmac.new(app.webhook_secret.encode(), body, hashlib.sha256).hexdigest()
    return {
        "Content-Type": "application/json", "User-Agent": "GitHub-Hookshot/fake", "Accept": "*/*",
        "X-GitHub-Event": event, "X-GitHub-Delivery": guid, "X-GitHub-Hook-ID": "1",
        "X-GitHub-Hook-Installation-Target-ID": str(app.id), "X-GitHub-Hook-Installation-Target-Type": "integration",
        "X-Hub-Signature-256": f"sha256={signature}",
    }  # fmt: skip


async def _deliver(delivery: Delivery, url: str) -> None:
    began = time.monotonic()
    try:
        async with (
            ClientSession(timeout=ClientTimeout(total=_SECONDS)) as session,
            session.post(url, data=delivery.body, headers=delivery.headers) as answer,
        ):
            delivery.response_body = await answer.text(errors="replace")
            delivery.response_headers = dict(answer.headers)
            delivery.status_code = answer.status
            delivery.status = "OK" if answer.ok else f"Invalid HTTP Response: {answer.status}"
    except TimeoutError:
        delivery.status = "timed out"
    except ClientError as error:
        delivery.status = f"failed to connect to host: {error}"
    delivery.duration = round(time.monotonic() - began, 2)
