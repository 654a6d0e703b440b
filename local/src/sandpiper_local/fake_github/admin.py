"""`/_fake/…`: what no user of GitHub can do. Repositories out of nothing, installations, time, trouble, a red CI."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from aiohttp import web

from sandpiper_local.fake_github.check_suites import run_ci
from sandpiper_local.fake_github.errors import Refusal
from sandpiper_local.fake_github.failures import Failure
from sandpiper_local.fake_github.git_store import ZERO, Person
from sandpiper_local.fake_github.pushes import after_push
from sandpiper_local.fake_github.state import App, Installation
from sandpiper_local.fake_github.views.common import delivery_view, short_repository_view, time_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sandpiper_local.fake_github.hub import Hub
    from sandpiper_local.fake_github.state import Repository

APP_PERMISSIONS = {
    "metadata": "read", "contents": "write", "issues": "write", "pull_requests": "write", "checks": "write",
    "statuses": "write", "actions": "read",
}  # fmt: skip


class Admin:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def routes(self) -> list[web.RouteDef]:
        repo = "/_fake/repos/{owner}/{repo}"
        return [
            web.post("/_fake/repos", self._json(self._create_repository)),
            web.patch(repo, self._json(self._change_repository)),
            web.post(f"{repo}/forks", self._json(self._fork)),
            web.put(f"{repo}/permissions", self._json(self._permit)),
            web.post(f"{repo}/commits", self._json(self._commit)),
            web.post(f"{repo}/ci", self._json(self._ci)),
            web.post("/_fake/tokens", self._json(self._token)),
            web.put("/_fake/app", self._json(self._app)),
            web.post("/_fake/installations", self._json(self._install)),
            web.patch("/_fake/installations/{id}", self._json(self._change_installation)),
            web.delete("/_fake/installations/{id}", self._json(self._uninstall)),
            web.post("/_fake/clock", self._json(self._clock)),
            web.post("/_fake/rate_limit", self._json(self._rate_limit)),
            web.post("/_fake/failures", self._json(self._fail)),
            web.delete("/_fake/failures", self._json(self._fail_no_more)),
            web.get("/_fake/calls", self._json(self._calls)),
            web.delete("/_fake/calls", self._json(self._forget_calls)),
            web.get("/_fake/deliveries", self._json(self._deliveries)),
            web.post("/_fake/settle", self._settle),
            web.post("/_fake/ping", self._json(self._ping)),
        ]

    def _json(self, work: Callable[[web.Request, Any], Any]) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def serve(request: web.Request) -> web.Response:
            body = await request.json() if request.can_read_body else {}
            try:
                return web.json_response(work(request, body))
            except Refusal as refusal:
                return web.json_response(refusal.body, status=refusal.status)

        return serve

    def _repository(self, request: web.Request) -> Repository:
        return self._hub.repository(f"{request.match_info['owner']}/{request.match_info['repo']}")

    def _create_repository(self, _: web.Request, body: Any) -> Any:
        repository = self._hub.add_repository(body["full_name"], private=body.get("private", True))
        repository.permissions |= body.get("permissions", {})
        for login in repository.permissions:
            self._hub.user(login)
        sha = self._write(
            repository,
            repository.default_branch,
            body.get("files") or {"README.md": "# New\n"},
            "The beginning",
            body.get("by"),
        )
        return {"id": repository.id, "sha": sha, "git_dir": str(repository.git.path)}

    def _change_repository(self, request: web.Request, body: Any) -> Any:
        repository = self._repository(request)
        repository.archived = body.get("archived", repository.archived)
        repository.private = body.get("private", repository.private)
        if "protected" in body:
            repository.protected = set(body["protected"])
        if "name" in body:
            self._hub.rename(repository, body["name"])
        return {"full_name": repository.full_name}

    def _fork(self, request: web.Request, body: Any) -> Any:
        return {"full_name": self._hub.fork(self._repository(request), body["owner"]).full_name}

    def _permit(self, request: web.Request, body: Any) -> Any:
        for login, level in body.items():
            self._hub.user(login)
            self._repository(request).permissions[login] = level
        return {}

    def _commit(self, request: web.Request, body: Any) -> Any:
        """Somebody pushes; `force` begins anew at `base` (the default branch) instead of at the branch itself."""
        repository = self._repository(request)
        before = repository.git.refs()
        if body.get("force") or f"refs/heads/{body['branch']}" not in before:
            base = repository.git.resolve(body.get("base", repository.default_branch))
            repository.git.update_ref(f"refs/heads/{body['branch']}", base or ZERO)
        sha = self._write(repository, body["branch"], body["files"], body.get("message", "A change"), body.get("by"))
        after_push(self._hub, repository, before, self._hub.user(body.get("by") or repository.owner.login))
        return {"sha": sha}

    def _write(
        self, repository: Repository, branch: str, files: dict[str, str | None], message: str, by: str | None
    ) -> str:
        git, login = repository.git, by or repository.owner.login
        parent = git.resolve(f"refs/heads/{branch}")
        entries = [
            ("100644", ZERO if content is None else git.write_blob(content.encode()), path)
            for path, content in files.items()
        ]  # fmt: skip
        person = Person(login, self._hub.email_of(self._hub.user(login)), time_of(self._hub.clock.now()))
        tree = git.write_tree(entries, parent)
        sha = git.write_commit(tree, [parent] if parent else [], message, person, person)
        git.update_ref(f"refs/heads/{branch}", sha)
        return sha

    def _ci(self, request: web.Request, body: Any) -> Any:
        repository = self._repository(request)
        sha = repository.git.resolve(body["sha"])
        if sha is None:
            raise Refusal(422, f"No commit found for SHA: {body['sha']}")
        conclusion, log = body.get("conclusion", "success"), body.get("log", "")
        jobs = body.get("jobs") or [{"name": "test", "conclusion": conclusion, "log": log}]
        run = run_ci(self._hub, repository, sha, jobs, repository.owner)
        return {"run_id": run.id, "check_suite_id": run.suite.id, "jobs": [job.id for job in run.jobs]}

    def _token(self, _: web.Request, body: Any) -> Any:
        """Of a person; with `permissions` or `repositories` a fine-grained one."""
        names = body.get("repositories")
        token = self._hub.issue_token(
            self._hub.user(body["login"]),
            prefix="github_pat",
            permissions=body.get("permissions"),
            repositories=None if names is None else [self._hub.repository(name) for name in names],
        )
        return {"token": token.value}

    def _app(self, _: web.Request, body: Any) -> Any:
        known = self._hub.app
        slug = body.get("slug", known.slug if known else "sandpiper")
        self._hub.app = App(
            id=body.get("id", known.id if known else 1), slug=slug, name=slug, owner=self._hub.user("app-owner"),
            bot=self._hub.user(f"{slug}[bot]", "Bot"), created_at=self._hub.clock.now(),
            public_key=body.get("public_key", known.public_key if known else ""),
            permissions=body.get("permissions", APP_PERMISSIONS),
            webhook_url=body.get("webhook_url", known.webhook_url if known else ""),
            webhook_secret=body.get("webhook_secret", known.webhook_secret if known else ""),
        )  # fmt: skip
        return {"id": self._hub.app.id}

    def _install(self, _: web.Request, body: Any) -> Any:
        hub, names = self._hub, body.get("repositories")
        installation = Installation(
            hub.new_id(), hub.user(body["account"], "Organization"), body.get("permissions", APP_PERMISSIONS),
            [hub.repository(name) for name in names or []], hub.clock.now(), all_repositories=names is None,
        )  # fmt: skip
        hub.installations[installation.id] = installation
        hub.webhooks.emit_installation(hub, "installation", "created", installation)
        return {"id": installation.id}

    def _installation(self, request: web.Request) -> Installation:
        return self._hub.installations[int(request.match_info["id"])]

    def _change_installation(self, request: web.Request, body: Any) -> Any:
        hub, installation = self._hub, self._installation(request)
        if "suspended" in body:
            installation.suspended_at = hub.clock.now() if body["suspended"] else None
            action = "suspend" if body["suspended"] else "unsuspend"
            hub.webhooks.emit_installation(hub, "installation", action, installation)
        if "repositories" in body:
            self._choose(installation, [hub.repository(name) for name in body["repositories"]])
        if "permissions" in body:
            installation.permissions = body["permissions"]
        return {}

    def _choose(self, installation: Installation, chosen: list[Repository]) -> None:
        added = [one for one in chosen if one not in installation.repositories]
        removed = [one for one in installation.repositories if one not in chosen]
        installation.repositories = chosen
        if added:
            self._tell_choice("added", installation, added, [])
        if removed:
            self._tell_choice("removed", installation, [], removed)

    def _tell_choice(
        self, action: str, installation: Installation, added: list[Repository], removed: list[Repository]
    ) -> None:  # fmt: skip
        self._hub.webhooks.emit_installation(
            self._hub, "installation_repositories", action, installation, requester=None,
            repository_selection="selected", repositories_added=[short_repository_view(one) for one in added],
            repositories_removed=[short_repository_view(one) for one in removed],
        )  # fmt: skip

    def _uninstall(self, request: web.Request, _: Any) -> Any:
        installation = self._installation(request)
        del self._hub.installations[installation.id]
        self._hub.webhooks.emit_installation(self._hub, "installation", "deleted", installation)
        return {}

    def _clock(self, _: web.Request, body: Any) -> Any:
        self._hub.clock.advance(body.get("advance", 0))
        self._hub.token_seconds = body.get("token_seconds", self._hub.token_seconds)
        return {"now": time_of(self._hub.clock.now())}

    def _rate_limit(self, _: web.Request, body: Any) -> Any:
        """How many requests every token of today has left, until `reset_in` seconds from now."""
        for token in self._hub.tokens.values():
            token.used = token.limit - body["remaining"]
            token.window_ends = self._hub.clock.now() + timedelta(seconds=body.get("reset_in", 3600))
        return {}

    def _fail(self, _: web.Request, body: Any) -> Any:
        self._hub.failures.waiting.append(Failure(**body))
        return {}

    def _fail_no_more(self, _: web.Request, __: Any) -> Any:
        self._hub.failures.waiting.clear()
        return {}

    def _calls(self, _: web.Request, __: Any) -> Any:
        return [asdict(call) for call in self._hub.failures.calls]

    def _forget_calls(self, _: web.Request, __: Any) -> Any:
        self._hub.failures.calls.clear()
        return {}

    def _deliveries(self, _: web.Request, __: Any) -> Any:
        return [
            delivery_view(one) | {"body": one.body.decode(), "headers": one.headers, "response": one.response_body}
            for one in self._hub.webhooks.deliveries
        ]

    def _ping(self, _: web.Request, __: Any) -> Any:
        if self._hub.app:
            self._hub.webhooks.ping(self._hub, self._hub.app)
        return {}

    async def _settle(self, _: web.Request) -> web.Response:
        await self._hub.webhooks.settle()
        return web.json_response({})
