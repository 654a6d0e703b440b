"""Check suites: one per commit and App, and those that Actions makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandpiper_local.fake_github.state import LEVELS, CheckRun, CheckSuite, Job, WorkflowRun
from sandpiper_local.fake_github.views.checks import ACTIONS_ID, suite_view

if TYPE_CHECKING:
    from sandpiper_local.fake_github.hub import Hub
    from sandpiper_local.fake_github.state import Repository, User


def request_suite(hub: Hub, repository: Repository, sha: str, sender: User) -> None:
    """After every push GitHub opens a suite for an App that may write checks, and it stays open if nobody uses it."""
    installation = hub.installation_for(repository)
    if installation and LEVELS[installation.permissions.get("checks", "none")] >= LEVELS["write"]:
        view = suite_view(hub, repository, own_suite(hub, repository, sha))
        hub.webhooks.emit(hub, "check_suite", "requested", repository, sender, check_suite=view)


def own_suite(hub: Hub, repository: Repository, sha: str) -> CheckSuite:
    """Of our App on a commit: one, as on GitHub, made when it is first needed."""
    app_id = hub.app.id if hub.app else 0
    known = (one for one in repository.suites if (one.head_sha, one.app_id) == (sha, app_id))
    if found := next(known, None):
        return found
    suite = CheckSuite(hub.new_id(), sha, branch_of(repository, sha), app_id, hub.clock.now(), hub.clock.now())
    repository.suites.append(suite)
    return suite


def branch_of(repository: Repository, sha: str) -> str | None:
    names = (ref.removeprefix("refs/heads/") for ref, at in repository.git.refs().items() if at == sha)
    return next(names, None)


def run_ci(
    hub: Hub, repository: Repository, sha: str, jobs: list[dict[str, Any]], sender: User
) -> WorkflowRun:  # fmt: skip
    """A finished run of Actions on a commit: `jobs` with name, conclusion and log. The App is told of its suite."""
    now = hub.clock.now()
    suite = CheckSuite(hub.new_id(), sha, branch_of(repository, sha), ACTIONS_ID, now, now)
    run = WorkflowRun(hub.new_id(), len(repository.workflow_runs) + 1, "CI", suite, sender, now)
    repository.suites.append(suite)
    for job in jobs:
        number = hub.new_id()
        url = f"{hub.url}/{repository.full_name}/actions/runs/{run.id}/job/{number}"
        check = CheckRun(number, suite, job["name"], "completed", now, job["conclusion"], now, url)
        repository.check_runs.append(check)
        run.jobs.append(Job(number, check, job.get("log", "")))
    repository.workflow_runs.append(run)
    view = suite_view(hub, repository, suite)
    hub.webhooks.emit(hub, "check_suite", "completed", repository, sender, check_suite=view)
    return run
