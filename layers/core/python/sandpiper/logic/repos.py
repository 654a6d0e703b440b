"""Which repositories may be cloned, and from where."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sandpiper.errors import SandpiperError
from sandpiper.models.requests import HTTPS_REPO_PATTERN, REPO_PATH_PATTERN, SHORT_REPO_PATTERN

_SHORT = re.compile(SHORT_REPO_PATTERN)
_HTTPS = re.compile(HTTPS_REPO_PATTERN)
_BELOW_PREFIX = re.compile(REPO_PATH_PATTERN)


class RefusedRepository(SandpiperError):
    """The name is neither owner/repo nor a URL that this deployment clones."""


@dataclass(frozen=True)
class RepoRules:
    """`github_url` completes short names; URLs below `allowed_prefixes` are taken besides https."""

    github_url: str
    allowed_prefixes: tuple[str, ...] = ()

    def url_of(self, repo: str) -> str:
        if _SHORT.fullmatch(repo):
            return f"{self.github_url.rstrip('/')}/{repo.removesuffix('.git')}.git"
        if _HTTPS.fullmatch(repo) or any(self._is_below(prefix, repo) for prefix in self.allowed_prefixes):
            return repo.rstrip("/")
        raise RefusedRepository("must be owner/repo or an https URL of a repository")

    @staticmethod
    def _is_below(prefix: str, repo: str) -> bool:
        root = prefix.rstrip("/") + "/"
        return repo.startswith(root) and _BELOW_PREFIX.fullmatch(repo[len(root) :]) is not None
