"""Whole runs whose gate decides: modes, known failures, reports, stories; on the shapes of real projects."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sandpiper import limits
from sandpiper.models.spec import RunSpec
from tests.unit.sandbox.world import World, done, plan, run, write

if TYPE_CHECKING:
    from tests.unit.sandbox.git_server import GitServer

FILES = {"answer": "41\n", "check.sh": "grep -q 42 answer\n"}
TESTS = "from sums import answer\n\ndef test_answer(): assert answer() == 42\n\ndef test_kind(): assert answer() > 0\n"
PYTEST = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python3 -m pytest -q"


def spec(url: str, **more: Any) -> RunSpec:
    return RunSpec(**{"task": "Make the answer right", "type": "bug-fix", "repo": "o/r", "repo_url": url, **more})


def declared(*checks: str, **more: str) -> dict[str, str]:
    return {".sandpiper.yml": json.dumps({"checks": checks, **more})}


@pytest.fixture
def python_world(world: World) -> World:
    world.tools = Path(sys.prefix)
    return world


def project(value: int, tests: str = TESTS) -> dict[str, str]:
    return {"sums.py": f"def answer(): return {value}\n", "test_sums.py": tests}


def test_a_failure_inside_a_check_that_was_red_before_goes_back_to_the_agent(
    python_world: World, git_server: GitServer
) -> None:
    turns = [
        plan(),
        write("sums.py", "def answer(): return -1\n"),
        done(),
        write("sums.py", "def answer(): return 43\n"),
        done(),
    ]
    url = git_server.create("r", {**project(41), **declared(PYTEST)})
    model = python_world.perform(spec(url), turns)
    failed = python_world.told("gate_check_failed")[0]
    assert failed["newly_failing"] == ["test_sums.py::test_kind"]
    assert failed["tests"]["failed"] == 2
    assert "did not before:\\n- test_sums.py::test_kind" in str(model.requests[3].messages[-1])
    result = python_world.result
    assert result.gate is not None
    assert (result.outcome, result.gate.status, result.gate.checks[0].status) == (
        "completed",
        "skipped",
        "known_broken",
    )
    assert python_world.types.count("gate_baseline_completed") == 1


def test_a_pytest_project_that_declares_nothing_is_checked_by_its_tests(
    python_world: World, git_server: GitServer
) -> None:
    turns = [plan(), write("sums.py", "def answer(): return 42\n"), done()]
    python_world.perform(spec(git_server.create("r", project(41))), turns)
    gate = python_world.result.gate
    assert gate is not None
    assert (gate.status, gate.checks[0].command) == ("passed", "python3 -m pytest -q")
    assert gate.checks[0].tests is not None
    assert gate.checks[0].tests.passed == 2


def test_in_strict_mode_a_check_that_was_red_before_still_fails_the_run(world: World, git_server: GitServer) -> None:
    url = git_server.create("r", {**FILES, **declared("sh check.sh", gate="strict")})
    world.perform(spec(url), [plan(), write("answer", "43\n"), done(), done(), done()])
    assert world.result.error is not None
    assert world.result.error.type == "gate_failed"
    assert world.result.commit is None
    assert world.told("gate_completed")[-1]["mode"] == "strict"


def test_in_informational_mode_a_red_check_is_reported_and_the_commit_is_unverified(
    world: World, git_server: GitServer
) -> None:
    url = git_server.create("r", {"answer": "42\n", "check.sh": FILES["check.sh"], **declared("sh check.sh")})
    world.perform(spec(url, gate_mode="informational"), [plan(), write("answer", "43\n"), done()])
    result = world.result
    assert (result.gate and result.gate.status, result.outcome) == ("skipped", "completed")
    assert world.types.count("gate_check_failed") == 1
    assert world.types.count("gate_repair_started") == 0
    assert result.commit is not None
    assert not result.commit.verified


def test_a_check_that_never_ends_fails_the_run_and_says_why(world: World, git_server: GitServer) -> None:
    checks = {"checks": [{"run": "! grep -q slow answer || sleep 300", "timeout_seconds": 1}]}
    url = git_server.create("r", {**FILES, ".sandpiper.yml": json.dumps(checks)})
    model = world.perform(spec(url), [plan(), write("answer", "slow\n"), done(), done(), done()])
    assert world.result.error is not None
    assert world.result.error.type == "gate_failed"
    assert world.told("gate_check_failed")[0]["timed_out"] is True
    assert "(timed out)" in str(model.requests[3].messages[-1])


def test_what_a_red_check_left_behind_is_not_part_of_the_repair(world: World, git_server: GitServer) -> None:
    url = git_server.create("r", FILES)
    turns = [plan("touch litter; ! grep broken answer"), write("answer", "broken\n"), done(), write("answer", "42\n")]
    world.perform(spec(url), [*turns, done()])
    assert world.result.commit is not None
    files = git_server.git("r", "ls-tree", "-r", "--name-only", world.result.commit.branch)
    assert files.split() == ["answer", "check.sh"]


def test_a_plan_that_hides_its_outcome_proves_nothing(world: World, git_server: GitServer) -> None:
    url = git_server.create("r", FILES)
    world.perform(spec(url), [plan("sh check.sh || true"), write("answer", "43\n"), done()])
    assert world.result.gate is not None
    assert world.result.gate.status == "skipped"
    assert [data["message"].split("`")[1] for data in world.told("warning")] == ["sh check.sh || true"]


def test_a_make_project_is_checked_by_make(world: World, git_server: GitServer) -> None:
    url = git_server.create("r", {**FILES, "Makefile": "test:\n\tsh check.sh\n"})
    world.perform(spec(url), [plan(), write("answer", "42\n"), done()])
    assert world.result.gate is not None
    assert (world.result.gate.status, world.result.gate.checks[0].command) == ("passed", "make test")


@pytest.mark.skipif(not shutil.which("npm"), reason="npm is not installed")
def test_an_npm_project_is_checked_by_its_script_and_its_failing_tests_are_named(
    world: World, git_server: GitServer
) -> None:
    test = "const {{test}} = require('node:test'); test('adds', () => {{ if ({}) throw new Error('no'); }});\n"
    package = json.dumps({"name": "x", "version": "1.0.0", "scripts": {"test": "node --test"}})
    url = git_server.create("r", {"package.json": package, "a.test.js": test.format(0)})
    turns = [plan(), write("a.test.js", test.format(1)), done(), write("a.test.js", test.format("false")), done()]
    world.perform(spec(url), turns)
    assert world.told("gate_check_failed")[0]["newly_failing"] == ["adds"]
    assert world.result.gate is not None
    assert (world.result.gate.status, world.result.gate.checks[0].command) == ("passed", "npm test")


# What jest does with these arguments, as far as we rely on it: all words to stderr, the report into the file.
JEST = """
const fs = require('fs');
const [report] = process.argv.filter((word) => word.startsWith('--outputFile='));
const status = fs.readFileSync('answer', 'utf8') === '42\\n' ? 'passed' : 'failed';
const test = {ancestorTitles: ['the answer'], title: 'is right', status};
const suite = {name: `${process.cwd()}/answer.test.js`, status, assertionResults: [test]};
if (!process.argv.includes('--json')) process.exit(9);
fs.writeFileSync(report.slice('--outputFile='.length), JSON.stringify({testResults: [suite]}));
process.exitCode = status === 'passed' ? 0 : 1;
"""


@pytest.mark.skipif(not shutil.which("npm"), reason="npm is not installed")
def test_a_jest_project_is_asked_for_its_report_through_npm(world: World, git_server: GitServer) -> None:
    package = json.dumps({"scripts": {"test": "node node_modules/jest/bin/jest.js"}, "devDependencies": {"jest": "30"}})
    files = {"answer": "42\n", "package.json": package, "node_modules/jest/bin/jest.js": JEST}
    turns = [plan(), write("answer", "43\n"), done(), write("answer", "42\n"), write("new", ""), done()]
    world.perform(spec(git_server.create("r", files)), turns)
    assert world.told("gate_check_failed")[0]["newly_failing"] == ["answer.test.js › the answer › is right"]
    assert world.result.gate is not None
    assert world.result.gate.checks[0].tests is not None
    assert world.result.gate.checks[0].tests.passed == 1
    assert world.result.commit is not None


def test_a_markdown_story_is_ticked_in_the_same_commit(world: World, git_server: GitServer) -> None:
    prd = "# PRD\r\n\r\n## US-1: The answer\r\n- [ ] is right\r\n\r\n## US-2: Other\r\n- [ ] x"
    files = {**FILES, "docs/PRD.md": prd, **declared("sh check.sh")}
    world.perform(spec(git_server.create("r", files), task="Do US-1"), [plan(), write("answer", "42\n"), done()])
    assert world.result.commit is not None
    assert git_server.blob("r", f"{world.result.commit.branch}:docs/PRD.md") == prd.replace(
        "[ ] is right", "[x] is right"
    )
    assert world.result.story is not None
    assert world.result.story.model_dump() == {
        "file": "docs/PRD.md", "id": "US-1", "title": "The answer", "verdict": "PASSED",
    }  # fmt: skip
    assert world.told("story_selected")[0]["reason"] == "its id is named"


def test_a_story_that_the_agent_marked_itself_stays_open_while_nothing_proves_it(
    world: World, git_server: GitServer
) -> None:
    prd = '{"userStories": [{"id": "US-1", "title": "The answer", "passes": false}, {"id": "US-2"}]}'
    turns = [plan(), write("answer", "43\n"), write("prd.json", prd.replace("false", "true")), done()]
    world.perform(spec(git_server.create("r", {**FILES, "prd.json": prd}), task="Do US-1"), turns)
    assert world.result.commit is not None
    branch = world.result.commit.branch
    assert git_server.git("r", "show", f"{branch}:prd.json") == prd
    assert " US-1 The answer :: UNVERIFIED :: " in git_server.git("r", "show", f"{branch}:progress.txt")


def test_a_story_that_the_agent_marked_itself_is_still_the_one_that_is_recorded(
    world: World, git_server: GitServer
) -> None:
    prd = '{"userStories": [{"id": "US-1", "passes": false}, {"id": "US-2", "passes": false}]}'
    by_agent = prd.replace("false", "true", 1)
    files = {**FILES, "prd.json": prd, **declared("sh check.sh")}
    turns = [plan(), write("answer", "42\n"), write("prd.json", by_agent), done()]
    world.perform(spec(git_server.create("r", files), task="Do US-1"), turns)
    assert world.result.commit is not None
    assert git_server.git("r", "show", f"{world.result.commit.branch}:prd.json") == by_agent
    assert world.result.story is not None
    assert world.result.story.id == "US-1"


@pytest.mark.parametrize(
    ("prd", "told"),
    [
        ('{"userStories": [}', "prd.json can't be used: it is not JSON: .*line 1, column 18"),
        ("[]", "prd.json can't be used: it is a list"),
        ('{"userStories": [{"id": 1, "passes": true}]}', "Every story passes already"),
    ],
)
def test_a_prd_that_can_not_be_used_is_said_so_and_the_work_goes_on(
    world: World, git_server: GitServer, prd: str, told: str
) -> None:
    url = git_server.create("r", {**FILES, "prd.json": prd, **declared("sh check.sh")})
    world.perform(spec(url), [plan(), write("answer", "42\n"), done()])
    assert world.result.commit is not None
    assert world.result.story is None
    (skipped,) = world.told("story_skipped")
    assert re.search(told, skipped["reason"])
    assert git_server.git("r", "show", f"{world.result.commit.branch}:prd.json") == prd


def test_a_prd_that_the_work_broke_is_left_as_the_work_left_it(world: World, git_server: GitServer) -> None:
    files = {**FILES, "prd.json": '{"userStories": [{"id": "US-1"}]}', **declared("sh check.sh")}
    turns = [plan(), write("answer", "42\n"), run("rm prd.json"), done()]
    world.perform(spec(git_server.create("r", files)), turns)
    assert world.told("story_skipped") == [{"reason": "prd.json can't be used after the work: it is gone."}]
    assert world.result.commit is not None


def test_repairs_end_after_two_rounds(world: World, git_server: GitServer) -> None:
    files = {"answer": "42\n", "check.sh": FILES["check.sh"], **declared("sh check.sh")}
    world.perform(spec(git_server.create("r", files)), [plan(), write("answer", "43\n"), done(), done(), done()])
    assert world.types.count("gate_repair_started") == limits.MAX_REPAIRS == 2
    assert world.result.outcome == "failed"
