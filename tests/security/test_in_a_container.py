"""The same attacks where the supervisor itself has only a container's rights, and `uid` is all that can be put up."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Of each: how many attacks there are at least. Two halves, which can be tried side by side
SUITES = {
    "what B could reach": (
        100,
        (
            *("security/test_identity.py", "security/test_files.py", "security/test_system_calls.py"),
            "security/test_network.py::test_nothing_of_the_machine_answers",
        ),
    ),
    "what A does with what B left": (
        35,
        (
            *("security/test_resources.py", "security/test_output.py", "unit/sandbox/egress/test_from_inside.py"),
            "security/test_git.py::test_no_trap_is_sprung_when_all_are_laid_at_once",
            "security/test_git.py::test_nothing_of_the_work_can_be_hidden_from_the_diff",
            "security/test_repository_options.py::test_options_that_the_work_writes_count_for_nothing",
            "unit/sandbox/test_wall_processes.py::test_a_timeout_leaves_nothing_alive_not_even_a_daemon",
            "unit/sandbox/test_terminal.py::test_ctrl_c_reaches_the_program_in_front_and_not_the_shell_behind_it",
        ),
    ),
}
# Without a wall they are tried by those suites themselves, and namespaces are refused in here. A disk fills up in
# the same way everywhere.
BEHIND_THE_WALL = "uid and not bwrap and not without and not fills_the_disk"


def contained(*command: str) -> subprocess.CompletedProcess[str]:
    if os.geteuid() != 0 or not _may_install_filters():
        pytest.skip("only root, with the right to install a filter for privileged programs, can play a container")
    return subprocess.run(
        [sys.executable, "-m", "tests.security.container", *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )


def _may_install_filters() -> bool:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    effective = re.search(r"CapEff:\s*(\w+)", status)
    return bool(effective and int(effective[1], 16) & 1 << 21)  # CAP_SYS_ADMIN


def test_namespaces_are_refused_in_there() -> None:
    tried = contained("sh", "-c", "unshare --user true; echo $?; unshare --mount true; echo $?; true; echo $?")
    assert tried.stdout.split() == ["1", "1", "0"]


@pytest.mark.parametrize("suite", SUITES)
def test_the_attacks_fail_with_a_container_s_rights(suite: str) -> None:
    at_least, files = SUITES[suite]
    options = ("-q", "-n", "0", "-p", "no:randomly", "-p", "no:cacheprovider", "-k", BEHIND_THE_WALL)
    done = contained(sys.executable, "-m", "pytest", *options, *(f"tests/{file}" for file in files))
    assert done.returncode == 0, done.stdout[-5000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed, done.stdout
    assert int(passed[1]) >= at_least


def test_the_best_wall_that_works_there_is_the_one_by_user_id() -> None:
    """Nobody asks for it by name: `bwrap` is tried first and can't be put up."""
    code = """
import pathlib, sys, tempfile
from sandbox_task.isolation.choose import put_up_wall
from sandbox_task.isolation.launch import open_rooms
with tempfile.TemporaryDirectory(prefix="sandpiper-attack-") as place:
    pathlib.Path(place).chmod(0o711)
    wall = put_up_wall(None, open_rooms(pathlib.Path(place, "rooms"), 10002), tools=None, worker_uid=10002)
    print(wall.backend, "seccomp" in wall.walls)
    wall.close()
"""
    done = contained(sys.executable, "-c", code)
    assert done.stdout == "uid True\n", done.stderr
