"""What a run leaves behind: a branch with the right commit, a diff that can be applied, and an honest word."""

from __future__ import annotations

import re
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
    shell,
    types_of,
    writes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.conftest import Stack

FILES: dict[str, str | bytes] = {
    "gone.txt": "going\n",
    "before.txt": "".join(f"line {n}\n" for n in range(40)),
    "tool.sh": "#!/bin/sh\necho hi\n",
    "picture.bin": bytes(range(256)),
    "kept.txt": "kept\n",
}
ALL_KINDS = (
    "rm gone.txt; mv before.txt after.txt; chmod +x tool.sh; head -c 300 /dev/zero > picture.bin;"
    " mkdir 'a dir'; echo new > 'a dir/ü.txt'"
)
CHECKED = FILES | {".sandpiper.yml": "checks: ['test ! -e broken']\n"}
BREAKS = (plans(), shell("echo x > broken"), finishes(), finishes("Still."), finishes("I give up."))

# name → (files of the repository, replies of the model, body)
PLAYS: dict[str, tuple[dict[str, str | bytes], tuple[dict[str, Any], ...], dict[str, Any]]] = {
    "all kinds": (FILES, (plans("test -x tool.sh"), shell(ALL_KINDS), finishes("All kinds.")), {"type": "refactoring"}),
    "red": (CHECKED, BREAKS, {}),
    "unverified": (FILES, (plans(), writes("new.txt", "new\n"), finishes()), {}),
    "unchanged": (FILES, (plans("true"), finishes()), {}),
    "review": (FILES, (plans(), shell("cat kept.txt"), finishes("It reads well.")), {"type": "code-review"}),
    "meddling review": (FILES, (plans(), shell("rm kept.txt"), finishes()), {"type": "code-review"}),
    "not asked": (FILES, (plans("true"), writes("new.txt", "new\n"), finishes()), {"shouldCommit": False}),
    "out of turns": (FILES, (plans(), writes("half.txt", "half\n"), finishes()), {"max_turns": 2}),
    "continued": (FILES, (plans("true"), writes("more.txt", "more\n"), finishes()), {"branch": "work"}),
}


@pytest.fixture(scope="module")
def cases(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Case]]:
    with ExitStack() as people:
        yield {
            name: _start(people.enter_context(Person(stack)), tmp_path_factory.mktemp("repository"), *play)
            for name, play in PLAYS.items()
        }


def _start(
    person: Person, directory: Path, files: dict[str, str | bytes], replies: tuple[dict[str, Any], ...], body: Any
) -> Case:
    repository = make_repository(directory / "project", files)
    git("branch", "work", at=repository)
    task = new_task(person.stack, *replies)
    return Case(person, person.start({"task": task, "repo": str(repository), **body}), repository)


# ---- a whole run


def test_a_run_goes_through_its_phases_in_order(cases: dict[str, Case]) -> None:
    case = cases["all kinds"]
    types = types_of(case.events)
    phases = [
        "run_queued", "run_dispatched", "run_started", "repo_clone_started", "repo_clone_completed",
        "repo_context_collected", "prompt_strategy_selected", "planning_started", "tool_started", "planning_completed",
        "agent_finished", "gate_checks_selected", "gate_check_started", "gate_check_passed", "gate_completed",
        "commit_created", "git_branch_created", "commit_pushed", "diff_generated", "log_stored", "run_completed",
    ]  # fmt: skip
    assert list(dict.fromkeys(type_ for type_ in types if type_ in phases)) == phases
    assert case.run["last_seq"] == len(types)
    assert {event["attempt"] for event in case.events} <= {0, 1}


def test_the_event_log_is_the_same_in_small_pages(cases: dict[str, Case]) -> None:
    case = cases["all kinds"]
    assert case.events == case.person.events(case.run_id, page=7)


def test_the_branch_has_one_commit_with_author_message_and_trailers(cases: dict[str, Case]) -> None:
    case = cases["all kinds"]
    commit = case.run["result"]["commit"]
    assert sorted(case.branches) == sorted(["main", "work", commit["branch"]])
    assert git("rev-list", f"main..{commit['branch']}", at=case.repository) == commit["sha"]
    message = git("log", "-1", "--format=%an%n%B", commit["sha"], at=case.repository)
    assert message.startswith("Sandpiper\nrefactor: Play the script")
    assert "\n\nAll kinds.\n\n" in message
    assert message.endswith(f"Sandpiper-Run: {case.run_id}\nSandpiper-Gate: passed")
    assert (commit["pushed"], commit["verified"]) == (True, True)


def test_the_commit_holds_new_deleted_renamed_binary_and_mode_changes(cases: dict[str, Case]) -> None:
    case = cases["all kinds"]
    sha = case.run["result"]["commit"]["sha"]
    raw = git("-c", "core.quotePath=false", "diff", "--raw", "--find-renames", "main", sha, at=case.repository)
    changes = {(line.split("\t")[-1], line.split()[4][0]) for line in raw.splitlines()}
    assert changes == {
        ("gone.txt", "D"), ("after.txt", "R"), ("tool.sh", "M"), ("picture.bin", "M"), ("a dir/ü.txt", "A")
    }  # fmt: skip
    assert git("ls-tree", sha, "tool.sh", at=case.repository).startswith("100755 ")


def test_the_diff_applied_to_the_base_gives_the_tree_of_the_commit(cases: dict[str, Case], tmp_path: Path) -> None:
    case = cases["all kinds"]
    patch = tmp_path / "diff.patch"
    patch.write_bytes(case.person.download(case.run_id, "diff").content)
    clone = tmp_path / "clone"
    git("clone", "-q", str(case.repository), str(clone), at=tmp_path)
    git("apply", "--index", str(patch), at=clone)
    tree = git("rev-parse", f"{case.run['result']['commit']['sha']}^{{tree}}", at=case.repository)
    assert git("write-tree", at=clone) == tree


def test_the_checkout_of_the_person_is_left_alone(cases: dict[str, Case]) -> None:
    case = cases["all kinds"]
    assert case.run["status"] == "completed"
    assert git("status", "--porcelain", at=case.repository) == ""
    assert git("symbolic-ref", "--short", "HEAD", at=case.repository) == "main"


def test_the_result_counts_turns_tokens_cost_and_time(cases: dict[str, Case]) -> None:
    case = cases["all kinds"]
    result = case.run["result"]
    turns = case.told("agent_turn_completed")
    assert result["usage"]["turns"] == len(turns) == 3
    assert result["usage"]["cost_usd"] == pytest.approx(sum(turn["cost_usd"] for turn in turns), abs=1e-5)
    assert result["usage"]["output_tokens"] == sum(turn["usage"]["output_tokens"] for turn in turns) > 0
    assert {"clone", "agent", "gate", "push"} <= result["durations_ms"].keys()
    assert result["diff_stat"]["files"] == 5
    assert result["summary"] == "All kinds."
    assert result["model"] == "claude-sonnet-5-5"


def test_the_run_document_names_no_key_of_the_store(cases: dict[str, Case]) -> None:
    case = cases["all kinds"]
    assert case.run["result"]["log_url"] == f"/runs/{case.run_id}/logs"
    assert not re.search(r"attempts/\d", str(case.run))


# ---- the gate


def test_work_that_breaks_a_check_is_not_committed_and_fails_the_run(cases: dict[str, Case]) -> None:
    case = cases["red"]
    assert case.outcome == ("failed", "gate_failed")
    assert "test ! -e broken" in case.run["error"]["message"]
    assert case.branches == ["main", "work"]
    assert case.run["result"]["commit"] is None
    assert case.run["result"]["gate"]["status"] == "failed"
    assert len(case.told("gate_repair_started")) == 2
    assert "commit_created" not in types_of(case.events)


def test_a_failed_run_keeps_its_diff_and_its_log(cases: dict[str, Case]) -> None:
    case = cases["red"]
    assert case.run["status"] == "failed"
    assert "+++ b/broken" in case.person.download(case.run_id, "diff").text
    assert "gate_check_failed" in case.person.download(case.run_id, "logs").text


def test_work_that_nothing_could_check_is_committed_as_unverified(cases: dict[str, Case]) -> None:
    case = cases["unverified"]
    commit = case.run["result"]["commit"]
    assert (case.run["status"], case.run["result"]["gate"]["status"]) == ("completed", "skipped")
    assert (commit["pushed"], commit["verified"]) == (True, False)
    trailer = git("log", "-1", "--format=%(trailers:key=Sandpiper-Gate,valueonly)", commit["sha"], at=case.repository)
    assert trailer == "skipped (unverified)"
    assert "gate_skipped" in types_of(case.events)


# ---- nothing to commit


def test_a_run_that_changed_nothing_says_so_and_commits_nothing(cases: dict[str, Case]) -> None:
    case = cases["unchanged"]
    assert case.outcome == ("completed", None)
    assert case.told("commit_skipped") == [{"reason": "Nothing was changed."}]
    assert case.branches == ["main", "work"]


def test_a_review_reads_and_reports(cases: dict[str, Case]) -> None:
    case = cases["review"]
    assert case.outcome == ("completed", None)
    assert case.run["result"]["summary"] == "It reads well."
    assert case.branches == ["main", "work"]


def test_a_review_that_changes_files_fails_and_pushes_nothing(cases: dict[str, Case]) -> None:
    case = cases["meddling review"]
    assert case.outcome == ("failed", "agent_loop_error")
    assert "kept.txt" in case.run["error"]["message"]
    assert case.branches == ["main", "work"]


def test_a_run_that_was_asked_not_to_commit_keeps_its_work_in_the_diff(cases: dict[str, Case]) -> None:
    case = cases["not asked"]
    assert case.outcome == ("completed", None)
    assert case.branches == ["main", "work"]
    assert "+++ b/new.txt" in case.person.download(case.run_id, "diff").text


def test_a_run_out_of_turns_keeps_its_work_in_the_diff(cases: dict[str, Case]) -> None:
    case = cases["out of turns"]
    run = case.person.suspended(case.run_id)
    assert (run["suspend_reason"], run["usage"]["turns"]) == ("budget_exhausted", 2)
    assert case.branches == ["main", "work"]
    assert "+++ b/half.txt" in case.person.download(case.run_id, "diff").text


# ---- branches


def test_a_branch_that_exists_is_continued(cases: dict[str, Case]) -> None:
    case = cases["continued"]
    assert case.outcome == ("completed", None)
    assert case.branches == ["main", "work"]
    assert git("log", "--format=%p", "work", at=case.repository).splitlines()[0] == git(
        "rev-parse", "--short", "main", at=case.repository
    )


def test_a_branch_that_was_thrown_back_meanwhile_is_not_overwritten(stack: Stack, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "project", FILES)
    git("branch", "work", at=repository)
    task = new_task(stack, plans("true"), writes("mine.txt", "mine\n"), shell("sleep 1"), finishes())
    with Person(stack) as person:
        run_id = person.start({"task": task, "repo": str(repository), "branch": "work"})
        person.event(run_id, "file_changed")
        theirs = git("commit-tree", "main^{tree}", "-m", "theirs", at=repository)
        git("update-ref", "refs/heads/work", theirs, at=repository)
        run = person.end_of(run_id)
    assert (run["status"], run["error"]["type"]) == ("failed", "repository_error")
    assert "was force-pushed while the run was working" in run["error"]["message"]
    assert git("rev-parse", "work", at=repository) == theirs
