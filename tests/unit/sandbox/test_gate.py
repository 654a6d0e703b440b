"""The gate behind a real wall, on a real clone."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from sandbox_task.gate.checks import Selection
from sandbox_task.gate.execution import Execution
from sandbox_task.gate.gate import Gate, GateState
from sandbox_task.isolation.choose import put_up_wall
from sandbox_task.options import Check
from sandbox_task.stopping import Stop, Stopped
from sandbox_task.workspace.repository import Repository
from sandpiper.models.spec import GateMode, RunSpec
from tests.unit.sandbox.git_server import TOKEN, GitServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall

TESTS = "def test_fine(): pass\ndef test_wrong(): assert {}\ndef test_other(): assert {}\n"


@dataclass
class Told:
    """Keeps what is emitted, and all output."""

    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    text: bytearray = field(default_factory=bytearray)

    def emit(self, type_: str, **data: Any) -> None:
        self.events.append((type_, data))

    @contextmanager
    def output(self, **_data: Any) -> Iterator[Any]:
        yield self

    def feed(self, data: bytes) -> None:
        self.text += data

    def of(self, type_: str) -> list[dict[str, Any]]:
        return [data for found, data in self.events if found == type_]


@dataclass
class Place:
    wall: Wall
    repository: Repository
    told: Told = field(default_factory=Told)
    stop: Stop = field(default_factory=Stop)

    def gate(self, mode: GateMode = "regression", known: GateState | None = None) -> Gate:
        return Gate(self.wall, self.repository, self.told, self.stop, mode, known or GateState())

    def change(self, **files: str) -> str:
        for path, content in files.items():
            self.wall.write_file(path.replace("__", "/").replace("_py", ".py"), content.encode())
        return self.repository.take_tree(self.wall)

    def sh(self, command: str) -> str:
        out = bytearray()
        self.wall.run(command, timeout=30, on_output=out.extend)
        return out.decode()


@pytest.fixture
def clone(rooms: Rooms, git_server: GitServer) -> Iterator[Any]:
    """Makes the place for a repository with the files that a test wants; pytest is there for B."""
    walls = []

    def make(files: dict[str, str]) -> Place:
        spec = RunSpec(task="x", repo="o/r", repo_url=git_server.create("r", files))
        wall = put_up_wall("bwrap", rooms, tools=Path(sys.prefix), worker_uid=10002)
        walls.append(wall)
        repository = Repository.clone(spec, rooms, token=TOKEN)
        repository.deliver(wall)
        return Place(wall, repository)

    yield make
    for wall in walls:
        wall.close()


def chosen(*commands: str, **more: Any) -> Selection:
    return Selection("plan", tuple(Check(name=command, run=command, **more) for command in commands))


PYTEST = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python3 -m pytest -q -p no:cacheprovider"


def test_the_report_names_the_tests_that_fail_now_and_did_not_before(clone: Any) -> None:
    place = clone({"test_a.py": TESTS.format(0, 1)})
    report = place.gate().run(chosen(PYTEST), place.change(test_a_py=TESTS.format(0, 0)))
    check = report.checks[0]
    assert (report.status, check.status, check.exit_code) == ("failed", "failed", 1)
    assert check.tests is not None
    assert (check.tests.passed, check.tests.failing) == (1, ("test_a.py::test_wrong", "test_a.py::test_other"))
    assert check.newly_failing == ("test_a.py::test_other",)
    assert place.told.of("gate_check_failed")[0]["newly_failing"] == ["test_a.py::test_other"]
    assert place.told.of("gate_baseline_completed")[0]["tests"]["failing"] == ["test_a.py::test_wrong"]
    assert check.command == PYTEST
    assert "junit" not in place.sh("ls -A . /tmp")


def test_the_same_failures_as_before_are_known_broken(clone: Any) -> None:
    place = clone({"test_a.py": TESTS.format(0, 1)})
    report = place.gate().run(chosen(PYTEST), place.change(test_a_py=f"{TESTS.format(0, 1)}def test_new(): pass\n"))
    assert (report.status, report.checks[0].status) == ("skipped", "known_broken")


def test_a_module_that_no_longer_loads_is_a_new_failure(clone: Any) -> None:
    place = clone({"test_a.py": TESTS.format(0, 1)})
    report = place.gate().run(chosen(PYTEST), place.change(test_a_py="import nothing_here\n"))
    assert report.checks[0].newly_failing == ("test_a.py",)


def test_a_new_test_file_that_fails_is_the_works_own_failure(clone: Any) -> None:
    place = clone({"a.py": ""})
    report = place.gate().run(chosen(f"{PYTEST} test_new.py"), place.change(test_new_py=TESTS.format(0, 1)))
    assert report.status == "failed"
    assert report.checks[0].newly_failing == ("test_new.py::test_wrong",)


def test_a_runner_that_refuses_what_we_add_is_run_as_declared(clone: Any) -> None:
    place = clone({"test_a.py": TESTS.format(1, 1), "pytest.ini": "[pytest]\naddopts = -p no:junitxml\n"})
    report = place.gate().run(chosen(PYTEST), place.change(b_py=""))
    assert report.status == "passed"
    assert report.checks[0].tests is not None
    assert report.checks[0].tests.passed == 3


def test_the_baseline_is_run_once_before_the_work_and_leaves_nothing_behind(clone: Any) -> None:
    place = clone({"answer": "41\n", ".gitignore": "installed\n"})
    check = chosen("echo x >> answer; touch litter installed; grep -q 42 answer")
    gate = place.gate()
    gate.baseline(check)
    gate.baseline(check)
    assert [data["status"] for data in place.told.of("gate_baseline_completed")] == ["failed"]
    assert place.sh("cat answer; ls litter installed 2>/dev/null") == "41\ninstalled\n"
    assert gate.run(check, place.change(answer="43\n")).checks[0].status == "known_broken"
    assert len(place.told.of("gate_baseline_completed")) == 1


def test_what_a_setup_made_is_there_for_the_baseline_and_afterwards(clone: Any) -> None:
    place = clone({"answer": "42\n"})
    place.sh("touch made-by-setup")
    gate = place.gate()
    place.repository.setup_tree = place.repository.take_tree(place.wall)
    gate.baseline(chosen("touch litter; test -f made-by-setup"))
    report = gate.run(chosen("test -f made-by-setup && grep -q 42 answer"), place.change(answer="43\n"))
    assert [data["status"] for data in place.told.of("gate_baseline_completed")] == ["passed", "passed"]
    assert report.status == "failed"
    assert place.sh("ls") == "answer\nmade-by-setup\n"


def test_another_sandbox_goes_on_with_the_baseline_of_the_first(clone: Any) -> None:
    place = clone({"answer": "41\n"})
    check = chosen("grep -q 42 answer")
    gate = place.gate()
    gate.baseline(check)
    known = GateState.model_validate_json(gate.state().model_dump_json())
    again = place.gate(known=known)
    again.baseline(check)
    assert again.run(check, place.change(answer="43\n")).checks[0].status == "known_broken"
    assert len(place.told.of("gate_baseline_completed")) == 1


def test_after_a_red_gate_the_workspace_holds_the_work_and_nothing_else(clone: Any) -> None:
    place = clone({"answer": "42\n"})
    tree = place.change(answer="wrong\n")
    report = place.gate().run(chosen("touch litter; echo >> answer; grep -q 42 answer"), tree)
    assert report.status == "failed"
    assert place.repository.take_tree(place.wall) == tree
    assert place.sh("cat answer; ls") == "wrong\nanswer\n"


@pytest.mark.parametrize("ending", ["kill -9 -1", "sleep 300"])
def test_the_work_is_back_in_place_when_a_check_on_the_base_ends_badly(clone: Any, ending: str) -> None:
    place = clone({"answer": "41\n"})
    tree = place.change(answer="work\n")
    command = f"if grep -q 41 answer; then {ending}; fi; exit 3"
    report = place.gate().run(chosen(command, timeout_seconds=2), tree)
    assert report.checks[0].status == "known_broken"
    assert place.sh("cat answer") == "work\n"
    assert place.repository.take_tree(place.wall) == tree


def test_the_work_is_back_in_place_when_the_run_stops_in_the_middle_of_the_baseline(clone: Any) -> None:
    place = clone({"answer": "41\n"})
    tree = place.change(answer="work\n")
    told_by = place.told.feed

    def stop_then(data: bytes) -> None:
        told_by(data)
        if b"on the base" in data:
            place.stop.request("cancelled")

    place.told.feed = stop_then
    command = "if grep -q 41 answer; then echo on the base; sleep 300; fi; exit 3"
    with place.stop.listening(place.wall.interrupt), pytest.raises(Stopped):
        place.gate().run(chosen(command), tree)
    assert place.sh("cat answer") == "work\n"


def test_a_check_that_runs_too_long_is_failed_and_said_so(clone: Any) -> None:
    place = clone({"answer": "41\n"})
    tree = place.change(answer="slow\n")
    report = place.gate().run(chosen("echo begun; ! grep -q slow answer || sleep 300", timeout_seconds=1), tree)
    check = report.checks[0]
    assert (report.status, check.status, check.timed_out, check.exit_code) == ("failed", "failed", True, None)
    assert check.output_tail == "begun\n\n(It was ended after 1 s, its time limit.)"


def test_strict_mode_excuses_nothing(clone: Any) -> None:
    place = clone({"answer": "41\n"})
    report = place.gate("strict").run(chosen("grep -q 42 answer"), place.change(answer="43\n"))
    assert (report.status, report.checks[0].status) == ("failed", "failed")


def test_informational_mode_reports_and_never_fails(clone: Any) -> None:
    place = clone({"answer": "42\n"})
    report = place.gate("informational").run(chosen("grep -q 42 answer", "test -f answer"), place.change(answer="43\n"))
    assert (report.status, [check.status for check in report.checks]) == ("skipped", ["failed", "passed"])
    assert place.told.of("gate_check_failed")


def test_a_declared_report_is_read_if_it_is_fresh(clone: Any) -> None:
    xml = '<testsuite><testcase classname="{}" name="b"><failure/></testcase></testsuite>'
    place = clone({"out/old.xml": xml.format("old"), "new.xml": xml.format("new")})
    tree = place.change(x="1")
    report = place.gate().run(chosen("mkdir -p out/sub; cp new.xml out/sub/n.xml; false", report="out/**/*.xml"), tree)
    assert report.checks[0].tests is not None
    assert report.checks[0].tests.failing == ("new::b",)
    stale = place.gate().run(chosen("false", report="out/**/*.xml"), tree)
    assert stale.checks[0].tests is None


def test_a_report_that_leads_out_of_the_workspace_is_not_read(clone: Any) -> None:
    place = clone({"a": ""})
    report = place.gate().run(chosen("ln -sf /etc/passwd r.xml; false", report="r.xml"), place.change(a="1"))
    assert report.checks[0].tests is None


def test_a_report_is_no_reason_to_wait_for_ever(clone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox_task.gate.collect.secrets.token_hex", lambda _size: "known")
    place = clone({"test_a.py": TESTS.format(1, 1), "conftest.py": "import os\nos.mkfifo('/tmp/fifo')\n"})
    spoil = "def pytest_unconfigure():\n    os.replace('/tmp/fifo', '/tmp/sandpiper-known.report')\n"
    tree = place.change(conftest_py=f"import os\nos.mkfifo('/tmp/fifo')\n{spoil}")
    report = place.gate().run(chosen(PYTEST), tree)
    assert report.status == "passed"


def test_go_is_asked_for_events_and_people_see_words(rooms: Rooms, open_dir: Path) -> None:
    program = open_dir / "tools" / "bin" / "go"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\n[ "$1 $2" = "test -json" ] && cat events\nexit 1\n')
    program.chmod(0o755)
    wall = put_up_wall("bwrap", rooms, tools=open_dir / "tools", worker_uid=10002)
    wall.write_file("events", (Path(__file__).parent / "reports" / "go.jsonl").read_bytes())
    told = Told()
    result = Execution(wall, told, Stop()).run(Check(name="c", run="go test ./..."), "check:c")
    wall.close()
    assert result.tests is not None
    assert (result.exit_code, result.tests.passed, result.tests.failed) == (1, 2, 3)
    assert "--- FAIL: TestWrong" in result.output_tail
    assert b'"Action"' not in told.text


STUB = b"""#!/bin/sh
for word; do case $word in --junitxml=*)
  echo '<testsuite><testcase name="a"><failure/></testcase></testsuite>' > "${word#--junitxml=}";;
esac; done
exit 1
"""


def test_a_report_is_read_behind_either_wall_and_is_gone_afterwards(
    wall: Wall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox_task.gate.collect.secrets.token_hex", lambda _size: f"of-test-{os.getpid()}")
    wall.write_file("bin/pytest", STUB)
    place = Place(wall, cast("Repository", None))
    place.sh("chmod +x bin/pytest")
    result = Execution(wall, place.told, place.stop).run(Check(name="c", run="bin/pytest -q"), "check:c")
    assert (result.exit_code, result.tests and result.tests.failing) == (1, ("a",))
    assert place.sh(f"ls ${{TMPDIR:-/tmp}}/*of-test-{os.getpid()}* 2>/dev/null; ls") == "bin\n"


def test_what_is_refused_is_warned_about_once(clone: Any) -> None:
    place = clone({"a": "1\n"})
    gate, tree = place.gate(), place.change(a="2\n")
    selection = Selection("plan", (Check(name="c", run="test -f a"),), ("`true` is not taken as a check: x",))
    gate.run(selection, tree)
    gate.run(selection, tree)
    assert place.told.of("warning") == [{"message": "`true` is not taken as a check: x"}]


def test_suites_are_run_and_reported_with_failing_tests_by_name(clone: Any) -> None:
    place = clone({"test_a.py": TESTS.format(0, 1)})
    slow = Check(name="slow", run="sleep 300", timeout_seconds=1)
    checks = (Check(name="unit", run=PYTEST), Check(name="fine", run="true"), slow)
    suites = place.gate().suites(Selection("detected", checks))
    statuses = [("unit", "failed"), ("fine", "passed"), ("slow", "timed_out")]
    assert [(suite.name, suite.status) for suite in suites] == statuses
    assert suites[0].tests is not None
    assert (suites[0].tests.passed, suites[0].tests.failing) == (2, ("test_a.py::test_wrong",))
    assert place.told.of("gate_baseline_completed") == []


def test_without_a_suite_that_is_said(clone: Any) -> None:
    place = clone({"a": ""})
    assert place.gate().suites(Selection("detected", ())) == ()
    assert "no test suite" in place.told.of("gate_skipped")[0]["reason"]
