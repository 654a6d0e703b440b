from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandpiper_local import lock
from sandpiper_local.build import source_digest
from sandpiper_local.errors import AlreadyRunning, LocalError, PartFailed
from sandpiper_local.parts import Parts
from sandpiper_local.paths import StateDir, default_state_dir
from sandpiper_local.startup import write_private

if TYPE_CHECKING:
    from collections.abc import Iterator

STUBBORN_FAMILY = (
    "import os, signal, subprocess, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
    "print(os.getpid(), child.pid, flush=True)\n"
    "time.sleep(600)"
)


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    state = StateDir(tmp_path / "state")
    state.create()
    state.clear()
    return state


@pytest.fixture
def parts(state: StateDir, tmp_path: Path) -> Iterator[Parts]:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with lock.hold(state, "http://here") as lock_fd, Parts(state, leftovers=[scratch], inherit_fd=lock_fd) as parts:
        yield parts


def lives(pid: int) -> bool:
    """An orphan that has ended counts as such, though init may take its time to collect it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + 30
    while lives(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not lives(pid)


def test_a_command_runs_with_the_given_environment_only_and_its_output_is_logged(parts: Parts, state: StateDir) -> None:
    code = parts.run(
        "job", [sys.executable, "-c", "import os; print(dict(os.environ)); raise SystemExit(5)"], {"A": "1"}
    )
    assert code == 5
    assert state.log("job").read_text().startswith("{'A': '1'")


def test_a_part_that_ends_is_named_with_its_log(parts: Parts, state: StateDir) -> None:
    parts.start("worker", [sys.executable, "-c", "raise SystemExit(9)"], {})
    with pytest.raises(PartFailed, match=r"worker ended with exit code 9; its log is .*worker\.log"):
        parts.wait_for_failure()


def test_an_orphan_is_asked_to_end_when_its_parent_has(state: StateDir, tmp_path: Path) -> None:
    tidied = tmp_path / "tidied"
    child = f"import pathlib, signal; signal.sigwait([signal.SIGTERM]); pathlib.Path({str(tidied)!r}).touch()"
    family = (
        "import signal, subprocess, sys, time\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True)\n"
        "print('born', flush=True)\n"
        "signal.sigwait([signal.SIGTERM])"
    )
    with lock.hold(state, "http://here") as lock_fd, Parts(state, leftovers=[], inherit_fd=lock_fd) as parts:
        parts.start("family", [sys.executable, "-c", family], {})
        parts.wait_until(lambda: "born" in state.log("family").read_text(), part="family", seconds=30)
    assert tidied.exists()


def test_a_part_that_never_gets_ready_is_named(parts: Parts) -> None:
    parts.start("worker", ["sleep", "60"], {"PATH": os.environ["PATH"]})
    with pytest.raises(LocalError, match="worker was not ready"):
        parts.wait_until(lambda: False, part="worker", seconds=0.1)


def test_a_program_that_does_not_exist_is_said_so(parts: Parts) -> None:
    with pytest.raises(LocalError, match="ghost could not be started"):
        parts.start("ghost", ["/no/such/program"], {})


def test_leaving_ends_stubborn_processes_and_their_daemons_and_removes_what_is_left(
    state: StateDir, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with lock.hold(state, "http://here") as lock_fd, Parts(state, leftovers=[scratch], inherit_fd=lock_fd) as parts:
        parts.start("family", [sys.executable, "-c", STUBBORN_FAMILY], {"PATH": os.environ["PATH"]})
        parts.wait_until(lambda: "\n" in state.log("family").read_text(), part="family", seconds=30)
        family = [int(pid) for pid in state.log("family").read_text().split()]
    for pid in family:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert not scratch.exists()


def test_a_killed_guardian_takes_its_parts_along(parts: Parts) -> None:
    parts.start("worker", ["sleep", "600"], {"PATH": os.environ["PATH"]})
    os.kill(parts.pids["guardian"], signal.SIGKILL)
    with pytest.raises(PartFailed, match="guardian"):
        parts.wait_for_failure()
    wait_for_end(parts.pids["worker"])


def test_a_state_directory_is_held_by_one_stack(state: StateDir) -> None:
    with lock.hold(state, "http://first"):
        with pytest.raises(AlreadyRunning, match=f"pid {os.getpid()}, http://first"), lock.hold(state, "http://second"):
            pass
        assert lock.is_held(state)
    assert not lock.is_held(state)


def test_a_lock_that_only_the_guardian_of_a_dead_up_holds_is_waited_for(state: StateDir) -> None:
    with lock.hold(state, "http://first") as descriptor:
        inherited = os.dup(descriptor)
    state.lock.write_text('{"pid": 999999999, "api_url": "http://first"}')
    with subprocess.Popen(["sleep", "0.3"], pass_fds=[inherited]):  # the guardian, which tidies up
        os.close(inherited)
        with lock.hold(state, "http://second"):
            assert lock.read_holder(state) == {"pid": os.getpid(), "api_url": "http://second"}


def test_clearing_keeps_the_secret_that_tokens_are_signed_with(state: StateDir) -> None:
    write_private(state.jwt_secret, "kept")
    write_private(state.info, "{}")
    state.log("old").write_text("old")
    state.clear()
    assert state.jwt_secret.read_text() == "kept"
    assert not state.info.exists()
    assert not state.log("old").exists()


def test_private_files_are_private(tmp_path: Path) -> None:
    write_private(tmp_path / "file", "text")
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"SANDPIPER_STATE_DIR": "/s", "XDG_STATE_HOME": "/x"}, Path("/s")),
        ({"XDG_STATE_HOME": "/x"}, Path("/x/sandpiper")),
        ({}, Path.home() / ".local" / "state" / "sandpiper"),
    ],
)
def test_the_state_directory_is_where_people_expect_it(environment: dict[str, str], expected: Path) -> None:
    assert default_state_dir(environment) == expected


def test_the_digest_follows_sources_and_not_caches(tmp_path: Path) -> None:
    (tmp_path / "template.yaml").write_text("a")
    code = tmp_path / "functions" / "api"
    code.mkdir(parents=True)
    (code / "handler.py").write_text("1")
    sources = ("template.yaml", "functions")
    before = source_digest(tmp_path, sources)
    (code / "__pycache__").mkdir()
    (code / "__pycache__" / "handler.pyc").write_text("compiled")
    assert source_digest(tmp_path, sources) == before
    (code / "handler.py").write_text("2")
    assert source_digest(tmp_path, sources) != before
