"""The App itself, its installations and their tokens, and what was delivered to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sandpiper_local.fake_github.auth import narrowed
from sandpiper_local.fake_github.calls import Answer, Call, Page, Route, created
from sandpiper_local.fake_github.errors import Refusal, not_found
from sandpiper_local.fake_github.views.common import (
    app_view,
    delivery_view,
    installation_view,
    repository_view,
    token_view,
    whole_user_view,
)

if TYPE_CHECKING:
    from sandpiper_local.fake_github.state import App, Delivery, Installation, Repository


def get_app(call: Call) -> Any:
    return app_view(call.hub, _app(call))


def list_installations(call: Call) -> Page:
    return Page([installation_view(call.hub, one) for one in call.hub.installations.values()])


def get_installation(call: Call) -> Any:
    return installation_view(call.hub, _installation(call))


def repository_installation(call: Call) -> Any:
    repository = call.hub.repository(f"{call.params['owner']}/{call.params['repo']}")
    installation = call.hub.installation_for(repository)
    if installation is None:
        raise not_found()
    return installation_view(call.hub, installation)


def create_token(call: Call) -> Answer:
    installation = _installation(call)
    if installation.suspended_at:
        raise Refusal(403, "This installation has been suspended")
    token = call.hub.issue_token(
        _app(call).bot,
        prefix="ghs",
        installation=installation,
        permissions=narrowed(installation.permissions, call.body.get("permissions")),
        repositories=_chosen(call, installation),
    )
    return created(token_view(call.hub, token))


def _chosen(call: Call, installation: Installation) -> list[Repository] | None:
    names, ids = call.body.get("repositories"), call.body.get("repository_ids")
    if names is None and ids is None:
        return None if installation.all_repositories else list(installation.repositories)
    reachable = [one for one in call.hub.repositories.values() if _reaches(installation, one)]
    found = [one for one in reachable if one.name in (names or ()) or one.id in (ids or ())]
    if len(found) < len(set(names or ())) + len(set(ids or ())):
        raise Refusal(
            422, "There is at least one repository that does not exist or is not accessible to the parent installation."
        )
    return found


def _reaches(installation: Installation, repository: Repository) -> bool:
    return repository in installation.repositories or (
        installation.all_repositories and repository.owner is installation.account
    )


def installation_repositories(call: Call) -> Page:
    token = call.actor.token
    if token is None or token.installation is None:
        raise Refusal(403, "Resource not accessible by personal access token")
    reachable = [one for one in call.hub.repositories.values() if _reaches(token.installation, one)]
    chosen = [one for one in reachable if token.repositories is None or one in token.repositories]
    return Page([repository_view(call.hub, one) for one in chosen], key="repositories")


def list_deliveries(call: Call) -> Answer:
    """Newest first. GitHub pages them by a cursor; here all of them come at once, up to `per_page`."""
    newest = list(reversed(call.hub.webhooks.deliveries))
    if call.query.get("status") in {"success", "failure"}:
        newest = [one for one in newest if (one.status == "OK") == (call.query["status"] == "success")]
    start = int(call.query.get("cursor", "0"))
    size = min(int(call.query.get("per_page", "30")), 100)
    headers = {}
    if len(newest) > start + size:
        url = f"{call.hub.api_url}/app/hook/deliveries?per_page={size}&cursor={start + size}"
        headers["Link"] = f'<{url}>; rel="next"'
    return Answer([delivery_view(one) for one in newest[start : start + size]], headers=headers)


def get_delivery(call: Call) -> Any:
    delivery = _delivery(call)
    return delivery_view(delivery) | {
        "url": _app(call).webhook_url,
        "request": {"headers": delivery.headers, "payload": json.loads(delivery.body)},
        "response": {"headers": delivery.response_headers, "payload": delivery.response_body},
    }


def redeliver(call: Call) -> Answer:
    call.hub.webhooks.redeliver(call.hub, _delivery(call))
    return Answer({}, 202)


def get_user(call: Call) -> Any:
    return whole_user_view(call.hub, call.actor.person)


def get_user_by_name(call: Call) -> Any:
    user = call.hub.users.get(call.params["username"])
    if user is None:
        raise not_found()
    return whole_user_view(call.hub, user)


def rate_limit(call: Call) -> Any:
    token = call.actor.token
    limit, used = (token.limit, token.used) if token else (60, 0)
    reset = int(token.window_ends.timestamp()) if token and token.window_ends else 0
    rate = {"limit": limit, "used": used, "remaining": limit - used, "reset": reset}
    return {"resources": {"core": rate, "search": rate, "graphql": rate}, "rate": rate}


def _app(call: Call) -> App:
    if call.hub.app is None:
        raise not_found()
    return call.hub.app


def _installation(call: Call) -> Installation:
    if found := call.hub.installations.get(call.number("installation_id")):
        return found
    raise not_found()


def _delivery(call: Call) -> Delivery:
    wanted = call.number("delivery_id")
    if found := next((one for one in call.hub.webhooks.deliveries if one.id == wanted), None):
        return found
    raise not_found()


_DELIVERY = "/app/hook/deliveries/{delivery_id}"
_INSTALLATION = "/app/installations/{installation_id}"
ROUTES = [
    Route("GET", "/app", get_app, app_only=True),
    Route("GET", "/app/installations", list_installations, app_only=True),
    Route("GET", _INSTALLATION, get_installation, app_only=True),
    Route("POST", f"{_INSTALLATION}/access_tokens", create_token, app_only=True),
    Route("GET", "/repos/{owner}/{repo}/installation", repository_installation, app_only=True),
    Route("GET", "/app/hook/deliveries", list_deliveries, app_only=True),
    Route("GET", _DELIVERY, get_delivery, app_only=True),
    Route("POST", f"{_DELIVERY}/attempts", redeliver, app_only=True),
    Route("GET", "/installation/repositories", installation_repositories),
    Route("GET", "/user", get_user),
    Route("GET", "/users/{username}", get_user_by_name),
    Route("GET", "/rate_limit", rate_limit),
]
