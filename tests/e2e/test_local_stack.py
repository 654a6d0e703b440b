"""The AWS on your own machine, as seen from outside: what it serves, refuses, and leaves behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import websockets

from sandpiper_local.processes import descendants
from sandpiper_local.stack import UpOptions, background, down, status
from tests.e2e.conftest import JWT_SECRET, Stack
from tests.e2e.traces import traces_of, with_any_of
from tests.proc import is_alive, said

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OUTPUTS = {
    "ApiUrl", "WebSocketUrl", "RunsTable", "EventsTable", "ConnectionsTable", "IdempotencyTable", "ArtifactsBucket",
    "StateMachineArn", "ClusterArn", "TaskDefinitionArn", "JwtSecretArn", "ModelKeySecretArn", "HttpApiId",
    "WebSocketApiId", "TaskStoppedFunctionArn", "ReconcileFunctionArn",
}  # fmt: skip


def wait_for[T](look: Callable[[], T | None], seconds: float = 30) -> T:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (found := look()) is not None:
            return found
        time.sleep(0.05)
    pytest.fail(f"nothing within {seconds} s")


def make_repository(path: Path) -> Path:
    path.mkdir()
    (path / "a.txt").write_text("one\n")
    git("init", "-q", "-b", "main", at=path)
    git("add", "-A", at=path)
    git("-c", "user.name=T", "-c", "user.email=t@example.com", "commit", "-qm", "one", at=path)
    return path


def git(*words: str, at: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_TERMINAL_PROMPT": "0"}
    return subprocess.run(["git", *words], cwd=at, env=environment, check=check, capture_output=True, text=True)


# ---- what is written down


def test_local_json_says_where_everything_is_and_only_its_owner_may_read_it(stack: Stack) -> None:
    file = stack.state_dir / "local.json"
    info = json.loads(file.read_text())
    assert info.keys() >= {"api_url", "ws_url", "aws_endpoint", "region", "stack_name", "outputs", "pids", "model"}
    assert info["outputs"].keys() >= OUTPUTS
    assert info["pids"].keys() >= {"aws", "ecs_agent", "front_door"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE((stack.state_dir / "jwt_secret").stat().st_mode) == 0o600
    assert status(stack.state_dir) == info


def test_everything_listens_on_loopback_only(stack: Stack) -> None:
    ours = {str(pid) for pid in descendants(stack.info["pids"]["guardian"])}
    listening = subprocess.run(["ss", "-Hltnp"], check=True, capture_output=True, text=True).stdout.splitlines()
    addresses = {line.split()[3] for line in listening if any(f"pid={pid}," in line for pid in ours)}
    assert len(addresses) >= 2
    assert all(address.startswith("127.0.0.1:") for address in addresses)


# ---- HTTP


def test_health_is_answered_by_our_function(stack: Stack) -> None:
    answer = httpx.get(f"{stack.api_url}/health", timeout=40)
    assert answer.status_code == 200
    assert answer.json()["service"] == "sandpiper"


@pytest.mark.parametrize(
    ("path", "headers", "expected"),
    [
        ("/runs", {}, (401, "authentication_error")),
        ("/runs", {"Authorization": "Bearer rubbish"}, (403, "permission_error")),
        ("/no/such/route", {}, (404, "not_found")),
    ],
)
def test_what_the_gateway_refuses_has_the_one_error_shape(
    stack: Stack, path: str, headers: dict[str, str], expected: tuple[int, str]
) -> None:
    answer = httpx.get(stack.api_url + path, headers=headers, timeout=40)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == expected
    assert answer.json()["success"] is False
    assert error["message"]
    assert error["request_id"]


def test_a_request_over_ten_megabytes_is_refused(stack: Stack) -> None:
    with stack.client() as client:
        answer = client.post("/execute", content=b"x" * (10 * 1024 * 1024 + 1))
    assert answer.status_code == 413
    assert answer.json()["error"]["type"] == "validation_error"


def test_a_chunked_request_over_ten_megabytes_is_refused(stack: Stack) -> None:
    with stack.client() as client:
        answer = client.post("/execute", content=(b"x" * 1024 * 1024 for _ in range(11)))
    assert answer.status_code == 413


def test_query_strings_reach_the_function_as_they_were_written(stack: Stack) -> None:
    with stack.client() as client:
        answer = client.get("/runs?cursor=not%20a%2Fcursor")
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "validation_error"


def test_unsigned_requests_to_the_embedded_aws_are_refused(stack: Stack) -> None:
    answer = httpx.post(
        stack.info["aws_endpoint"],
        headers={"X-Amz-Target": "DynamoDB_20120810.ListTables", "Content-Type": "application/x-amz-json-1.0"},
        content="{}",
    )
    assert answer.status_code in {400, 403}
    assert "TableNames" not in answer.text


# ---- repositories of this machine


@pytest.mark.parametrize("wrap", [lambda repo: {"repo": repo}, lambda repo: {"params": {"repo": repo}}])
def test_a_path_that_is_no_repository_is_refused_by_field(
    stack: Stack, tmp_path: Path, wrap: Callable[[str], dict[str, Any]]
) -> None:
    body = wrap(str(tmp_path))
    with stack.client() as client:
        answer = client.post("/execute", json=body)
    assert answer.status_code == 422
    assert answer.json()["error"]["details"][0]["field"] == ("repo" if "repo" in body else "params.repo")


def test_a_stranger_does_not_learn_which_paths_exist(stack: Stack, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "there")
    answers = [
        httpx.post(f"{stack.api_url}/execute", json={"repo": repo, "task": "x"}, timeout=40)
        for repo in (str(repository), "/not/there")
    ]
    assert [answer.status_code for answer in answers] == [401, 401]


def test_a_share_opens_for_its_own_token_only(stack: Stack, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "my project")
    with stack.client("share") as client:
        started = client.post(
            "/execute",
            json={"repo": str(repository), "task": "share my project"},
            headers={"X-GitHub-Token": "brought-along-token"},
        )
        assert started.status_code == 202, started.text
        run = client.get(f"/runs/{started.json()['run_id']}").json()["run"]
        client.post(f"/runs/{run['run_id']}/cancel")
    url = run["repo"]
    assert url.startswith(f"{stack.api_url}/git/")
    assert url.endswith("/my-project.git")

    mine = url.replace("://", "://x-access-token:brought-along-token@")
    wrong = url.replace("://", "://x-access-token:another@")
    assert git("ls-remote", url, at=tmp_path, check=False).returncode != 0
    assert git("ls-remote", wrong, at=tmp_path, check=False).returncode != 0
    git("clone", "-q", mine, "clone", at=tmp_path)
    clone = tmp_path / "clone"
    (clone / "big").write_bytes(os.urandom(3_000_000))
    git("add", "-A", at=clone)
    git("-c", "user.name=T", "-c", "user.email=t@example.com", "commit", "-qm", "two", at=clone)
    git("push", "-q", "origin", "HEAD:refs/heads/work", at=clone)
    assert git("log", "--format=%s", "work", at=repository).stdout.split() == ["two", "one"]
    refused = git("push", "origin", "HEAD:main", at=clone, check=False)
    assert "checked out" in refused.stderr
    assert git("status", "--porcelain", at=repository).stdout == ""


def test_the_work_on_a_local_repository_arrives_as_a_branch_in_it(stack: Stack, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "project")
    task = "Write the word two into b.txt"
    stack.model.add(
        {
            "name": "write-two",
            "match": {"words": [task]},
            "replies": [
                {"tools": [{"name": "update_plan", "input": {"summary": "write", "steps": ["write b.txt"]}}]},
                {"tools": [{"name": "write_file", "input": {"path": "b.txt", "content": "two\n"}}]},
                {"tools": [{"name": "finish", "input": {"status": "done", "summary": "written"}}]},
            ],
        }
    )
    with stack.client("local") as client:
        run_id = client.post("/execute", json={"repo": str(repository), "task": task}).json()["run_id"]
        run = wait_for(lambda: finished(client, run_id), seconds=90)
    assert run["status"] == "completed", run["error"]
    branch = run["result"]["commit"]["branch"]
    assert git("show", f"{branch}:b.txt", at=repository).stdout == "two\n"
    assert git("status", "--porcelain", at=repository).stdout == ""


def finished(client: httpx.Client, run_id: str) -> dict[str, Any] | None:
    run: dict[str, Any] = client.get(f"/runs/{run_id}").json()["run"]
    return run if run["ended_at"] else None


def test_only_the_three_addresses_of_smart_http_exist(stack: Stack) -> None:
    answer = httpx.get(f"{stack.api_url}/git/0123456789abcdef/x.git/config", timeout=40)
    assert answer.status_code == 404
    answer = httpx.get(f"{stack.api_url}/git/0123456789abcdef/x.git/info/refs", timeout=40)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Basic ")


# ---- socket


def test_a_socket_opens_with_a_ticket_once(stack: Stack) -> None:
    with stack.client() as client:
        ticket = client.post("/tickets").json()
    url = f"{ticket['websocket_url']}?ticket={ticket['ticket']}"

    async def ping() -> dict[str, Any]:
        async with websockets.connect(url, open_timeout=40) as socket:
            await socket.send(json.dumps({"action": "ping"}))
            answer: dict[str, Any] = json.loads(await asyncio.wait_for(socket.recv(), 40))
            return answer

    assert ticket["websocket_url"] == stack.ws_url
    assert asyncio.run(ping()) == {"type": "pong"}
    with pytest.raises(websockets.InvalidStatus) as refused:
        asyncio.run(ping())
    assert refused.value.response.status_code in {401, 403}
    assert json.loads(refused.value.response.body or b"")["success"] is False


def test_the_socket_address_says_what_it_is_to_a_plain_request(stack: Stack) -> None:
    answer = httpx.get(stack.ws_url.replace("ws://", "http://"), timeout=40)
    assert answer.status_code == 400
    assert "WebSocket" in answer.json()["error"]["message"]


# ---- tasks


def test_a_task_gets_its_own_environment_and_its_end_reaches_the_function(stack: Stack) -> None:
    """With a run that does not exist the sandbox ends at once; what matters here is what is around it."""
    ecs = stack.aws("ecs")
    environment = [{"name": "RUN_ID", "value": "run-nobody"}, {"name": "ATTEMPT", "value": "1"}]
    started = ecs.run_task(
        cluster=stack.outputs["ClusterArn"],
        taskDefinition=stack.outputs["TaskDefinitionArn"],
        startedBy="run-nobody",
        overrides={
            "containerOverrides": [
                {"name": "sandbox", "environment": [*environment, {"name": "TASK_TOKEN", "value": "no-token"}]}
            ]
        },
    )["tasks"][0]["taskArn"]

    def stopped() -> dict[str, Any] | None:
        task = ecs.describe_tasks(cluster=stack.outputs["ClusterArn"], tasks=[started])["tasks"][0]
        return dict(task) if task["lastStatus"] == "STOPPED" else None

    assert wait_for(stopped)["stoppedReason"] == "Essential container in task exited"
    assert (stack.state_dir / "tasks" / f"{started.rpartition('/')[2]}.log").exists()
    wait_for(lambda: _said_by_task_stopped(stack, started))


def _said_by_task_stopped(stack: Stack, task_arn: str) -> bool | None:
    logs = stack.aws("logs")
    group = next(
        g["logGroupName"] for g in logs.describe_log_groups()["logGroups"] if "task-stopped" in g["logGroupName"]
    )
    events = logs.filter_log_events(logGroupName=group)["events"]
    return any(task_arn in event["message"] for event in events) or None


# ---- starting and ending


def test_a_second_up_says_that_one_is_alive(stack: Stack) -> None:
    second = run_up("--port", "0", "--state-dir", str(stack.state_dir))
    assert second.returncode == 3
    assert str(stack.info["pids"]["up"]) in second.stdout
    assert stack.api_url in second.stdout


def test_a_taken_port_is_said_so(stack: Stack, tmp_path: Path) -> None:
    port = stack.api_url.rpartition(":")[2]
    second = run_up("--port", port, "--state-dir", str(tmp_path))
    assert second.returncode == 4
    assert f"port {port} is taken" in second.stdout
    assert "--port" in second.stdout


def test_down_where_nothing_runs_says_so(tmp_path: Path) -> None:
    assert down(tmp_path) is False
    assert status(tmp_path) is None


@pytest.mark.parametrize(
    ("victim", "signum"), [("up", signal.SIGKILL), ("up", signal.SIGINT), ("guardian", signal.SIGKILL)]
)
def test_nothing_is_left_when_a_stack_is_killed_in_the_middle_of_a_run(
    stack: Stack, tmp_path: Path, victim: str, signum: signal.Signals
) -> None:
    stack.model.add(SLEEPER)
    environment = os.environ | {"ANTHROPIC_BASE_URL": stack.model.url, "SANDBOX_JWT_SECRET": JWT_SECRET}
    state_dir = tmp_path / "state"
    with background(UpOptions(port=0, state_dir=state_dir, environment=environment)) as info:
        start_sleeper(Stack(info, stack.model, state_dir), make_repository(tmp_path / "project"))
        up = info["pids"]["up"]
        wait_for(lambda: any(map(is_sleeper, descendants(up))) or None, seconds=60)
        family = [up, *descendants(up)]
        assert set(info["pids"].values()) <= set(family)
        scratch, traces = traces_of(info)
        assert len(with_any_of(traces)) > len(info["pids"])
        os.kill(info["pids"][victim], signum)
        wait_for(lambda: None if any(map(is_alive, family)) or with_any_of(traces) or scratch.exists() else True)
    assert not (state_dir / "local.json").exists()
    assert status(state_dir) is None


SLEEPER = {
    "name": "sleeper",
    "match": {"words": ["Sleep for a long time"]},
    "replies": [
        {"tools": [{"name": "update_plan", "input": {"summary": "sleep", "steps": ["sleep"]}}]},
        {"tools": [{"name": "run_command", "input": {"command": "sleep 1234567"}}]},
    ],
}


def start_sleeper(stack: Stack, repository: Path) -> None:
    with stack.client() as client:
        started = client.post("/execute", json={"repo": str(repository), "task": "Sleep for a long time"})
        assert started.status_code == 202, started.text


def is_sleeper(pid: int) -> bool:
    return said(pid, "cmdline") == b"sleep\x001234567\0"


def test_the_end_of_one_part_ends_the_whole_and_names_it(tmp_path: Path) -> None:
    environment = os.environ | {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    command = [sys.executable, "-m", "sandpiper_local", "up", "--port", "0", "--state-dir", str(tmp_path)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as up:
        info = wait_for(lambda: status(tmp_path), seconds=120)
        os.kill(info["pids"]["ecs_agent"], signal.SIGKILL)
        said, _ = up.communicate(timeout=60)
    assert up.returncode == 1
    assert "ecs_agent ended" in said
    assert str(tmp_path / "logs" / "ecs_agent.log") in said


def run_up(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sandpiper_local", "up", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
