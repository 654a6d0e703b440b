"""`POST /execute`: the bodies of the three seeds, repeated requests, and waiting for the end."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.support import (
    Case,
    Person,
    finishes,
    git,
    make_repository,
    new_task,
    plans,
    play,
    refusal,
    shell,
    types_of,
    writes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.conftest import Stack

SEED_000: dict[str, Any] = {
    "task": "feature-implementation",
    "params": {
        "repo": "owner/repo",
        "task": "Add a logout button to the navbar",
        "model": "mistral-large",
        "promptStrategy": "auto",
        "shouldCommit": True,
    },
}
SEED_001: dict[str, Any] = {
    "task": "Fix the bug in the login function",
    "repo": "https://github.com/owner/repo",
    "options": {
        "include_diff": True,
        "permission_mode": "acceptEdits",
        "system_prompt": "Custom instructions...",
    },
}
SEED_001_WITHOUT_REPO: dict[str, Any] = {
    "task": "Create a hello world Python script",
    "options": {"permission_mode": "acceptEdits"},
}
SEED_001_WITH_REPO: dict[str, Any] = {
    "repo": "https://github.com/cloudflare/workers-sdk",
    "task": "Add a comment to the README explaining what this repo does",
    "options": {"include_diff": True},
}
SEED_002: dict[str, Any] = {
    "task": "Add a health check endpoint to the API",
    "context": "Optional additional instructions",
    "repo": "owner/repo",
    "branch": "feature-branch",
    "commitMessage": "feat: add health check",
    "paths": ["src/"],
    "skipCommit": False,
    "auto_deploy": True,
    "worker_name": "my-worker",
    "options": {"max_tokens": 8192, "temperature": 0.3},
}


@pytest.fixture(scope="module")
def cases(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Case]]:
    bodies = {"000": SEED_000, "001": SEED_001, "no repo": SEED_001_WITHOUT_REPO, "readme": SEED_001_WITH_REPO}
    bodies["002"] = SEED_002
    with ExitStack() as people:
        yield {
            name: _start(people.enter_context(Person(stack)), body, tmp_path_factory.mktemp("seed"))
            for name, body in bodies.items()
        }


def _start(person: Person, body: dict[str, Any], directory: Path) -> Case:
    words = body["params"]["task"] if "params" in body else body["task"]
    play(
        person.stack, words, plans("test -f src/made.py"), writes("src/made.py", "print('hello')\n"), finishes("Made.")
    )
    repository = make_repository(directory / "project", {"README.md": "# A project\n"})
    return Case(person, person.start(_on(body, repository)), repository)


def _on(body: dict[str, Any], repository: Path) -> dict[str, Any]:
    """The body as it stands, on a repository that exists."""
    if "params" in body:
        return {**body, "params": {**body["params"], "repo": str(repository)}}
    return {**body, "repo": str(repository)} if "repo" in body else body


def _requests(stack: Stack, task: str) -> list[dict[str, Any]]:
    return [r for r in stack.model.requests if task in str(r["body"]["messages"][0]) and r["path"] == "/v1/messages"]


# ---- the seeds


@pytest.mark.parametrize("name", ["000", "001", "no repo", "readme", "002"])
def test_every_body_of_the_seeds_runs_to_its_end(cases: dict[str, Case], name: str) -> None:
    run = cases[name].run
    assert (run["status"], run["error"]) == ("completed", None)
    assert [types_of(cases[name].events)[place] for place in (0, -1)] == ["run_queued", "run_completed"]


def test_seed_000_passes_on_the_model_that_it_names(stack: Stack, cases: dict[str, Case]) -> None:
    assert cases["000"].run["model"] == "mistral-large"
    assert cases["000"].run["result"]["model"].startswith("mistral.mistral-large")
    assert any("mistral-large" in entry["path"] for entry in stack.model.requests)


def test_seed_000_commits_a_feature_to_a_branch_of_its_own(cases: dict[str, Case]) -> None:
    run, repository = cases["000"].run, cases["000"].repository
    branch = run["result"]["commit"]["branch"]
    assert branch.startswith("sandpiper/feature-implementation-add-a-logout-button")
    assert git("log", "-1", "--format=%s", branch, at=repository) == "feat: Add a logout button to the navbar"
    assert git("show", f"{branch}:src/made.py", at=repository) == "print('hello')"


def test_seed_001_gives_the_model_its_system_prompt(stack: Stack, cases: dict[str, Case]) -> None:
    assert cases["001"].run["status"] == "completed"
    assert all("Custom instructions..." in str(r["body"]["system"]) for r in _requests(stack, SEED_001["task"]))


def test_a_run_without_a_repository_keeps_its_work_in_the_diff(cases: dict[str, Case]) -> None:
    one = cases["no repo"]
    assert one.run["repo"] is None
    assert one.run["result"]["commit"] is None
    assert "+print('hello')" in one.person.download(one.run_id, "diff").text
    assert one.told("commit_skipped")


def test_seed_002_commits_with_its_own_words_to_its_own_branch(cases: dict[str, Case]) -> None:
    one = cases["002"]
    assert one.run["result"]["commit"]["branch"] == one.run["branch"] == "feature-branch"
    assert git("log", "-1", "--format=%s", "feature-branch", at=one.repository) == "feat: add health check"


def test_seed_002_tells_the_model_its_context_and_its_limit(stack: Stack, cases: dict[str, Case]) -> None:
    assert cases["002"].run["status"] == "completed"
    for request in _requests(stack, SEED_002["task"]):
        assert "Optional additional instructions" in str(request["body"]["messages"][0])
        assert request["body"]["max_tokens"] == 8192
        assert "temperature" not in request["body"]


def test_options_without_effect_are_named_in_one_warning_each(cases: dict[str, Case]) -> None:
    named = [option for data in cases["002"].told("warning") for option in data.get("options", [])]
    assert sorted(named) == ["auto_deploy", "temperature", "worker_name"]
    assert not any("options" in data for data in cases["001"].told("warning"))


# ---- the answer


def test_the_answer_names_the_run_and_where_to_follow_it(stack: Stack) -> None:
    with Person(stack) as person:
        answer = person.execute({"task": new_task(stack, plans(), finishes())})
        run_id = answer.json()["run_id"]
        assert answer.status_code == 202
        assert answer.json()["execution_id"] == run_id
        assert answer.json()["status"] == "queued"
        assert answer.json()["links"]["websocket"] == stack.ws_url
        for name in ("self", "events"):
            assert person.http.get(answer.json()["links"][name]).status_code == 200
        assert person.end_of(run_id)["status"] == "completed"
        assert person.http.get(answer.json()["links"]["logs"]).status_code == 200


def test_both_spellings_of_an_option_mean_the_same(stack: Stack) -> None:
    task = new_task(stack, plans(), writes("new.txt", "new\n"), finishes())
    with Person(stack) as person:
        runs = [person.start({"task": task, **option}) for option in ({"max_turns": 1}, {"maxTurns": 1})]
        assert [person.suspended(run)["suspend_reason"] for run in runs] == ["budget_exhausted"] * 2


# ---- waiting


def test_a_request_that_prefers_to_wait_is_answered_with_the_end(stack: Stack) -> None:
    with Person(stack) as person:
        answer = person.execute({"task": new_task(stack, plans(), finishes("Quick."))}, Prefer="wait=25")
        assert answer.status_code == 200
        assert answer.json()["run"]["status"] == "completed"
        assert answer.json()["run"]["result"]["summary"] == "Quick."


def test_a_request_that_waits_too_short_gets_the_start(stack: Stack) -> None:
    with Person(stack) as person:
        answer = person.execute({"task": new_task(stack, plans(), shell("sleep 60"), finishes())}, Prefer="wait=1")
        assert answer.status_code == 202
        assert person.cancel(answer.json()["run_id"]).status_code == 202


# ---- Idempotency-Key


def test_ten_equal_requests_at_once_start_one_run(stack: Stack) -> None:
    body = {"task": new_task(stack, plans(), finishes())}
    key = uuid.uuid4().hex
    with Person(stack) as person, ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: person.execute(body, Idempotency_Key=key), range(10)))
        again = person.start(body, Idempotency_Key=key)
        for answer in answers:
            assert answer.status_code == 202 or answer.json()["error"]["retryable"], answer.text
        assert {a.json()["run_id"] for a in answers if a.status_code == 202} == {again}
        assert [run["run_id"] for run in person.http.get("/runs").json()["runs"]] == [again]
        assert person.end_of(again)["attempt"] == 1
        assert person.start(body, Idempotency_Key=key) == again


def test_a_repeated_key_on_a_local_repository_is_the_same_run(stack: Stack, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "project", {"a.txt": "a\n"})
    body = {"task": new_task(stack, plans("true"), writes("b.txt", "b\n"), finishes()), "repo": str(repository)}
    with Person(stack) as person:
        first = person.start(body, Idempotency_Key="k")
        assert person.start(body, Idempotency_Key="k") == first
        assert person.end_of(first)["status"] == "completed"


def test_a_key_with_another_body_is_a_conflict(stack: Stack) -> None:
    with Person(stack) as person:
        task = new_task(stack, plans(), finishes())
        first = person.start({"task": task}, Idempotency_Key="k")
        refusal(person.execute({"task": f"{task} and more"}, Idempotency_Key="k"), 409, "conflict")
        assert len(person.http.get("/runs").json()["runs"]) == 1
        person.end_of(first)


def test_the_same_key_of_two_people_starts_two_runs(stack: Stack) -> None:
    body = {"task": new_task(stack, plans(), finishes())}
    with Person(stack) as ann, Person(stack) as bob:
        runs = [(person, person.start(body, Idempotency_Key="k")) for person in (ann, bob)]
        assert len({run_id for _, run_id in runs}) == 2
        assert [person.end_of(run_id)["status"] for person, run_id in runs] == ["completed"] * 2
