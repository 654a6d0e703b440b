"""`sandpiper demo`: a stack of its own, the sample task from start to end, and a look at what came of it."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandpiper_cli.follow import follow
from sandpiper_cli.narrate import Line
from sandpiper_cli.render import ConsoleView, show, terminal_console
from sandpiper_cli.session import Connection
from sandpiper_cli.text import byte_size
from sandpiper_local.errors import LocalError
from sandpiper_local.sample_repository import SampleTask, create_sample_repository, git, sample_task
from sandpiper_local.stack import UpOptions, background

if TYPE_CHECKING:
    from rich.console import Console

    from sandpiper_cli.client import Api, Json


class DemoFailed(LocalError):
    """Something is not as it should be at the end."""


def run_demo() -> None:
    """Leaves nothing behind, unless it failed: then its logs are worth a look."""
    directory = Path(tempfile.mkdtemp(prefix="sandpiper-demo-"))
    try:
        Demo(directory, terminal_console()).run()
    except LocalError as error:
        raise DemoFailed(f"{error}\nWhat the demo left is in {directory} (logs: state/logs, state/tasks)") from error
    except BaseException:
        shutil.rmtree(directory)
        raise
    shutil.rmtree(directory)


class Demo:
    def __init__(self, directory: Path, console: Console) -> None:
        self._directory = directory
        self._console = console
        self._task = sample_task()

    def run(self) -> None:
        self._title("Starting an AWS on this machine")
        repository = create_sample_repository(self._directory / "tillroll")
        options = UpOptions(port=0, state_dir=self._directory / "state", environment=dict(os.environ))
        with background(options, self._progress) as info:
            is_scripted = info["model"] == "scripted"
            self._introduce(repository, is_scripted=is_scripted)
            with Connection(state_dir=options.state_dir).api() as api:
                run = self._play(api, repository)
                check_outcome(run, repository, self._task)
                self._show_branch(repository)
                self._fetch_log(api, run["run_id"])
            if is_scripted:  # what a real model wrote runs behind the wall only, where the gate has run it
                check_tests(repository, self._task.branch, self._directory / "checkout")
                self._say("good", "The tests pass on the branch, the one that failed included.")
        self._close()

    def _play(self, api: Api, repository: Path) -> Json:
        body = {**self._task._asdict(), "repo": str(repository)}
        started = api.start(body, headers={})
        return follow(api, started["run_id"], ConsoleView(self._console))

    def _introduce(self, repository: Path, *, is_scripted: bool) -> None:
        self._title("The task")
        self._say("plain", f"Repository: {repository}, where one test fails")
        self._say("words", self._task.task)
        if is_scripted:
            self._say("warn", "No ANTHROPIC_API_KEY is set: the scripted model plays this task. All else is real.")
        else:
            self._say("plain", "ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL is set: that model does it.")
        self._title("The run, live")

    def _show_branch(self, repository: Path) -> None:
        self._title("What is in the repository now")
        for line in git(repository, "log", "--oneline", "--stat", f"main..{self._task.branch}").splitlines():
            self._say("plain", line)

    def _fetch_log(self, api: Api, run_id: str) -> None:
        whole = api.logs(run_id).whole
        size = api.download(whole, io.BytesIO()) if whole else 0
        if size == 0:
            raise DemoFailed("there is no log behind the presigned URL")
        self._say("good", f"The presigned URL gives the whole log: {byte_size(size)}.")

    def _close(self) -> None:
        self._title("Done; everything is stopped again")
        self._say("plain", "Next: `sandpiper up` in one terminal, and in another:")
        self._say("command", '  sandpiper run --repo ./my-project "Fix the failing test"')

    def _progress(self, message: dict[str, Any]) -> None:
        if message["event"] == "progress":
            self._say("dim", f"  {message['message']}")

    def _title(self, text: str) -> None:
        self._say("title", f"\n{text}")

    def _say(self, style: str, text: str) -> None:
        show(self._console, [Line(style, text)])


def check_outcome(run: Json, repository: Path, task: SampleTask) -> None:
    result = run.get("result") or {}
    if run["status"] != "completed":
        raise DemoFailed(f"the run is {run['status']}, not completed")
    if (result.get("gate") or {}).get("status") != "passed":
        raise DemoFailed("the quality gate did not pass")
    if not git(repository, "branch", "--list", task.branch).strip():
        raise DemoFailed(f"the branch {task.branch} did not arrive in {repository}")


def check_tests(repository: Path, branch: str, checkout: Path) -> None:
    git(repository, "worktree", "add", "--quiet", "--detach", str(checkout), branch)
    done = subprocess.run(
        [sys.executable, "-m", "unittest", "-q"], cwd=checkout, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise DemoFailed(f"the tests fail on the branch:\n{done.stderr}")
