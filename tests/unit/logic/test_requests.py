"""What `POST /execute` takes and what it refuses."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandpiper.errors import ValidationError
from sandpiper.logic.repos import RefusedRepository, RepoRules
from sandpiper.logic.run_spec import spec_of
from sandpiper.models.requests import ExecuteRequest
from sandpiper.models.spec import RunSpec

RULES = RepoRules("https://github.com", ("http://127.0.0.1:8787/git/",))

SEED_000 = {
    "task": "feature-implementation",
    "params": {
        "repo": "owner/repo",
        "task": "Add a logout button to the navbar",
        "model": "mistral-large",
        "promptStrategy": "auto",
        "shouldCommit": True,
    },
}
SEED_001 = {
    "task": "Fix the bug in the login function",
    "repo": "https://github.com/owner/repo",
    "options": {"include_diff": True, "permission_mode": "acceptEdits", "system_prompt": "Custom instructions..."},
}
SEED_001_WITHOUT_REPO = {
    "task": "Create a hello world Python script",
    "options": {"permission_mode": "acceptEdits"},
}
SEED_002 = {
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


def spec(body: dict[str, Any]) -> RunSpec:
    return spec_of(ExecuteRequest.model_validate(body), RULES)


def refused_fields(body: Any) -> list[str]:
    with pytest.raises(pydantic.ValidationError) as refusal:
        ExecuteRequest.model_validate(body)
    return [".".join(str(part) for part in error["loc"][1:]) for error in refusal.value.errors()]


def test_the_body_of_seed_000_becomes_a_spec() -> None:
    assert spec(SEED_000) == RunSpec(
        type="feature-implementation",
        task="Add a logout button to the navbar",
        repo="owner/repo",
        repo_url="https://github.com/owner/repo.git",
        model="mistral-large",
        prompt_strategy="auto",
        commit=True,
    )


def test_the_body_of_seed_001_becomes_a_spec() -> None:
    assert spec(SEED_001) == RunSpec(
        task="Fix the bug in the login function",
        repo="https://github.com/owner/repo",
        repo_url="https://github.com/owner/repo",
        include_diff=True,
        permission_mode="acceptEdits",
        trust_level="balanced",
        system_prompt="Custom instructions...",
    )


def test_a_body_without_a_repository_asks_for_an_empty_workspace() -> None:
    assert spec(SEED_001_WITHOUT_REPO).repo_url is None


def test_the_body_of_seed_002_becomes_a_spec_that_says_what_has_no_effect() -> None:
    assert spec(SEED_002) == RunSpec(
        task="Add a health check endpoint to the API",
        context="Optional additional instructions",
        repo="owner/repo",
        repo_url="https://github.com/owner/repo.git",
        branch="feature-branch",
        commit_message="feat: add health check",
        paths=("src/",),
        auto_deploy=True,
        worker_name="my-worker",
        max_tokens=8192,
        temperature=0.3,
        unused_options=("temperature", "auto_deploy", "worker_name"),
    )


@pytest.mark.parametrize(
    ("option", "is_named"),
    [
        ({"temperature": 0.0}, True),
        ({"create_pr": True}, False),
        ({"create_pr": False}, False),
        ({"trust_level": "strict"}, False),
        ({"permission_mode": "plan"}, False),
        ({"approvals": True}, False),
    ],
)
def test_an_option_without_effect_is_named_unless_it_asks_for_what_happens_anyway(
    option: dict[str, Any], *, is_named: bool
) -> None:
    assert spec({"task": "Fix it", **option}).unused_options == (tuple(option) if is_named else ())


@pytest.mark.parametrize("how", [{"type": "code-review"}, {"skip_commit": True}, {"should_commit": False}])
def test_a_pull_request_of_work_that_commits_nothing_is_named_as_without_effect(how: dict[str, Any]) -> None:
    assert spec({"task": "Fix it", "create_pr": True, **how}).unused_options == ("create_pr",)


@pytest.mark.parametrize(
    ("options", "trust"),
    [
        ({}, "balanced"),
        ({"approvals": True}, "balanced"),
        ({"approvals": False}, "trusted"),
        ({"approvals": False, "trustLevel": "strict"}, "trusted"),
        ({"trustLevel": "strict"}, "strict"),
        ({"permission_mode": "bypassPermissions"}, "trusted"),
        ({"permission_mode": "plan"}, "strict"),
        ({"permission_mode": "acceptEdits"}, "balanced"),
        ({"permission_mode": "default"}, "balanced"),
        ({"permission_mode": "bypassPermissions", "trust_level": "balanced"}, "balanced"),
    ],
)
def test_what_is_asked_about_follows_from_any_of_the_options_that_say_it(options: dict[str, Any], trust: str) -> None:
    assert spec({"task": "Fix it", **options}).trust_level == trust


@pytest.mark.parametrize(
    ("written", "field", "value"),
    [
        ("timeoutSeconds", "timeout_seconds", 60),
        ("timeout_seconds", "timeout_seconds", 60),
        ("max_total_tokens", "max_total_tokens", 100_000),
        ("maxTotalTokens", "max_total_tokens", 100_000),
        ("gate_mode", "gate_mode", "strict"),
        ("gateMode", "gate_mode", "informational"),
        ("maxTurns", "max_turns", 7),
        ("max_turns", "max_turns", 7),
        ("maxCostUsd", "max_cost_usd", 2.5),
        ("trustLevel", "trust_level", "strict"),
        ("trust_level", "trust_level", "strict"),
        ("createPr", "create_pr", True),
        ("create_pr", "create_pr", True),
        ("appendSystemPrompt", "append_system_prompt", "be brief"),
        ("callbackUrl", "callback_url", "https://example.com/done"),
        ("promptStrategy", "prompt_strategy", "bug-fix"),
    ],
)
@pytest.mark.parametrize("place", ["params", "top", "options"])
def test_every_option_is_taken_in_both_spellings_wherever_it_stands(
    written: str, field: str, value: object, place: str
) -> None:
    bodies: dict[str, dict[str, Any]] = {
        "params": {"task": "bug-fix", "params": {"task": "Fix it", written: value}},
        "top": {"task": "Fix it", written: value},
        "options": {"task": "Fix it", "options": {written: value}},
    }
    assert getattr(spec(bodies[place]), field) == value


def test_hosts_are_named_or_named_by_what_they_are_below() -> None:
    hosts = ("a.example", "*.b.example", "A.c.example:8443")
    assert spec({"task": "x", "egress": list(hosts)}).egress == hosts
    assert spec({"task": "x", "options": {"egress": ["d.example"]}}).egress == ("d.example",)


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert spec({"task": "x", "timeoutSeconds": 60.0}).timeout_seconds == 60


def test_options_win_over_the_same_name_beside_the_task() -> None:
    assert spec({"task": "x", "max_turns": 5, "options": {"maxTurns": 9}}).max_turns == 9


@pytest.mark.parametrize(
    ("mode", "trust"),
    [("bypassPermissions", "trusted"), ("acceptEdits", "balanced"), ("default", "balanced"), ("plan", "strict")],
)
def test_a_permission_mode_sets_the_trust_level_and_is_kept(mode: str, trust: str) -> None:
    made = spec({"task": "x", "permission_mode": mode})
    assert (made.permission_mode, made.trust_level) == (mode, trust)


def test_an_explicit_trust_level_wins_over_the_permission_mode() -> None:
    assert spec({"task": "x", "permission_mode": "plan", "trustLevel": "trusted"}).trust_level == "trusted"


@pytest.mark.parametrize(
    ("options", "commits"),
    [
        ({}, True),
        ({"shouldCommit": True}, True),
        ({"shouldCommit": False}, False),
        ({"skipCommit": True}, False),
        ({"shouldCommit": True, "skipCommit": True}, False),
        ({"type": "code-review", "shouldCommit": True}, False),
    ],
)
def test_nothing_is_committed_if_anything_says_no(options: dict[str, Any], commits: bool) -> None:  # noqa: FBT001
    assert spec({"task": "x", **options}).commit is commits


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"task": "x", "nope": 1}, ["nope"]),
        ({"task": "x", "options": {"nope": 1}}, ["options.nope"]),
        ({"task": "bug-fix", "params": {"task": "x", "nope": 1}}, ["params.nope"]),
        ({"task": "bug-fix", "params": {"task": "x"}, "repo": "a/b"}, ["repo"]),
        ({}, ["task"]),
        ({"task": ""}, ["task"]),
        ({"task": " \n\t"}, ["task"]),
        ({"task": 5}, ["task"]),
        ({"task": None}, ["task"]),
        ({"task": "no-such-type", "params": {"task": "x"}}, ["task"]),
        ({"task": "bug-fix", "params": {}}, ["params.task"]),
        ({"task": "bug-fix", "params": []}, ["params"]),
        ({"task": "x" * 32_001}, ["task"]),
        ({"task": "x", "maxTurns": "5"}, ["maxTurns"]),
        ({"task": "x", "max_turns": True}, ["max_turns"]),
        ({"task": "x", "max_turns": 1.5}, ["max_turns"]),
        ({"task": "x", "options": {"max_turns": 0}}, ["options.max_turns"]),
        ({"task": "x", "options": {"max_turns": 501}}, ["options.max_turns"]),
        ({"task": "x", "timeoutSeconds": 29}, ["timeoutSeconds"]),
        ({"task": "x", "timeout_seconds": 7201}, ["timeout_seconds"]),
        ({"task": "x", "max_cost_usd": 0}, ["max_cost_usd"]),
        ({"task": "x", "maxTotalTokens": 0}, ["maxTotalTokens"]),
        ({"task": "x", "options": {"gateMode": "lenient"}}, ["options.gateMode"]),
        ({"task": "x", "options": {"temperature": 3}}, ["options.temperature"]),
        ({"task": "x", "shouldCommit": "yes"}, ["shouldCommit"]),
        ({"task": "x", "permission_mode": "sudo"}, ["permission_mode"]),
        ({"task": "x", "worker_name": "../x"}, ["worker_name"]),
        ({"task": "x", "callback_url": "http://example.com"}, ["callback_url"]),
        ({"task": "x", "callback_url": "https://user:pw@example.com"}, ["callback_url"]),
        ({"task": "x", "allowed_tools": ["a b"]}, ["allowed_tools.0"]),
        *(
            ({"task": "x", "egress": [host]}, ["egress.0"])
            for host in (
                *("*", "*.com", "localhost", "10.0.0.1", "[::1]", "1.2.3.4:443", "0x7f.1", "https://a.example", "a..b"),
                *("a.example/x", "a.example:0", "a.example:65536", "a b.example", "-a.example", "a.example\n", ""),
                f"{'a' * 63}." * 5 + "example",
            )
        ),
        ({"task": "x", "egress": ["a.example"] * 101}, ["egress"]),
        ({"task": "x", "model": "--help"}, ["model"]),
        ({"task": "\ud800"}, ["task"]),
        ({"task": "x", "timeoutSeconds": 60, "timeout_seconds": 60}, ["timeout_seconds"]),
    ],
)
def test_what_is_wrong_is_refused_by_the_name_the_caller_wrote(body: dict[str, Any], fields: list[str]) -> None:
    assert refused_fields(body) == fields


@pytest.mark.parametrize(
    "branch",
    [
        "-x", "--upload-pack=x", "../x", "a..b", "/a", "a/", "a//b", ".a", "a/.b", "a.lock", "a.lock/b", "a b", "a~b",
        "a^b", "a:b", "a?b", "a*b", "a[b", "a\\b", "a@{b", "@", "a.", "a\x7fb", "a\nb", "a\n", "", "b" * 201,
        "HEAD", "refs/heads/main",
    ],
)  # fmt: skip
@pytest.mark.parametrize("field", ["branch", "base"])
def test_a_name_that_git_refuses_or_could_take_for_an_option_is_no_branch(branch: str, field: str) -> None:
    assert refused_fields({"task": "x", field: branch}) == [field]


@pytest.mark.parametrize(
    "branch", ["main", "feature/x", "fix-1.2", "users/ann/a@b", "ünïcode", "v1.0-rc", "a.locked", "HEADER", "x/refs/y"]
)
def test_ordinary_branch_names_are_taken(branch: str) -> None:
    assert spec({"task": "x", "branch": branch}).branch == branch


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x", "a/../../b", "a/..", "..", "-x", ":(top)x", "~/x", "a\\b", "", "a\0"]
)
def test_a_path_outside_the_repository_is_refused(path: str) -> None:
    assert refused_fields({"task": "x", "paths": ["src/", path]}) == ["paths.1"]


@pytest.mark.parametrize("path", ["src/", "a/b.py", "a..b", ".github", "./src", "with space.txt"])
def test_a_path_inside_the_repository_is_taken(path: str) -> None:
    assert spec({"task": "x", "paths": [path]}).paths == (path,)


@pytest.mark.parametrize(
    "repo",
    [
        "", "repo", "../x", "-x", "-x/y", "owner/-x", "owner/..", "owner/.", "owner/repo/../..", "owner/repo/x",
        "owner /repo", "owner/repo\n", "http://github.com/owner/repo", "ssh://git@github.com/owner/repo",
        "git@github.com:owner/repo",
        "file:///etc", "https://github.com", "https://github.com/", "https://user:pw@github.com/owner/repo",
        "https://token@github.com/owner/repo", "https://github.com/owner/repo?x=1", "https://github.com/owner/repo#x",
        "https://github.com/owner/../x", "https://github.com/owner/%2e%2e/x", "https://github.com/owner/-x",
        "https://169.254.169.254/latest/meta-data", "https://127.0.0.1/x/y", "https://localhost/x/y", "https://[::1]/x",
        "http://127.0.0.1:8787/other/x", "http://127.0.0.1:8787/git", "http://127.0.0.1:8787/git/",
        "http://127.0.0.1:8787/git/../x", "http://127.0.0.1:8787/git@evil.example/x", "ext::sh -c id",
    ],
)  # fmt: skip
def test_what_is_no_repository_that_we_clone_is_refused(repo: str) -> None:
    with pytest.raises(RefusedRepository):
        RULES.url_of(repo)


@pytest.mark.parametrize(
    ("repo", "url"),
    [
        ("owner/repo", "https://github.com/owner/repo.git"),
        ("owner/repo.git", "https://github.com/owner/repo.git"),
        ("o-1/.github", "https://github.com/o-1/.github.git"),
        ("https://github.com/owner/repo", "https://github.com/owner/repo"),
        ("https://gitlab.example.com:8443/group/sub/repo.git", "https://gitlab.example.com:8443/group/sub/repo.git"),
        ("https://github.com/owner/repo/", "https://github.com/owner/repo"),
        ("http://127.0.0.1:8787/git/my-project.git", "http://127.0.0.1:8787/git/my-project.git"),
    ],
)
def test_repositories_become_the_url_that_is_cloned(repo: str, url: str) -> None:
    assert RULES.url_of(repo) == url


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"task": "x", "repo": "../x"}, "repo"),
        ({"task": "bug-fix", "params": {"task": "x", "repo": "../x"}}, "params.repo"),
    ],
)
def test_a_refused_repository_is_named_where_the_caller_wrote_it(body: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        spec(body)
    assert refusal.value.details == [{"field": field, "message": "must be owner/repo or an https URL of a repository"}]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_no_json_value_gets_past_without_a_spec_or_a_refusal(body: Any) -> None:
    try:
        made = ExecuteRequest.model_validate(body)
    except pydantic.ValidationError:
        return
    assert spec_of(made, RULES).task.strip()
