"""Which files say something about a repository as a whole, whatever the task is."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_INSTRUCTIONS = ("agents.md", "claude.md")
_PRD = re.compile(r"prd\.json|prd\.md|docs/prd\.md|tasks/prd-[^/]+\.md", re.IGNORECASE)
_PRD_FALLBACK = re.compile(r"\.implement(\.md)?", re.IGNORECASE)
_OPTIONS = re.compile(r"\.sandpiper\.yml")
_MANIFESTS = re.compile(
    r"package\.json|pyproject\.toml|setup\.py|requirements[^/]*\.txt|cargo\.toml|go\.mod|gemfile|pom\.xml|composer\.json"
    r"|build\.gradle(\.kts)?|mix\.exs|cmakelists\.txt|[^/]+\.(csproj|sln|gemspec|cabal)",
    re.IGNORECASE,
)
_README = re.compile(r"readme(\.\w+)?", re.IGNORECASE)
_CONFIGURATION = re.compile(
    r"(gnu)?makefile|justfile|tox\.ini|pytest\.ini|setup\.cfg|tsconfig\.json|noxfile\.py|jest\.config\.\w+"
    r"|\.pre-commit-config\.yaml|contributing\.md|\.editorconfig|\.github/workflows/[^/]+\.ya?ml",
    re.IGNORECASE,
)
_GENERAL = (
    (_OPTIONS, limits.CONTEXT_CONFIG_TOKENS),
    (_MANIFESTS, limits.CONTEXT_GENERAL_TOKENS),
    (_README, limits.CONTEXT_GENERAL_TOKENS),
    (_CONFIGURATION, limits.CONTEXT_CONFIG_TOKENS),
)


def holds_instructions(path: str) -> bool:
    return posixpath.basename(path).lower() in _INSTRUCTIONS


def instruction_paths(paths: Iterable[str], *, towards: Iterable[str] = ()) -> list[str]:
    """AGENTS.md and CLAUDE.md of the root, and of every directory on the way to these paths; the root's first."""
    places = {""} | {place for path in towards for place in _directories(path)}
    found = [path for path in paths if holds_instructions(path) and posixpath.dirname(path) in places]
    return sorted(found, key=lambda path: (path.count("/"), path))


def requirement_paths(paths: Iterable[str]) -> list[str]:
    """The PRD files; if there are none, what stands in for them."""
    known = list(paths)
    return _matching(known, _PRD) or _matching(known, _PRD_FALLBACK)


def general_paths(paths: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Best first, each with the tokens that it is worth."""
    known = list(paths)
    for pattern, tokens in _GENERAL:
        yield from ((path, tokens) for path in _matching(known, pattern))


def _matching(paths: list[str], pattern: re.Pattern[str]) -> list[str]:
    return sorted((path for path in paths if pattern.fullmatch(path)), key=lambda path: (path.count("/"), path))


def _directories(path: str) -> Iterator[str]:
    """The path itself may be one."""
    while path:
        yield path
        path = posixpath.dirname(path)
