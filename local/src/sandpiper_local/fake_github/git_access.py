"""Clone from and push to the fake: git's smart HTTP with the same tokens as the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from sandpiper_local.fake_github.auth import Actor, actor_of, check_access
from sandpiper_local.fake_github.calls import credential_of
from sandpiper_local.fake_github.errors import Refusal
from sandpiper_local.fake_github.pushes import after_push
from sandpiper_local.front_door.git_http import git_backend
from sandpiper_local.front_door.shares import git_environment

if TYPE_CHECKING:
    from pathlib import Path

    from sandpiper_local.fake_github.hub import Hub
    from sandpiper_local.fake_github.state import Repository

_HOOK = """#!/bin/sh
while read -r old new ref; do
  case " $PROTECTED " in
    *" $ref "*) echo "error: GH006: Protected branch update failed for $ref." >&2; exit 1 ;;
  esac
done
"""


class GitAccess:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def routes(self) -> list[web.RouteDef]:
        path = "/{owner}/{repo}/{service:info/refs|git-upload-pack|git-receive-pack}"
        return [web.get(path, self.serve), web.post(path, self.serve)]

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if (failure := self._hub.failures.take(request.method, request.path)) and failure.status:
            return web.Response(status=failure.status, text=f"remote: {failure.message}\n", headers=failure.headers)
        pushing = "git-receive-pack" in (request.match_info["service"], request.query.get("service"))
        name = f"{request.match_info['owner']}/{request.match_info['repo'].removesuffix('.git')}"
        if moved := self._hub.renamed.get(name):
            target = str(request.url).replace(name, moved.full_name, 1)
            return web.Response(status=301, headers={"Location": target})
        try:
            actor = actor_of(self._hub, credential_of(request))
            repository = self._allowed(actor, name, pushing=pushing)
        except Refusal as refusal:
            return _refused(refusal, anonymous="Authorization" not in request.headers)
        if request.match_info["service"] != "git-receive-pack":
            return await git_backend(request, repository.git.path, git_environment(repository.git.path))
        return await self._push(request, repository, actor)

    def _allowed(self, actor: Actor, name: str, *, pushing: bool) -> Repository:
        repository = self._hub.repository(name)
        check_access(
            actor, repository, f"contents:{'write' if pushing else 'read'}", by_anyone=False
        )  # fmt: skip
        if pushing and repository.archived:
            raise Refusal(403, "This repository was archived so it is read-only.")
        return repository

    async def _push(self, request: web.Request, repository: Repository, actor: Actor) -> web.StreamResponse:
        async with self._hub.pushing(repository):
            before = repository.git.refs()
            environment = git_environment(repository.git.path) | {
                "PROTECTED": " ".join(f"refs/heads/{branch}" for branch in sorted(repository.protected))
            }
            answer = await git_backend(request, repository.git.path, _with_hooks(environment, self._hooks()))
            after_push(self._hub, repository, before, actor.person)
            return answer

    def _hooks(self) -> Path:
        hook = self._hub.root / "hooks" / "pre-receive"
        if not hook.exists():
            hook.parent.mkdir(parents=True, exist_ok=True)
            hook.write_text(_HOOK)
            hook.chmod(0o755)
        return hook.parent


def _with_hooks(environment: dict[str, str], hooks: Path) -> dict[str, str]:
    """Our own hooks instead of none: the last word on a setting counts."""
    count = int(environment["GIT_CONFIG_COUNT"])
    return environment | {
        "GIT_CONFIG_COUNT": str(count + 1),
        f"GIT_CONFIG_KEY_{count}": "core.hooksPath",
        f"GIT_CONFIG_VALUE_{count}": str(hooks),
    }


def _refused(refusal: Refusal, *, anonymous: bool) -> web.Response:
    """git asks for a password only when it is told that one is needed; a 404 hides what one may not see."""
    if anonymous:
        headers = {"WWW-Authenticate": 'Basic realm="GitHub"'}
        return web.Response(status=401, text="Authentication required\n", headers=headers)
    words = "Repository not found." if refusal.status == 404 else str(refusal)
    return web.Response(status=refusal.status, text=f"remote: {words}\n")
