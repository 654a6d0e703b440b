"""Which checks decide about a piece of work."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import pytest

from sandbox_task.gate.checks import Selection, gate_mode, select_checks
from sandbox_task.gate.instrument import instrument
from sandbox_task.options import Options, parse_options
from sandpiper import limits
from sandpiper.errors import RunError
from sandpiper.models.run import Plan
from sandpiper.models.spec import RunSpec

if TYPE_CHECKING:
    from sandbox_task.workspace.repository import Repository

UNITTEST = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n"


class Tree:
    """A repository as far as selecting checks can tell."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files

    def paths(self, _tree: str) -> list[str]:
        return list(self._files)

    def show(self, _tree: str, path: str) -> bytes | None:
        return self._files[path].encode() if path in self._files else None


def selection(files: dict[str, str], options: Options | None = None, plan: Plan | None = None) -> Selection:
    return select_checks(options or Options(), plan, cast("Repository", Tree(files)), "tree")


def selected(files: dict[str, str], options: Options | None = None, plan: Plan | None = None) -> tuple[str, list[str]]:
    found = selection(files, options, plan)
    return found.source, [check.run for check in found.checks]


def planned(*commands: str) -> Selection:
    return selection({}, None, Plan(validation_commands=commands))


def package(**members: object) -> str:
    return json.dumps(members)


def test_declared_checks_win_over_the_plan_and_over_what_is_found() -> None:
    options = parse_options(b"checks:\n  - make lint\n  - {name: unit, run: make test}\n")
    plan = Plan(validation_commands=("pytest",))
    assert selected({"test_x.py": ""}, options, plan) == (".sandpiper.yml", ["make lint", "make test"])


def test_a_declared_check_may_have_a_time_limit_and_a_report() -> None:
    options = parse_options(b"gate: strict\nchecks: {run: make test, timeout_seconds: 60, report: 'out/*.xml'}\n")
    check = options.checks[0]
    assert (check.name, check.timeout_seconds, check.report) == ("make test", 60, "out/*.xml")
    assert options.gate == "strict"


def test_the_plans_commands_win_over_what_is_found_and_are_not_repeated() -> None:
    plan = Plan(validation_commands=("pytest -q", " ", "pytest -q", "npx tsc --noEmit", "npx jest"))
    assert selected({"go.mod": ""}, None, plan) == ("plan", ["pytest -q", "npx tsc --noEmit", "npx jest"])


def test_a_plan_has_no_more_checks_than_a_gate_runs() -> None:
    assert len(planned(*(f"sh {n}.sh" for n in range(50))).checks) == limits.MAX_CHECKS


@pytest.mark.parametrize(
    "command",
    [
        "pytest || true", "pytest; true", "pytest; echo $?", "pytest || :", "(pytest || true)", "pytest\ntrue",
        "git push", "pytest && git push origin main", "rm -rf / ; pytest", "sudo make test",
    ],
)  # fmt: skip
def test_a_planned_command_that_hides_its_outcome_or_destroys_is_refused_in_words(command: str) -> None:
    found = planned(command)
    assert found.checks == ()
    assert len(found.refused) == 1
    assert command in found.refused[0]


@pytest.mark.parametrize(
    "command",
    [
        "true", ":", "echo ok", "exit 0", "printf done", "git status", "git diff", "python3 --version", "FOO=1 true",
        "rm -rf build", "ls", "echo tests passed && true", "cd src && echo fine",
    ],
)  # fmt: skip
def test_a_planned_command_that_proves_nothing_counts_only_where_nothing_better_is_found(command: str) -> None:
    alone, beside = planned(command), planned(command, "pytest -q")
    assert ([check.run for check in alone.checks], [check.run for check in beside.checks]) == ([command], ["pytest -q"])
    assert command in alone.refused[0]


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q", "rm -rf build && make test", "echo start; pytest", "cd web && npm test", "pytest && echo ok",
        "pytest || (echo failed; exit 1)", "python3 -c 'import x; print(x)'", "git diff --exit-code",
        "grep -q 42 answer", "pytest | grep -q passed", "! grep -r TODO src", "python3 - <<'E'\nassert True\nE",
        "sh 'unbalanced", "ls docs/new.md", "tsc --noEmit", "test -f README.md",
    ],
)  # fmt: skip
def test_a_planned_command_that_can_fail_is_a_check(command: str) -> None:
    assert [check.run for check in planned(command).checks] == [command]


def test_what_only_shortens_the_output_is_dropped_because_it_hides_the_exit_code() -> None:
    commands = ("pytest -q 2>&1 | tail -20", "npm test | tee log | head -n 5", "pytest -q 2>&1 | tail -n 3")
    assert [check.run for check in planned(*commands).checks] == ["pytest -q 2>&1", "npm test"]


def test_a_plan_that_proves_nothing_leaves_the_choice_to_what_is_found() -> None:
    found = selection({"go.mod": ""}, None, Plan(validation_commands=("true",)))
    assert (found.source, [check.run for check in found.checks]) == ("detected", ["go test ./..."])
    assert "`true` is a poor check" in found.refused[0]


@pytest.mark.parametrize(
    ("files", "commands"),
    [
        ({"README.md": ""}, []),
        ({"tests/test_a.py": ""}, ["python3 -m pytest -q"]),
        ({"pytest.ini": ""}, ["python3 -m pytest -q"]),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, ["python3 -m pytest -q"]),
        ({"setup.cfg": "[tool:pytest]\n"}, ["python3 -m pytest -q"]),
        ({"tox.ini": "[testenv]\ncommands = pytest {posargs}\n"}, ["python3 -m pytest -q"]),
        ({"pyproject.toml": "[project]\nname = 'x'\n"}, []),
        ({"tests/test_a.py": UNITTEST}, ["python3 -m unittest discover -s tests"]),
        ({"tests/test_a.py": UNITTEST, "tests/__init__.py": ""}, ["python3 -m unittest discover"]),
        ({"test_a.py": UNITTEST}, ["python3 -m unittest discover"]),
        ({"a_test.py": UNITTEST}, ["python3 -m unittest discover -p '*_test.py'"]),
        ({"tests/test_a.py": UNITTEST, "tests/test_b.py": "def test_b(): pass\n"}, ["python3 -m pytest -q"]),
        ({"tests/test_a.py": UNITTEST, "pyproject.toml": 'dev = ["pytest>=8"]\n'}, ["python3 -m pytest -q"]),
        ({"node_modules/x/test_a.py": ""}, []),
        ({"tox.ini": "[testenv]\ncommands = python -m unittest\n"}, ["tox"]),
        ({"noxfile.py": ""}, ["nox"]),
        ({"package.json": package(scripts={"test": "jest"})}, ["npm test"]),
        ({"package.json": package(scripts={"test": "jest"}), "yarn.lock": ""}, ["yarn test"]),
        ({"package.json": package(scripts={"test": "jest"}), "pnpm-lock.yaml": ""}, ["pnpm test"]),
        ({"package.json": package(scripts={"test": 'echo "Error: no test specified" && exit 1'})}, []),
        ({"package.json": package(devDependencies={"vitest": "4"})}, ["npx vitest run"]),
        ({"package.json": package(devDependencies={"jest": "30"})}, ["npx jest"]),
        ({"package.json": "{broken"}, []),
        ({"package.json": "[]"}, []),
        ({"package.json": package(scripts=["test"])}, []),
        ({"Cargo.toml": ""}, ["cargo test"]),
        ({"go.mod": ""}, ["go test ./..."]),
        ({"pom.xml": ""}, ["mvn -B test"]),
        ({"pom.xml": "", "mvnw": ""}, ["./mvnw -B test"]),
        ({"build.gradle.kts": "", "gradlew": ""}, ["./gradlew test"]),
        ({"composer.json": package(scripts={"test": "phpunit"})}, ["composer test"]),
        ({"composer.json": "{}", "phpunit.xml.dist": ""}, ["vendor/bin/phpunit"]),
        ({"Gemfile": "", "spec/a_spec.rb": ""}, ["bundle exec rspec"]),
        ({"Rakefile": "Rake::TestTask.new\n"}, ["rake test"]),
        ({"A/A.csproj": '<PackageReference Include="Microsoft.NET.Test.Sdk"/>'}, ["dotnet test"]),
        ({"A/A.csproj": "<Project/>"}, []),
        ({"mix.exs": "", "test/a_test.exs": ""}, ["mix test"]),
        ({"Makefile": "build:\n\ttrue\n\ntest: build\n\ttrue\n"}, ["make test"]),
        ({"Makefile": "check:\n\ttrue\n"}, ["make check"]),
        ({"Makefile": "test := 1\n"}, []),
        ({"Makefile": "test:\n\tpytest\n", "tests/test_a.py": ""}, ["python3 -m pytest -q"]),
        ({"go.mod": "", "package.json": package(scripts={"test": "jest"})}, ["npm test", "go test ./..."]),
    ],
)
def test_checks_are_found_in_what_the_repository_declares(files: dict[str, str], commands: list[str]) -> None:
    assert selected(files) == ("detected", commands)


SCRIPTS = {"test": "jest --coverage", "test:unit": "cross-env CI=1 vitest run", "test:all": "jest && eslint ."}


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        ("pytest", "pytest -o junit_family=xunit1 --junitxml=R"),
        ("python3 -m pytest -q tests", "python3 -m pytest -o junit_family=xunit1 --junitxml=R -q tests"),
        ("uv run pytest -x", "uv run pytest -o junit_family=xunit1 --junitxml=R -x"),
        ("poetry run pytest", "poetry run pytest -o junit_family=xunit1 --junitxml=R"),
        ("cd a && X=1 pytest -q 2>&1", "cd a && X=1 pytest -o junit_family=xunit1 --junitxml=R -q 2>&1"),
        ("npx jest src", "npx jest --json --outputFile=R src"),
        ("npx vitest run", "npx vitest run --reporter=default --reporter=json --outputFile.json=R"),
        ("go test ./...", "go test -json ./..."),
        ("npm test", "npm test -- --json --outputFile=R"),
        ("yarn test", "yarn test --json --outputFile=R"),
        ("npm run test:unit", "npm run test:unit -- --reporter=default --reporter=json --outputFile.json=R"),
    ],
)
def test_a_plain_call_of_a_test_runner_is_asked_for_its_report(command: str, asked: str) -> None:
    found = instrument(command, "R", lambda name: SCRIPTS.get(name, ""))
    assert found is not None
    assert found.command == asked


@pytest.mark.parametrize(
    "command",
    [
        "pytest --junitxml=mine.xml", "pytest -p no:junitxml", "pytest && ruff check", "pytest | tee log", "make test",
        "npm run test:all", "npm run nothing", "npx jest --json", "go test ./... > log", "pytest --collect-only",
        "pytest -q `cat files`", "pytest-watch", "npx vitest --reporter=dot", "echo pytest",
    ],
)  # fmt: skip
def test_a_command_that_is_more_than_a_plain_call_is_left_alone(command: str) -> None:
    assert instrument(command, "R", lambda name: SCRIPTS.get(name, "")) is None


def test_the_mode_is_the_requests_then_the_repositorys_then_regression() -> None:
    strict = Options(gate="strict")
    assert gate_mode(RunSpec(task="x", gate_mode="informational"), strict) == "informational"
    assert gate_mode(RunSpec(task="x"), strict) == "strict"
    assert gate_mode(RunSpec(task="x"), Options()) == "regression"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"checks: [", "can't be read: .* at line 1, column 10"),
        (b"cheks: [a]", "wrong at cheks"),
        (b"checks: [{name: a}]", "wrong at checks.0.run"),
        (b"checks: [1]", "wrong at checks.0"),
        (b"checks: ['']", "wrong at checks.0.name"),
        (b"checks: [{run: a, timeout_seconds: 0}]", "wrong at checks.0.timeout_seconds"),
        (b"checks: [{run: a, report: ../x.xml}]", "wrong at checks.0.report.*inside the repository"),
        (b"checks: [a, b, c, d, e, f, g, h, i]", "wrong at checks: .*at most 8"),
        (b"gate: lax", "wrong at gate"),
        (b"- a\n- b", "wrong at its top level"),
        (b"\xff\xfe\xff", "can't be read"),
    ],
)
def test_wrong_options_are_told_with_their_place(text: bytes, told: str) -> None:
    with pytest.raises(RunError, match=told):
        parse_options(text)


@pytest.mark.parametrize("text", [None, b"", b"checks:\n", b"# nothing\n"])
def test_a_repository_without_options_has_none(text: bytes | None) -> None:
    assert parse_options(text) == Options()
