"""Whole conversations, one for each kind of task and of trouble, on projects of several shapes."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.support import (
    Case,
    Person,
    finishes,
    git,
    make_repository,
    new_task,
    plans,
    says,
    shell,
    tool,
    writes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.conftest import Stack

Files = dict[str, str | bytes]

PYTEST: Files = {
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    "sums.py": "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return 2 * a\n",
    "tests/test_sums.py": (
        "from sums import add, double\n\n\ndef test_add():\n    assert add(2, 3) == 5\n\n\n"
        "def test_double():\n    assert double(2) == 4\n"
    ),
}
RIGHT = "def add(a, b):\n    return a + b\n\n\ndef double(a):\n    return 2 * a\n"
WRONG_TOO = "def add(a, b):\n    return a + b\n\n\ndef double(a):\n    return 3 * a\n"
MORE = "def test_more():\n    assert 1\n"
PRD = {
    "project": "sums",
    "userStories": [
        {"id": "US-1", "title": "Doubling", "priority": 1, "passes": True},
        {"id": "US-2", "title": "Adding numbers", "priority": 2, "passes": False, "acceptanceCriteria": ["2 + 3 = 5"]},
    ],
}
NPM: Files = {
    "package.json": json.dumps({"name": "sums", "version": "1.0.0", "scripts": {"test": "node --test"}}),
    "sums.js": "exports.add = (a, b) => a - b\n",
    "sums.test.js": (
        "const test = require('node:test'); const assert = require('node:assert'); const { add } = require('./sums')\n"
        "test('adds', () => assert.strictEqual(add(2, 3), 5))\ntest('is there', () => assert.ok(add))\n"
    ),
}
MAKE: Files = {"Makefile": "test:\n\tgrep -q 42 answer\n", "answer": "41\n"}
REVIEWED = {
    "status": "done",
    "summary": "One bug.",
    "findings": [
        {
            "file": "sums.py",
            "line": 2,
            "severity": "critical",
            "message": "add subtracts.",
            "suggestion": "return a + b",
        }
    ],
}
GROWING = tuple(shell(f"seq {number} {number + 2_000}") for number in range(0, 120_000, 3_000))

# name → (files of the repository, replies of the model, body)
PLAYS: dict[str, tuple[Files, tuple[dict[str, Any], ...], dict[str, Any]]] = {
    "feature with a story": (
        PYTEST | {"prd.json": json.dumps(PRD, indent=4) + "\n"},
        (plans("python3 -m pytest -q", summary="Do US-2"), writes("sums.py", RIGHT), finishes("It adds.")),
        {},
    ),
    "red, then repaired": (
        PYTEST | {".sandpiper.yml": "checks: ['python3 -m pytest -q']\n"},
        (plans(), writes("sums.py", WRONG_TOO), finishes(), writes("sums.py", RIGHT), finishes("Repaired.")),
        {"type": "bug-fix"},
    ),
    "red to the end": (
        PYTEST | {".sandpiper.yml": "checks: ['python3 -m pytest -q']\n"},
        (plans(), writes("sums.py", WRONG_TOO), finishes(), finishes(), finishes()),
        {"type": "bug-fix"},
    ),
    "known broken": (
        PYTEST | {".sandpiper.yml": "checks: ['python3 -m pytest -q', 'test -f sums.py']\n"},
        (plans(), writes("notes.md", "# Notes\n"), finishes("Written.")),
        {"type": "documentation"},
    ),
    "review": (
        PYTEST,
        (plans(), says(tool("read_file", path="sums.py")), says(tool("finish", **REVIEWED))),
        {"type": "code-review"},
    ),
    "suite": (
        PYTEST,
        (plans("python3 -m pytest -q"), shell("python3 -m pytest -q"), finishes("One fails.")),
        {"type": "test-suite"},
    ),
    "npm": (NPM, (plans(), writes("sums.js", "exports.add = (a, b) => a + b\n"), finishes()), {"type": "bug-fix"}),
    "make": (MAKE, (plans(), writes("answer", "42\n"), finishes()), {"type": "bug-fix"}),
    "testing": (PYTEST, (plans(), writes("tests/test_more.py", MORE), finishes()), {"type": "testing"}),
    "refactoring": (MAKE, (plans("test -e answer"), writes("extra", "x\n"), finishes()), {"type": "refactoring"}),
    "migration": (MAKE, (plans("test -e answer"), writes("extra", "x\n"), finishes()), {"type": "migration"}),
    "compaction": (MAKE, (plans(), *GROWING, writes("answer", "42\n"), finishes("Long.")), {"type": "bug-fix"}),
}  # fmt: skip


@pytest.fixture(scope="module")
def cases(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Case]]:
    with ExitStack() as people:
        yield {
            name: _start(people.enter_context(Person(stack)), tmp_path_factory.mktemp("repository"), *play)
            for name, play in PLAYS.items()
        }


def _start(person: Person, directory: Path, files: Files, replies: tuple[dict[str, Any], ...], body: Any) -> Case:
    repository = make_repository(directory / "project", files)
    task = new_task(person.stack, *replies)
    return Case(person, person.start({"task": task, "repo": str(repository), **body}), repository)


def test_a_feature_that_passes_the_gate_passes_its_story(cases: dict[str, Case]) -> None:
    case = cases["feature with a story"]
    result = case.run["result"]
    assert case.outcome == ("completed", None)
    assert (result["gate"]["status"], result["commit"]["verified"]) == ("passed", True)
    assert (result["story"]["id"], result["story"]["verdict"]) == ("US-2", "PASSED")
    after = git("show", f"{result['commit']['branch']}:prd.json", at=case.repository)
    assert after == json.dumps(PRD, indent=4).replace("false", "true")
    progress = git("show", f"{result['commit']['branch']}:progress.txt", at=case.repository)
    assert "] US-2 Adding numbers :: PASSED :: " in progress
    assert result["commit"]["message"].startswith("feat: ")


def test_a_red_gate_names_the_test_that_is_new_among_the_failing_and_is_repaired(cases: dict[str, Case]) -> None:
    case = cases["red, then repaired"]
    assert case.outcome == ("completed", None)
    failed = case.told("gate_check_failed")
    assert [data["newly_failing"] for data in failed] == [["tests/test_sums.py::test_double"]]
    assert len(case.told("gate_repair_started")) == 1
    assert case.run["result"]["gate"]["status"] == "passed"
    assert case.run["result"]["summary"] == "Repaired."


def test_a_gate_that_stays_red_fails_the_run_and_commits_nothing(cases: dict[str, Case]) -> None:
    case = cases["red to the end"]
    assert case.outcome == ("failed", "gate_failed")
    assert case.run["result"]["commit"] is None
    assert case.branches == ["main"]
    assert "return 3 * a" in case.person.download(case.run_id, "diff").text


def test_what_was_broken_before_is_told_apart_and_does_not_count(cases: dict[str, Case]) -> None:
    case = cases["known broken"]
    assert case.outcome == ("completed", None)
    assert [check["status"] for check in case.run["result"]["gate"]["checks"]] == ["known_broken", "passed"]
    baseline = case.told("gate_baseline_completed")
    assert [data["status"] for data in baseline] == ["failed", "passed"]
    assert baseline[0]["tests"]["failing"] == ["tests/test_sums.py::test_add"]
    assert case.run["result"]["commit"]["message"].startswith("docs: ")


def test_a_review_hands_in_findings_and_changes_nothing(cases: dict[str, Case]) -> None:
    case = cases["review"]
    assert case.outcome == ("completed", None)
    assert case.run["result"]["findings"] == REVIEWED["findings"]
    assert case.branches == ["main"]


def test_a_suite_is_reported_with_its_failing_tests_by_name(cases: dict[str, Case]) -> None:
    case = cases["suite"]
    assert case.outcome == ("completed", None)
    (suite,) = case.run["result"]["suites"]
    assert (suite["command"], suite["status"], suite["tests"]["passed"]) == ("python3 -m pytest -q", "failed", 1)
    assert suite["tests"]["failing"] == ["tests/test_sums.py::test_add"]
    assert case.branches == ["main"]


@pytest.mark.parametrize(("name", "check"), [("npm", "npm test"), ("make", "make test")])
def test_a_project_is_checked_by_what_it_declares_itself(cases: dict[str, Case], name: str, check: str) -> None:
    case = cases[name]
    assert case.outcome == ("completed", None)
    assert case.told("gate_checks_selected") == [{"source": "detected", "checks": [check], "mode": "regression"}]
    assert case.run["result"]["gate"]["status"] == "passed"
    assert case.run["result"]["commit"]["verified"]


@pytest.mark.parametrize(
    ("name", "strategy", "subject"),
    [
        ("testing", "test-hardening", "test: "),
        ("refactoring", "refactor", "refactor: "),
        ("migration", "migration", "chore: "),
        ("npm", "bug-fix", "fix: "),
        ("known broken", "documentation", "docs: "),
    ],
)
def test_each_type_of_task_has_its_strategy_and_its_subject(
    cases: dict[str, Case], name: str, strategy: str, subject: str
) -> None:
    case = cases[name]
    assert case.told("prompt_strategy_selected")[0]["strategy"] == strategy
    assert git("log", "-1", "--format=%s", case.run["result"]["commit"]["branch"], at=case.repository).startswith(
        subject
    )


def test_a_conversation_that_grows_too_large_is_shortened_and_still_ends_well(
    cases: dict[str, Case], stack: Stack
) -> None:
    case = cases["compaction"]
    assert case.outcome == ("completed", None)
    assert any("shortened" in data["message"] for data in case.told("warning"))
    assert case.run["result"]["gate"]["status"] == "passed"
    task = case.run["task"]
    last = [entry for entry in stack.model.requests if task in str(entry["body"]["messages"][0])][-1]
    assert "What happened so far" in str(last["body"]["messages"][0])


def test_the_result_is_one_document(cases: dict[str, Case]) -> None:
    result = cases["feature with a story"].run["result"]
    assert result["plan"]["summary"] == "Do US-2"
    assert result["diff_stat"]["files"] == 3
    assert result["usage"]["turns"] == 3
    assert result["usage"]["cost_usd"] > 0
    assert {"clone", "context", "agent", "gate", "push"} <= result["durations_ms"].keys()
    assert result["model"] == "claude-sonnet-5-5"
