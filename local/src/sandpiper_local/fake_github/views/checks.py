"""Check suites, check runs, statuses, and the runs and jobs of Actions, as GitHub shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandpiper_local.fake_github.git_store import ZERO
from sandpiper_local.fake_github.state import App
from sandpiper_local.fake_github.views.common import (
    app_view,
    node_id,
    repository_view,
    time_of,
    time_or_none,
    user_view,
)
from sandpiper_local.fake_github.views.git import simple_commit_view

if TYPE_CHECKING:
    from sandpiper_local.fake_github.hub import Hub
    from sandpiper_local.fake_github.state import CheckRun, CheckSuite, CommitStatus, Job, Repository, WorkflowRun
    from sandpiper_local.fake_github.views.common import Json

ACTIONS_ID = 15368  # GitHub's own number of Actions
_BAD = ("failure", "timed_out", "cancelled", "action_required", "startup_failure")


def suite_state(repository: Repository, suite: CheckSuite) -> tuple[str, str | None]:
    """(status, conclusion): done when all its runs are, and as good as the worst of them."""
    runs = [run for run in repository.check_runs if run.suite is suite]
    if not runs or any(run.status != "completed" for run in runs):
        return ("in_progress" if runs else "queued"), None
    conclusions = {run.conclusion for run in runs}
    return "completed", next((bad for bad in _BAD if bad in conclusions), "success")


def pulls_with_head(hub: Hub, repository: Repository, sha: str) -> list[Json]:
    """As checks name them. Those from forks are left out, as GitHub does."""
    own = [issue for issue in repository.pulls if issue.pull and issue.pull.head_repo is repository]
    url = f"{hub.api_url}/repos/{repository.full_name}"
    short = {"id": repository.id, "url": url, "name": repository.name}
    return [
        {"id": issue.id, "number": issue.number, "url": f"{url}/pulls/{issue.number}",
         "head": {"ref": issue.pull.head_ref, "sha": issue.pull.head_sha, "repo": short},
         "base": {"ref": issue.pull.base_ref, "sha": issue.pull.base_sha, "repo": short}}
        for issue in own if issue.pull and issue.pull.head_sha == sha and issue.state == "open"
    ]  # fmt: skip


def _app(hub: Hub, suite: CheckSuite) -> Json | None:
    if suite.app_id != ACTIONS_ID:
        return app_view(hub, hub.app) if hub.app else None
    owner, since = hub.user("github", "Organization"), hub.clock.now()
    actions = App(ACTIONS_ID, "github-actions", "GitHub Actions", owner, owner, "", since, {"checks": "write"})
    return app_view(hub, actions)


def suite_view(hub: Hub, repository: Repository, suite: CheckSuite) -> Json:
    url = f"{hub.api_url}/repos/{repository.full_name}/check-suites/{suite.id}"
    status, conclusion = suite_state(repository, suite)
    parents = repository.git.read_commit(suite.head_sha).parents
    return {
        "id": suite.id, "node_id": node_id("CS", suite.id), "head_branch": suite.head_branch,
        "head_sha": suite.head_sha,
        "status": status, "conclusion": conclusion, "url": url, "before": parents[0] if parents else ZERO,
        "after": suite.head_sha, "pull_requests": pulls_with_head(hub, repository, suite.head_sha),
        "app": _app(hub, suite), "created_at": time_of(suite.created_at),
        "updated_at": time_of(suite.updated_at), "rerequestable": True, "runs_rerequestable": True,
        "latest_check_runs_count": sum(run.suite is suite for run in repository.check_runs),
        "check_runs_url": f"{url}/check-runs", "head_commit": simple_commit_view(repository, suite.head_sha),
        "repository": repository_view(hub, repository),
    }  # fmt: skip


def check_run_view(hub: Hub, repository: Repository, run: CheckRun) -> Json:
    url = f"{hub.api_url}/repos/{repository.full_name}/check-runs/{run.id}"
    output = {name: run.output.get(name) for name in ("title", "summary", "text")}
    return {
        "id": run.id, "node_id": node_id("CR", run.id), "head_sha": run.suite.head_sha,
        "external_id": run.external_id or "",
        "url": url, "html_url": f"{hub.url}/{repository.full_name}/runs/{run.id}",
        "details_url": run.details_url or hub.url,
        "status": run.status, "conclusion": run.conclusion, "started_at": time_or_none(run.started_at),
        "completed_at": time_or_none(run.completed_at), "name": run.name, "check_suite": {"id": run.suite.id},
        "output": output | {"annotations_count": len(run.annotations), "annotations_url": f"{url}/annotations"},
        "app": _app(hub, run.suite),
        "pull_requests": pulls_with_head(hub, repository, run.suite.head_sha),
    }  # fmt: skip


def status_view(hub: Hub, repository: Repository, status: CommitStatus) -> Json:
    since = time_of(status.created_at)
    return {
        "id": status.id, "node_id": node_id("SC", status.id), "state": status.state, "context": status.context,
        "description": status.description, "target_url": status.target_url, "created_at": since, "updated_at": since,
        "url": f"{hub.api_url}/repos/{repository.full_name}/statuses/{status.sha}",
        "avatar_url": f"{hub.url}/avatars/{status.creator.id}", "creator": user_view(hub, status.creator),
    }  # fmt: skip


def workflow_run_view(hub: Hub, repository: Repository, run: WorkflowRun) -> Json:
    base = f"{hub.api_url}/repos/{repository.full_name}"
    url, since = f"{base}/actions/runs/{run.id}", time_of(run.created_at)
    status, conclusion = suite_state(repository, run.suite)
    return {
        "id": run.id, "node_id": node_id("WFR", run.id), "name": run.name, "display_title": run.name,
        "check_suite_id": run.suite.id, "check_suite_node_id": node_id("CS", run.suite.id), "event": "push",
        "head_branch": run.suite.head_branch, "head_sha": run.suite.head_sha, "path": ".github/workflows/ci.yml",
        "run_number": run.number, "run_attempt": 1, "status": status, "conclusion": conclusion, "workflow_id": 1,
        "url": url, "html_url": f"{hub.url}/{repository.full_name}/actions/runs/{run.id}", "created_at": since,
        "updated_at": since, "run_started_at": since, "jobs_url": f"{url}/jobs", "logs_url": f"{url}/logs",
        "check_suite_url": f"{base}/check-suites/{run.suite.id}", "artifacts_url": f"{url}/artifacts",
        "cancel_url": f"{url}/cancel", "rerun_url": f"{url}/rerun", "workflow_url": f"{base}/actions/workflows/1",
        "pull_requests": pulls_with_head(hub, repository, run.suite.head_sha), "actor": user_view(hub, run.actor),
        "head_commit": simple_commit_view(repository, run.suite.head_sha),
        "repository": repository_view(hub, repository), "head_repository": repository_view(hub, repository),
    }  # fmt: skip


def job_view(hub: Hub, repository: Repository, run: WorkflowRun, job: Job) -> Json:
    base, check = f"{hub.api_url}/repos/{repository.full_name}", job.check_run
    started = time_of(check.started_at or run.created_at)
    return {
        "id": job.id, "node_id": node_id("J", job.id), "run_id": run.id, "run_url": f"{base}/actions/runs/{run.id}",
        "run_attempt": 1, "workflow_name": run.name, "head_branch": run.suite.head_branch,
        "head_sha": run.suite.head_sha,
        "url": f"{base}/actions/jobs/{job.id}",
        "html_url": f"{hub.url}/{repository.full_name}/actions/runs/{run.id}/job/{job.id}",
        "status": check.status, "conclusion": check.conclusion, "created_at": started, "started_at": started,
        "completed_at": time_or_none(check.completed_at), "name": check.name, "labels": ["ubuntu-latest"],
        "check_run_url": f"{base}/check-runs/{check.id}", "runner_id": 1, "runner_name": "fake", "runner_group_id": 1,
        "runner_group_name": "fake",
        "steps": [{"name": "Run", "number": 1, "status": check.status, "conclusion": check.conclusion,
                   "started_at": started, "completed_at": time_or_none(check.completed_at)}],
    }  # fmt: skip
