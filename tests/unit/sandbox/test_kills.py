"""A sandbox that is killed at any event, and the one that replaces it: together they do what one would have done."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sandbox_task.checkpoint import Checkpoint
from sandpiper import limits
from sandpiper.logic.artifacts import checkpoint_prefix
from sandpiper.models.spec import RunSpec
from tests.unit.sandbox.git_server import GitServer
from tests.unit.sandbox.mortal import MortalWorld
from tests.unit.sandbox.world import RUN_ID, done, plan, run, write

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = {
    "answer": "41\n",
    "check.sh": "! test -e steps\n",
    ".sandpiper.yml": "checks: ['sh check.sh']\nsetup: echo ready > made\n",
    ".gitignore": "made\n",
    "prd.json": '{"userStories": [{"id": "US-1", "title": "The answer", "passes": false}]}\n',
}
# Each appends, so that a step which is done twice, or on another tree than it had, shows in the end.
TURNS = [
    plan("sh check.sh"),
    run("echo one >> steps"),
    [*run("echo two >> steps"), *run("echo three >> steps")],
    [("read_file", {"path": "steps"}), ("list_files", {})],
    done("Not yet."),
    run("echo four >> steps"),
    [*write("answer", "42\n"), *run("mkdir -p d && mv steps d/steps && echo five >> d/steps")],
    done("It is 42 now."),
]
TOLD_ONCE = ("story_selected", "story_updated", "commit_created", "git_branch_created", "commit_pushed")
EVENTS = 66  # of an undisturbed run


@pytest.fixture(scope="module", autouse=True)
def _every_reply_is_worth_keeping() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "REPLY_WORTH_SECONDS", 0.0)
        yield


@pytest.fixture
def world(open_dir: Path) -> MortalWorld:
    return MortalWorld(open_dir)


def spec(url: str) -> RunSpec:
    return RunSpec(task="Do US-1", type="bug-fix", repo="o/r", repo_url=url, branch="work")


def left(world: MortalWorld, server: GitServer) -> dict[str, Any]:
    """What a run leaves behind, but for times and numbers of attempts."""
    result = world.result
    assert result.commit is not None
    assert result.gate is not None
    return {
        "outcome": result.outcome,
        "summary": result.summary,
        "gate": result.gate.status,
        "plan": result.plan,
        "story": result.story,
        "tree": server.git("r", "rev-parse", "work^{tree}"),
        "files": server.git("r", "show", "work:d/steps"),
        "commits": server.git("r", "rev-list", "--count", "main..work").strip(),
        "message": server.git("r", "log", "-1", "--format=%B", "work"),
        "parent": server.git("r", "rev-parse", "work^") == server.git("r", "rev-parse", "main"),
    }


def nothing_is_left_over(world: MortalWorld) -> None:
    """Of this attempt, nothing is stored that the run's row does not lead to."""
    key = world.runs.get(RUN_ID).checkpoint_key
    assert key is not None
    needed = {key, *Checkpoint.model_validate_json(world.blobs.get(key)).parts()}
    own = f"{checkpoint_prefix(RUN_ID)}s/{world.attempt}/"
    assert {name for name in world.blobs.bodies if name.startswith(own)} <= needed
    assert needed <= world.blobs.bodies.keys()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    root = Path(tempfile.mkdtemp(prefix="sandpiper-test-"))
    root.chmod(0o711)
    with GitServer(tmp_path_factory.mktemp("git")) as server:
        world = MortalWorld(root)
        world.store(spec(server.create("r", FILES)))
        life = world.live(TURNS)
        assert (world.exit_code, len(world.asked), len(life.events)) == (0, len(TURNS), EVENTS)
        yield left(world, server)
    shutil.rmtree(root)


def test_an_undisturbed_run_does_each_step_once(undisturbed: dict[str, Any]) -> None:
    assert undisturbed["files"] == "one\ntwo\nthree\nfour\nfive\n"
    assert (undisturbed["outcome"], undisturbed["gate"], undisturbed["commits"]) == ("completed", "passed", "1")


@pytest.mark.parametrize("ends_at", range(1, EVENTS + 1, 5))
def test_a_run_that_is_killed_at_any_event_ends_like_one_that_was_left_alone(
    world: MortalWorld, git_server: GitServer, undisturbed: dict[str, Any], ends_at: int
) -> None:
    world.store(spec(git_server.create("r", FILES)))
    killed = world.live(TURNS, ends_at=ends_at)
    assert world.exit_code == -9
    world.replace()
    world.live(TURNS)
    assert world.exit_code == 0, killed.events[-1]
    assert left(world, git_server) == undisturbed
    assert len(world.asked) <= len(TURNS) + 1, killed.events[-1]
    assert [event.seq for event in world.events] == list(range(1, len(world.events) + 1))
    assert [world.types.count(type_) for type_ in TOLD_ONCE] == [1] * len(TOLD_ONCE), killed.events[-1]
    attempts = [event.attempt for event in world.events]
    assert attempts == sorted(attempts)
    nothing_is_left_over(world)
