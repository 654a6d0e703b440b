from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import pytest

from sandbox_task.gate.checks import select_checks
from sandbox_task.gate.gate import _report
from sandbox_task.options import Options, parse_options
from sandpiper.errors import RunError
from sandpiper.models.run import CheckResult, CheckStatus, Plan

if TYPE_CHECKING:
    from sandbox_task.workspace.repository import Repository


class Tree:
    """A repository as far as selecting checks can tell."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files

    def paths(self, _tree: str) -> list[str]:
        return list(self._files)

    def show(self, _tree: str, path: str) -> bytes | None:
        return self._files[path].encode() if path in self._files else None


def selected(files: dict[str, str], options: Options | None = None, plan: Plan | None = None) -> tuple[str, list[str]]:
    selection = select_checks(options or Options(), plan, cast("Repository", Tree(files)), "tree")
    return selection.source, [check.run for check in selection.checks]


def test_declared_checks_win_over_the_plan_and_over_what_is_found() -> None:
    options = parse_options(b"checks:\n  - make lint\n  - {name: unit, run: make test}\n")
    plan = Plan(validation_commands=("pytest",))
    assert selected({"test_x.py": ""}, options, plan) == (".sandpiper.yml", ["make lint", "make test"])


def test_the_plans_commands_win_over_what_is_found_and_are_not_repeated() -> None:
    plan = Plan(validation_commands=("pytest -q", " ", "pytest -q", "npx tsc --noEmit"))
    assert selected({"go.mod": ""}, None, plan) == ("plan", ["pytest -q", "npx tsc --noEmit"])


@pytest.mark.parametrize(
    ("files", "commands"),
    [
        ({"tests/test_a.py": ""}, ["python3 -m pytest -q"]),
        ({"package.json": json.dumps({"scripts": {"test": "jest"}})}, ["npm test"]),
        ({"package.json": json.dumps({"scripts": {"test": 'echo "Error: no test specified" && exit 1'}})}, []),
        ({"package.json": "{broken"}, []),
        ({"Cargo.toml": ""}, ["cargo test"]),
        ({"go.mod": ""}, ["go test ./..."]),
        ({"Makefile": "build:\n\ttrue\n\ntest: build\n\ttrue\n"}, ["make test"]),
        ({"Makefile": "test := 1\n"}, []),
        ({"README.md": ""}, []),
    ],
)
def test_checks_are_found_in_what_the_repository_declares(files: dict[str, str], commands: list[str]) -> None:
    assert selected(files) == ("detected", commands)


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        (["passed"], "passed"),
        (["passed", "known_broken"], "passed"),
        (["passed", "failed"], "failed"),
        (["known_broken", "failed"], "failed"),
        (["known_broken"], "skipped"),
    ],
)
def test_the_gate_passes_only_by_a_check_that_passed(statuses: list[CheckStatus], status: str) -> None:
    assert _report([CheckResult(command="c", status=status_) for status_ in statuses]).status == status


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"checks: [", "can't be read"),
        (b"cheks: [a]", "wrong at cheks"),
        (b"checks: [{name: a}]", "wrong at checks.0.run"),
        (b"- a\n- b", "wrong at its top level"),
    ],
)
def test_wrong_options_are_told_with_their_place(text: bytes, told: str) -> None:
    with pytest.raises(RunError, match=told):
        parse_options(text)


def test_a_repository_without_options_has_none() -> None:
    assert parse_options(None) == parse_options(b"") == Options()
