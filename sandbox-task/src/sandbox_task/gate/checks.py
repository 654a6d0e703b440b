"""Which checks decide about a piece of work: declared ones, else the plan's, else what the repository shows."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox_task.options import Check, Options
from sandpiper import limits

if TYPE_CHECKING:
    from sandbox_task.workspace.repository import Repository
    from sandpiper.models.run import Plan

_PYTHON_TEST = re.compile(r"(.*/)?(test_[^/]*|[^/]*_test)\.py")
_MAKE_TEST = re.compile(rb"^test\s*:(?!=)", re.MULTILINE)


@dataclass(frozen=True)
class Selection:
    source: str  # .sandpiper.yml, plan, detected
    checks: tuple[Check, ...]


def select_checks(options: Options, plan: Plan | None, repository: Repository, tree: str) -> Selection:
    if options.checks:
        return Selection(".sandpiper.yml", options.checks)
    if plan and (commands := [command.strip() for command in plan.validation_commands if command.strip()]):
        unique = dict.fromkeys(commands)
        return Selection("plan", tuple(Check(name=command, run=command) for command in unique)[: limits.MAX_CHECKS])
    return Selection("detected", tuple(_detect(repository, tree)))


def _detect(repository: Repository, tree: str) -> list[Check]:
    paths = set(repository.paths(tree))
    commands = [
        ("python3 -m pytest -q", any(map(_PYTHON_TEST.fullmatch, paths)) or "pytest.ini" in paths),
        ("npm test", "package.json" in paths and _has_npm_test(repository.show(tree, "package.json"))),
        ("cargo test", "Cargo.toml" in paths),
        ("go test ./...", "go.mod" in paths),
    ]
    found = [command for command, applies in commands if applies]
    if not found and _has_make_test(repository, tree, paths):
        found = ["make test"]
    return [Check(name=command, run=command) for command in found]


def _has_make_test(repository: Repository, tree: str, paths: set[str]) -> bool:
    names = [name for name in ("GNUmakefile", "Makefile", "makefile") if name in paths]
    return any(_MAKE_TEST.search(repository.show(tree, name) or b"") for name in names)


def _has_npm_test(data: bytes | None) -> bool:
    try:
        script = json.loads(data or b"{}").get("scripts", {}).get("test", "")
    except (ValueError, AttributeError):  # a broken package.json declares no test
        return False
    return bool(script) and "no test specified" not in script
