"""How a Python project runs its tests: pytest where it is declared or needed, unittest where that is all they use."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from sandpiper import limits

if TYPE_CHECKING:
    from sandbox_task.gate.detect import Files

_DECLARED = {
    "pyproject.toml": re.compile(r"^\[tool\.pytest\b|[\"']pytest[\"'<>=~! ]|^pytest\s*=", re.MULTILINE),
    "setup.cfg": re.compile(r"^\[tool:pytest\]", re.MULTILINE),
    "tox.ini": re.compile(r"^\[pytest\]|^\s*(commands\s*=.*)?\bpytest\b", re.MULTILINE),
}
_TOX = re.compile(r"^\[(tox|testenv)\b", re.MULTILINE)
_TOX_PYPROJECT = re.compile(r"^\[tool\.tox\b", re.MULTILINE)
_NEEDS_PYTEST = re.compile(r"^\s*(import|from)\s+pytest\b|^(async )?def test", re.MULTILINE)
_UNITTEST = re.compile(r"^\s*(import|from)\s+unittest\b|\bTestCase\b", re.MULTILINE)
_SKIPPED = {"node_modules", ".venv", "venv", "vendor", "site-packages"}


def is_test(path: PurePosixPath) -> bool:
    return bool(re.fullmatch(r"(test_.*|.*_test|tests)\.py", path.name)) and not _SKIPPED & set(path.parts)


def command(files: Files, tests: list[str]) -> str | None:
    if _declares_pytest(files):
        return "python3 -m pytest -q"
    if not tests:
        return _environments(files)
    texts = [files.text(path) for path in tests[: limits.DETECT_FILES]]
    if any(map(_NEEDS_PYTEST.search, texts)) or not any(map(_UNITTEST.search, texts)):
        return "python3 -m pytest -q"
    return _environments(files) or _unittest(files, tests)


def _declares_pytest(files: Files) -> bool:
    own = files.has("pytest.ini", ".pytest.ini", "pytest.toml", "conftest.py", "tests/conftest.py", "test/conftest.py")
    return own or any(pattern.search(files.text(name)) for name, pattern in _DECLARED.items())


def _environments(files: Files) -> str | None:
    if _TOX.search(files.text("tox.ini")) or _TOX_PYPROJECT.search(files.text("pyproject.toml")):
        return "tox"
    return "nox" if files.has("noxfile.py") else None


def _unittest(files: Files, tests: list[str]) -> str:
    """Its own search enters packages only, so a folder that is none is where the search starts."""
    if files.has("manage.py") and "django" in files.text("manage.py"):
        return "python3 manage.py test"
    tops = {PurePosixPath(path).parts[0] for path in tests if "/" in path}
    pattern = "" if any(PurePosixPath(path).name.startswith("test") for path in tests) else " -p '*_test.py'"
    if len(tops) == 1 and all("/" in path for path in tests) and not files.has(f"{(top := tops.pop())}/__init__.py"):
        return f"python3 -m unittest discover -s {top}{pattern}"
    return f"python3 -m unittest discover{pattern}"
