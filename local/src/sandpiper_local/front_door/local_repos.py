"""`POST /execute` for a repository of this machine: its path becomes a URL that a sandbox can clone."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from sandpiper_local.front_door.shares import Share, Shares

TOKEN_HEADER = "X-GitHub-Token"


@dataclass(frozen=True)
class LocalRepo:
    """Where in the body the path was written, and what it was."""

    field: str
    path: Path


@dataclass(frozen=True)
class Shared:
    """A request body that names the share, and the token that opens it."""

    body: bytes
    share: Share
    token: str


def find_local_repo(body: bytes) -> LocalRepo | None:
    """None if the body names no absolute path or can't be read: then the API has the word."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    holder, field = _holder(document)
    path = local_path(holder.get("repo"))
    return LocalRepo(field, path) if path is not None else None


def local_path(repo: Any) -> Path | None:
    if not isinstance(repo, str) or "\0" in repo:
        return None
    if repo.startswith("file://"):
        return Path(unquote(urlsplit(repo).path))
    return Path(repo) if repo.startswith("/") else None


async def share_repo(body: bytes, repo: LocalRepo, shares: Shares, *, base_url: str, token: str | None) -> Shared:
    """Raises NotARepository."""
    share = await asyncio.to_thread(shares.register, repo.path)
    document = json.loads(body)
    holder, _ = _holder(document)
    holder["repo"] = f"{base_url}{share.url_path}"
    return Shared(json.dumps(document).encode(), share, shares.grant(share, token))


def _holder(document: Any) -> tuple[dict[str, Any], str]:
    """The object of the body that has the repository, and the name of the field for people."""
    if not isinstance(document, dict):
        return {}, "repo"
    params = document.get("params")
    if "repo" not in document and isinstance(params, dict):
        return params, "params.repo"
    return document, "repo"
