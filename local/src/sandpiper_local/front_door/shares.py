"""Repositories of this machine that are served over git's smart HTTP, and the tokens that open them."""

from __future__ import annotations

import hashlib
import re
import secrets
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Callable

TOKEN_SECONDS = 24 * 60 * 60


class NotARepository(Exception):
    pass


@dataclass(frozen=True)
class Share:
    id: str
    name: str
    path: Path
    git_dir: Path

    @property
    def url_path(self) -> str:
        return f"/git/{self.id}/{self.name}.git"


class Shares:
    """In memory only: a share is as short-lived as the stack. Tokens are kept as hashes.

    A token that callers bring may open a share for several runs: it is let in once for each and shut out once for each.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._shares: dict[str, Share] = {}
        self._grants: dict[tuple[str, str], list[float]] = {}  # when each of them ends

    def register(self, path: Path) -> Share:
        """The same path is always the same share. Raises NotARepository."""
        real = path.resolve()
        git_dir = find_git_dir(real)
        share = Share(hashlib.sha256(bytes(real)).hexdigest()[:16], _url_name(real), real, git_dir)
        self._shares[share.id] = share
        return share

    def find(self, share_id: str, name: str) -> Share | None:
        share = self._shares.get(share_id)
        return share if share is not None and share.name == name else None

    def grant(self, share: Share, token: str | None = None) -> str:
        """Let a token in, a new one if the caller brought none."""
        token = token or secrets.token_urlsafe(32)
        self._forget_the_expired()
        self._grants.setdefault((share.id, _hashed(token)), []).append(self._now() + TOKEN_SECONDS)
        return token

    def revoke(self, share: Share, token: str) -> None:
        """Take back one grant."""
        if grants := self._grants.get((share.id, _hashed(token))):
            grants.pop()

    def allows(self, share: Share, token: str) -> bool:
        now = self._now()
        return any(ends > now for ends in self._grants.get((share.id, _hashed(token)), ()))

    def _forget_the_expired(self) -> None:
        now = self._now()
        current = {key: [ends for ends in grants if ends > now] for key, grants in self._grants.items()}
        self._grants = {key: grants for key, grants in current.items() if grants}


def find_git_dir(path: Path) -> Path:
    """Of the work tree or bare repository at exactly this path, not of one above it."""
    if not path.is_dir():
        raise NotARepository(f"{path} is no directory")
    environment = git_environment(path) | {"GIT_CEILING_DIRECTORIES": str(path.parent)}
    found = subprocess.run(
        ["git", "rev-parse", "--absolute-git-dir"],
        cwd=path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if found.returncode != 0:
        raise NotARepository(f"{path} is no git repository")
    return Path(found.stdout.removesuffix("\n"))


def git_environment(*trusted: Path) -> dict[str, str]:
    """Git without anyone's configuration, trusting these directories whoever owns them."""
    settings = [
        *(("safe.directory", str(directory)) for directory in trusted),
        ("safe.directory", "."),  # what http-backend calls the one repository that it has entered
        ("http.receivepack", "true"),
        ("http.getanyfile", "false"),
        ("uploadpack.allowFilter", "true"),  # as GitHub does
        ("uploadpack.allowAnySHA1InWant", "true"),
        ("core.bigFileThreshold", str(limits.BIG_FILE_BYTES)),  # a huge file is streamed, not held in memory
        ("core.hooksPath", "/dev/null"),  # a push from a sandbox starts nothing on this machine
        ("receive.autogc", "false"),
    ]
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_COUNT": str(len(settings)),
    }
    for index, (key, value) in enumerate(settings):
        environment |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
    return environment


def _url_name(path: Path) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", path.name.removesuffix(".git")).strip(".") or "repository"


def _hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
