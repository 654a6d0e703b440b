"""How a JavaScript or TypeScript project runs its tests: by its own script and its own package manager."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox_task.gate.detect import Files

_LOCKS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun run", "bun.lockb": "bun run"}
_RUNNERS = {"vitest": "npx vitest run", "jest": "npx jest", "mocha": "npx mocha"}


def command(files: Files) -> str | None:
    package = _object(files.text("package.json"))
    script = test_script(package, "test")
    if script and "no test specified" not in script:
        return f"{_manager(files)} test"
    installed = {**_member(package, "dependencies"), **_member(package, "devDependencies")}
    return next((run for name, run in _RUNNERS.items() if name in installed), None)


def read_script(text: str, name: str) -> str:
    """What a script of a package.json runs, or nothing."""
    return test_script(_object(text), name)


def test_script(package: dict[str, Any], name: str) -> str:
    script = _member(package, "scripts").get(name, "")
    return script if isinstance(script, str) else ""


def _manager(files: Files) -> str:
    return next((manager for lock, manager in _LOCKS.items() if files.has(lock)), "npm")


def _object(text: str) -> dict[str, Any]:
    """A broken package.json declares nothing."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _member(package: dict[str, Any], name: str) -> dict[str, Any]:
    value = package.get(name)
    return value if isinstance(value, dict) else {}
