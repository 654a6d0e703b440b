"""`sandpiper demo`, as somebody sees it who has just cloned the project and has no key."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

from tests.e2e.command_line import SANDPIPER, bare_environment, call
from tests.e2e.support import wait_for
from tests.e2e.traces import with_any_of

if TYPE_CHECKING:
    from pathlib import Path

ON_THE_SCREEN = [
    "An issue on GitHub: Discounts lose a cent", "the scripted model plays this task",
    "ann comments on it", "/implement", "/acme/tillroll/issues/1#issuecomment-",
    "Queued", "Sandbox is up",  # status
    "Plan: Compute the discount once", "☐ Read the basket and its tests",
    "$ python3 -m unittest -q", "AssertionError: 900 != 899", "exit 1", "exit 0",  # commands with output
    "Quality gate", "✔ python3 -m unittest -q", "Gate passed",
    "+        discount = (total * discount_percent + 50) // 100",  # the diff
    "Pushed to branch sandpiper/", "Branch  sandpiper/", " completed",
    "The pull request: #2 feat: Discounts lose a cent", "/acme/tillroll/pull/2", "Closes #1",
    "Sandpiper `/implement`: ✅ done", "**Quality gate**: ✅", "Pull request: #2",  # the status comment
    "The tests pass on the branch",
    "The presigned URL gives the whole log",
    "sandpiper up --github fake",  # what to try next
]  # fmt: skip


def test_the_demo_shows_a_run_from_start_to_end(tmp_path: Path) -> None:
    done = call("demo", environment=bare_environment(TMPDIR=str(tmp_path)))
    assert (done.returncode, done.stderr) == (0, "")
    assert [words for words in ON_THE_SCREEN if words not in done.stdout] == []
    assert re.search(r"http://127\.0\.0\.1:\d+/\S+log\.txt\?\S*Signature=", done.stdout)
    assert "\x1b" not in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_killed_demo_leaves_no_process_behind(tmp_path: Path) -> None:
    environment = bare_environment(TMPDIR=str(tmp_path), PYTHONUNBUFFERED="1")
    with subprocess.Popen([SANDPIPER, "demo"], env=environment, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        assert any("Sandbox is up" in line for line in demo.stdout)
        assert len(with_any_of([str(tmp_path)])) > 3
        demo.kill()
        wait_for(lambda: None if with_any_of([str(tmp_path)]) else True)
