"""Check runs and suites, commit statuses, and the runs, jobs and logs of Actions."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from sandpiper_local.fake_github.calls import Answer, Call, Page, Route, created
from sandpiper_local.fake_github.check_suites import own_suite
from sandpiper_local.fake_github.errors import Refusal, not_found
from sandpiper_local.fake_github.state import CheckRun, CommitStatus
from sandpiper_local.fake_github.views.checks import (
    check_run_view,
    job_view,
    status_view,
    suite_view,
    workflow_run_view,
)
from sandpiper_local.fake_github.views.common import repository_view

if TYPE_CHECKING:
    from sandpiper_local.fake_github.state import CheckSuite, Job, WorkflowRun

_STATUSES = frozenset({"queued", "in_progress", "completed", "waiting", "requested", "pending"})
_CONCLUSIONS = frozenset({
    "success", "failure", "neutral", "cancelled", "skipped", "timed_out", "action_required", "stale",
})  # fmt: skip
_STATES = frozenset({"error", "failure", "pending", "success"})


# ---- check runs


def create_check_run(call: Call) -> Answer:
    if call.actor.kind != "installation":
        raise Refusal(403, "You must authenticate via a GitHub App.")
    sha = call.repo.git.resolve(call.text("head_sha", resource="CheckRun"))
    if sha is None:
        raise Refusal(422, f"No commit found for SHA: {call.body['head_sha']}")
    suite = own_suite(call.hub, call.repo, sha)
    run = CheckRun(call.hub.new_id(), suite, call.text("name", resource="CheckRun"), "queued", call.hub.clock.now())
    call.repo.check_runs.append(run)
    _change(call, run)
    return created(check_run_view(call.hub, call.repo, run))


def update_check_run(call: Call) -> Any:
    run = _check_run(call)
    run.name = call.body.get("name", run.name)
    _change(call, run)
    return check_run_view(call.hub, call.repo, run)


def _change(call: Call, run: CheckRun) -> None:
    body, now = call.body, call.hub.clock.now()
    conclusion = body.get("conclusion")
    if conclusion not in {None, *_CONCLUSIONS} or body.get("status", "queued") not in _STATUSES:
        raise Refusal(422, "Invalid request.\n\nstatus or conclusion is not a member of the enumeration.")
    run.status = "completed" if conclusion else body.get("status", run.status)
    if conclusion:
        run.conclusion, run.completed_at = conclusion, _moment(body.get("completed_at")) or now
    run.details_url, run.external_id = (
        body.get("details_url", run.details_url),
        body.get("external_id", run.external_id),
    )
    output = body.get("output") or {}
    run.annotations += output.get("annotations", [])
    run.output |= {name: value for name, value in output.items() if name != "annotations"}


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def get_check_run(call: Call) -> Any:
    return check_run_view(call.hub, call.repo, _check_run(call))


def list_annotations(call: Call) -> Page:
    usual = {"start_column": None, "end_column": None, "title": None, "raw_details": None, "blob_href": call.hub.url}
    return Page([usual | annotation for annotation in _check_run(call).annotations])


def check_runs_of_ref(call: Call) -> Page:
    sha, name = _sha(call), call.query.get("check_name")
    chosen = [run for run in call.repo.check_runs if run.suite.head_sha == sha and name in {None, run.name}]
    return Page([check_run_view(call.hub, call.repo, run) for run in chosen], key="check_runs")


def _check_run(call: Call) -> CheckRun:
    wanted = call.number("check_run_id")
    if found := next((one for one in call.repo.check_runs if one.id == wanted), None):
        return found
    raise not_found()


# ---- check suites


def suites_of_ref(call: Call) -> Page:
    sha = _sha(call)
    suites = [suite for suite in call.repo.suites if suite.head_sha == sha]
    return Page([suite_view(call.hub, call.repo, suite) for suite in suites], key="check_suites")


def get_suite(call: Call) -> Any:
    return suite_view(call.hub, call.repo, _suite(call))


def check_runs_of_suite(call: Call) -> Page:
    suite = _suite(call)
    runs = [run for run in call.repo.check_runs if run.suite is suite]
    return Page([check_run_view(call.hub, call.repo, run) for run in runs], key="check_runs")


def _suite(call: Call) -> CheckSuite:
    wanted = call.number("check_suite_id")
    if found := next((one for one in call.repo.suites if one.id == wanted), None):
        return found
    raise not_found()


def _sha(call: Call) -> str:
    sha = call.repo.git.resolve(call.params.get("ref") or call.params["sha"])
    if sha is None:
        raise Refusal(422, f"No commit found for SHA: {call.params.get('ref') or call.params['sha']}")
    return sha


# ---- statuses


def create_status(call: Call) -> Answer:
    if call.body.get("state") not in _STATES:
        raise Refusal(422, "Validation Failed", errors=["state is not included in the list"])
    status = CommitStatus(
        call.hub.new_id(), _sha(call), call.actor.person, call.body["state"], call.body.get("context", "default"),
        call.body.get("description"), call.body.get("target_url"), call.hub.clock.now(),
    )  # fmt: skip
    call.repo.statuses.append(status)
    return created(status_view(call.hub, call.repo, status))


def list_statuses(call: Call) -> Page:
    sha = _sha(call)
    chosen = [status for status in reversed(call.repo.statuses) if status.sha == sha]
    return Page([status_view(call.hub, call.repo, status) for status in chosen])


def combined_status(call: Call) -> Any:
    sha = _sha(call)
    latest = {status.context: status for status in call.repo.statuses if status.sha == sha}
    states = {status.state for status in latest.values()}
    state = "failure" if states & {"error", "failure"} else "success" if states == {"success"} else "pending"
    url = f"{call.hub.api_url}/repos/{call.repo.full_name}/commits/{sha}"
    return {
        "state": state, "statuses": [status_view(call.hub, call.repo, status) for status in latest.values()],
        "sha": sha, "total_count": len(latest), "repository": repository_view(call.hub, call.repo),
        "commit_url": url, "url": f"{url}/status",
    }  # fmt: skip


# ---- Actions


def list_workflow_runs(call: Call) -> Page:
    sha, suite = call.query.get("head_sha"), call.query.get("check_suite_id")
    chosen = [
        run for run in reversed(call.repo.workflow_runs)
        if sha in {None, run.suite.head_sha} and suite in {None, str(run.suite.id)}
    ]  # fmt: skip
    return Page([workflow_run_view(call.hub, call.repo, run) for run in chosen], key="workflow_runs")


def get_workflow_run(call: Call) -> Any:
    return workflow_run_view(call.hub, call.repo, _workflow_run(call))


def list_jobs(call: Call) -> Page:
    run = _workflow_run(call)
    return Page([job_view(call.hub, call.repo, run, job) for job in run.jobs], key="jobs")


def get_job(call: Call) -> Any:
    run, job = _job(call)
    return job_view(call.hub, call.repo, run, job)


def get_log(call: Call) -> Answer:
    """Sent on to where it lies, which needs no token."""
    _, job = _job(call)
    return Answer(None, 302, {"Location": f"{call.hub.url}/_logs/{call.repo.id}/{job.id}"})


def _workflow_run(call: Call) -> WorkflowRun:
    wanted = call.number("run_id")
    if found := next((one for one in call.repo.workflow_runs if one.id == wanted), None):
        return found
    raise not_found()


def _job(call: Call) -> tuple[WorkflowRun, Job]:
    wanted = call.number("job_id")
    for run in call.repo.workflow_runs:
        for job in run.jobs:
            if job.id == wanted:
                return run, job
    raise not_found()


_REPO = "/repos/{owner}/{repo}"
_RUN = f"{_REPO}/check-runs/{{check_run_id}}"
_ACTIONS = f"{_REPO}/actions"
ROUTES = [
    Route("POST", f"{_REPO}/check-runs", create_check_run, "checks:write"),
    Route("GET", _RUN, get_check_run, "checks:read"),
    Route("PATCH", _RUN, update_check_run, "checks:write"),
    Route("GET", f"{_RUN}/annotations", list_annotations, "checks:read"),
    Route("GET", f"{_REPO}/commits/{{ref}}/check-runs", check_runs_of_ref, "checks:read"),
    Route("GET", f"{_REPO}/commits/{{ref}}/check-suites", suites_of_ref, "checks:read"),
    Route("GET", f"{_REPO}/check-suites/{{check_suite_id}}", get_suite, "checks:read"),
    Route("GET", f"{_REPO}/check-suites/{{check_suite_id}}/check-runs", check_runs_of_suite, "checks:read"),
    Route("POST", f"{_REPO}/statuses/{{sha}}", create_status, "statuses:write"),
    Route("GET", f"{_REPO}/commits/{{ref}}/status", combined_status, "statuses:read"),
    Route("GET", f"{_REPO}/commits/{{ref}}/statuses", list_statuses, "statuses:read"),
    Route("GET", f"{_ACTIONS}/runs", list_workflow_runs, "actions:read"),
    Route("GET", f"{_ACTIONS}/runs/{{run_id}}", get_workflow_run, "actions:read"),
    Route("GET", f"{_ACTIONS}/runs/{{run_id}}/jobs", list_jobs, "actions:read"),
    Route("GET", f"{_ACTIONS}/jobs/{{job_id}}", get_job, "actions:read"),
    Route("GET", f"{_ACTIONS}/jobs/{{job_id}}/logs", get_log, "actions:read"),
]
