"""`sandpiper demo`: a stack and a GitHub of its own, a comment on an issue there, and a look at what came of it."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandpiper.logic.github.deliveries import owner_of
from sandpiper.logic.github.status_comment import marker
from sandpiper_cli.failures import ApiError
from sandpiper_cli.follow import follow
from sandpiper_cli.narrate import Line
from sandpiper_cli.render import ConsoleView
from sandpiper_cli.screen import print_lines, terminal_console
from sandpiper_cli.session import Connection, mint
from sandpiper_cli.text import byte_size
from sandpiper_local.errors import LocalError
from sandpiper_local.fake_github.client import GitHubAdmin
from sandpiper_local.fake_github.sample import REPOSITORY, WRITER
from sandpiper_local.paths import StateDir
from sandpiper_local.sample_repository import git
from sandpiper_local.stack import UpOptions, background

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from sandpiper_cli.client import Api, Json

COMMENT = "/implement"
_WAIT_SECONDS = 30


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

    def run(self) -> None:
        self._title("Starting an AWS and a GitHub on this machine")
        state_dir = self._directory / "state"
        options = UpOptions(port=0, state_dir=state_dir, environment=dict(os.environ), github="fake")
        with background(options, self._progress) as info, closing(GitHubAdmin(info["github_url"])) as github:
            connection = Connection(state_dir=state_dir, token=mint(StateDir(state_dir), user=owner_of(WRITER)))
            with connection.api() as api:
                self._play(api, github, is_scripted=info["model"] == "scripted")
        self._close()

    def _play(self, api: Api, github: GitHubAdmin, *, is_scripted: bool) -> None:
        run_id = self._ask(github, is_scripted=is_scripted)
        wait_for(lambda: _is_there(api, run_id), "the comment started no run")
        run = follow(api, run_id, ConsoleView(self._console))
        check_outcome(run)
        self._show_pull_request(github, run["result"]["pull_request"]["number"])
        self._show_status(github, run_id)
        checkout = clone(
            f"{github.url}/{REPOSITORY}.git", run["result"]["commit"]["branch"], self._directory / "checkout"
        )
        self._show_branch(checkout)
        self._fetch_log(api, run_id)
        if is_scripted:  # what a real model wrote runs behind the wall only, where the gate has run it
            check_tests(checkout)
            self._say("good", "The tests pass on the branch, the one that failed included.")

    def _ask(self, github: GitHubAdmin, *, is_scripted: bool) -> str:
        """The run that the comment starts."""
        issue = github.call("GET", f"/repos/{REPOSITORY}/issues/1", by=WRITER)
        self._title(f"An issue on GitHub: {issue['title']}")
        self._say("words", issue["body"])
        if is_scripted:
            self._say("warn", "No ANTHROPIC_API_KEY is set: the scripted model plays this task. All else is real.")
        else:
            self._say("plain", "ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL is set: that model does it.")
        comment = github.comment(REPOSITORY, issue["number"], COMMENT, by=WRITER)
        self._title(f"{WRITER} comments on it")
        self._say("command", f"  {COMMENT}")
        self._say("dim", f"  {comment['html_url']}")
        self._title("The run, live")
        return wait_for(lambda: _started_by(github, comment["id"]), "GitHub was not answered")

    def _show_pull_request(self, github: GitHubAdmin, number: int) -> None:
        pull = github.call("GET", f"/repos/{REPOSITORY}/pulls/{number}", by=WRITER)
        self._title(f"The pull request: #{number} {pull['title']}")
        self._say("dim", pull["html_url"])
        self._say("words", without_marks(pull["body"]))

    def _show_status(self, github: GitHubAdmin, run_id: str) -> None:
        """The last word comes when the run is over."""

        def look() -> str | None:
            comments = github.call("GET", f"/repos/{REPOSITORY}/issues/1/comments", by=WRITER)
            bodies = (str(comment["body"]) for comment in comments)
            return next((body for body in bodies if marker(run_id) in body and "✅ done" in body), None)

        body = wait_for(look, "the status comment does not say that the run is done")
        self._title("The status comment on the issue")
        self._say("words", without_marks(body.partition("<details>")[0]))

    def _show_branch(self, checkout: Path) -> None:
        self._title("What is on the branch")
        for line in git(checkout, "log", "--oneline", "--stat", "origin/main..HEAD").splitlines():
            self._say("plain", line)

    def _fetch_log(self, api: Api, run_id: str) -> None:
        whole = api.logs(run_id).whole
        size = api.download(whole, io.BytesIO()) if whole else 0
        if size == 0:
            raise DemoFailed("there is no log behind the presigned URL")
        self._say("good", f"The presigned URL gives the whole log: {byte_size(size)}.")

    def _close(self) -> None:
        self._title("Done; everything is stopped again")
        self._say("plain", "Next: `sandpiper up --github fake` in one terminal, and in another:")
        self._say("command", f'  sandpiper comment "{REPOSITORY}#1" "{COMMENT}"')
        self._say("command", '  sandpiper run --repo ./my-project "Fix the failing test"')

    def _progress(self, message: dict[str, Any]) -> None:
        if message["event"] == "progress":
            self._say("dim", f"  {message['message']}")

    def _title(self, text: str) -> None:
        self._say("title", f"\n{text}")

    def _say(self, style: str, text: str) -> None:
        print_lines(self._console, [Line(style, text)])


def wait_for[T](look: Callable[[], T | None], complaint: str) -> T:
    deadline = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.05)
    raise DemoFailed(complaint)


def _started_by(github: GitHubAdmin, comment_id: int) -> str | None:
    """GitHub keeps what its webhooks were answered: for a command, the run."""
    for delivery in github.deliveries:
        if delivery["response"] and json.loads(delivery["body"]).get("comment", {}).get("id") == comment_id:
            return str(json.loads(delivery["response"])["run_id"])
    return None


def _is_there(api: Api, run_id: str) -> bool:
    try:
        return bool(api.run(run_id))
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return False


def without_marks(text: str) -> str:
    """As GitHub's pages show it."""
    return re.sub(r"<!--.*?-->|</?sub>", "", text, flags=re.DOTALL).strip()


def check_outcome(run: Json) -> None:
    result = run.get("result") or {}
    if run["status"] != "completed":
        raise DemoFailed(f"the run is {run['status']}, not completed")
    if (result.get("gate") or {}).get("status") != "passed":
        raise DemoFailed("the quality gate did not pass")
    if not result.get("pull_request"):
        raise DemoFailed("there is no pull request")


def clone(url: str, branch: str, directory: Path) -> Path:
    git(directory.parent, "clone", "--quiet", "--branch", branch, url, str(directory))
    return directory


def check_tests(checkout: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "unittest", "-q"], cwd=checkout, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise DemoFailed(f"the tests fail on the branch:\n{done.stderr}")
