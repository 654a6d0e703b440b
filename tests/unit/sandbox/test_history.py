"""What of the history is there, for whom, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandpiper import limits
from sandpiper.errors import RunError
from tests.unit.sandbox.clones import cloned, do, spec

if TYPE_CHECKING:
    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall
    from tests.unit.sandbox.git_server import GitServer


def with_history(server: GitServer, *, commits: int = 5) -> str:
    url = server.create("r")
    for number in range(commits):
        server.push("r", {"a.txt": "".join(f"line {n}\n" for n in range(number + 1)), "b.txt": f"{number}\n"})
    return url


def test_the_worker_can_ask_a_small_history_for_everything(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    repository = cloned(rooms, wall, spec(with_history(git_server)))
    assert do(wall, "git log --oneline | wc -l") == "5\n"
    assert do(wall, "git blame -s a.txt | wc -l; git blame a.txt | cut -d' ' -f1 | sort -u | wc -l") == "5\n5\n"
    assert "2 insertions(+), 1 deletion(-)" in do(wall, "git log --stat -3")
    assert "+line 4" in do(wall, "git show HEAD")
    assert do(wall, "git status --porcelain; git diff HEAD~3 -- b.txt | tail -1") == "+4\n"
    assert repository.has_whole_history


def test_a_large_history_comes_without_old_contents_and_the_log_is_complete(
    git_server: GitServer, rooms: Rooms, wall: Wall, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = git_server.create("r")
    for _ in range(5):
        git_server.shell("r", "head -c 20000 /dev/urandom > a.txt")
    monkeypatch.setattr(limits, "HISTORY_PACK_BYTES", 50_000)
    monkeypatch.setattr(limits, "RECENT_FILES", 0)
    repository = cloned(rooms, wall, spec(url))
    assert do(wall, "git log --oneline --name-status -- a.txt | grep -c a.txt") == "5\n"
    assert do(wall, "git status --porcelain; echo > new; git add new; git diff --cached --stat | tail -1") == (
        " 1 file changed, 1 insertion(+)\n"
    )
    assert do(wall, "git rev-list --objects --missing=print HEAD | grep -c '^?'") == "4\n"
    assert not repository.has_whole_history


def test_the_last_commits_of_a_large_history_can_be_shown(
    git_server: GitServer, rooms: Rooms, wall: Wall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HISTORY_FILE_BYTES", 1)  # as if all of them were too large to come by themselves
    monkeypatch.setattr(limits, "RECENT_COMMITS", (2,))
    cloned(rooms, wall, spec(with_history(git_server)))
    assert "+line 4" in do(wall, "git show HEAD")
    assert do(wall, "git rev-list --objects --missing=print HEAD | grep -c '^?'") == "6\n"


def test_a_huge_file_of_the_past_is_not_downloaded(
    git_server: GitServer, rooms: Rooms, wall: Wall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RECENT_COMMITS", (2,))
    url = git_server.create("r")
    git_server.shell("r", "head -c 3000000 /dev/urandom > huge; echo a > a")
    for script in ("rm huge", "echo b > a", "echo c > a"):
        git_server.shell("r", script)
    repository = cloned(rooms, wall, spec(url))
    packs = (repository.git.git_dir / "objects" / "pack").glob("*.pack")
    assert sum(pack.stat().st_size for pack in packs) < 200_000
    assert do(wall, "git blame -s a | wc -l") == "1\n"


def test_an_unfinished_download_leaves_nothing_behind(
    git_server: GitServer, rooms: Rooms, wall: Wall, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = git_server.create("r")
    git_server.shell("r", "head -c 200000 /dev/urandom > a")
    git_server.shell("r", "head -c 200000 /dev/urandom > a")
    monkeypatch.setattr(limits, "HISTORY_PACK_BYTES", 100_000)
    repository = cloned(rooms, wall, spec(url))
    assert list((repository.git.git_dir / "objects" / "pack").glob("tmp_*")) == []
    assert do(wall, "wc -c < a; git log --oneline | wc -l; ls .git/objects/pack | grep -c tmp_ || true") == (
        "200000\n2\n0\n"
    )


def test_a_server_that_can_not_filter_sends_everything(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    url = with_history(git_server)
    git_server.git("r", "config", "uploadpack.allowFilter", "false")
    cloned(rooms, wall, spec(url))
    assert do(wall, "git blame -s a.txt | wc -l") == "5\n"


def test_a_history_with_an_old_tools_mistakes_can_be_fetched(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    url = git_server.create("r")
    git_server.shell(
        "r",
        """git commit -q --allow-empty -m x; tree=$(git write-tree)
        printf 'tree %s\nauthor A <a@b> 1 +051800\ncommitter A <a@b> 1 +051800\n\nold\n' $tree > /tmp/$$
        git reset -q --hard $(git hash-object -t commit -w --literally /tmp/$$); rm /tmp/$$; echo a > a""",
    )
    cloned(rooms, wall, spec(url))
    assert do(wall, "git log --format=%s") == "base\nold\n"


def test_a_planted_git_directory_is_refused(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    url = git_server.create("r")
    git_server.shell(
        "r",
        """echo a > a; git add a; blob=$(git rev-parse :a)
        inner=$(printf '100644 blob %s\\tconfig\\n' $blob | git mktree)
        tree=$(printf '040000 tree %s\\t.git\\n' $inner | git mktree)
        git push -q ../r.git $(git commit-tree -m planted $tree):refs/heads/planted""",
    )
    with pytest.raises(
        RunError, match=r"The files of o/r could not be checked out: error: invalid path '\.git/config'"
    ):
        cloned(rooms, wall, spec(url, base="planted"))


def test_a_run_starts_again_from_the_commit_of_its_earlier_attempt(
    git_server: GitServer, rooms: Rooms, wall: Wall
) -> None:
    url = with_history(git_server)
    first = git_server.git("r", "rev-parse", "main~2").strip()
    repository = cloned(rooms, wall, spec(url), at=first)
    assert repository.base_commit == first
    assert do(wall, "cat b.txt; git rev-parse HEAD; git branch --show-current; git status --porcelain") == (
        f"2\n{first}\nmain\n"
    )


def test_a_commit_that_the_branch_has_lost_is_fetched_by_its_id(
    git_server: GitServer, rooms: Rooms, wall: Wall
) -> None:
    url = with_history(git_server)
    lost = git_server.git("r", "rev-parse", "main").strip()
    git_server.git("r", "update-ref", "refs/heads/main", "main~1")
    repository = cloned(rooms, wall, spec(url), at=lost)
    assert repository.base_commit == lost
    assert do(wall, "cat b.txt") == "4\n"


@pytest.mark.parametrize("gone", ["0" * 39 + "1", "not-a-commit"])
def test_a_commit_that_is_gone_is_told_in_words(git_server: GitServer, rooms: Rooms, wall: Wall, gone: str) -> None:
    with pytest.raises(RunError, match=f"o/r no longer has the commit {gone} that this run started from") as caught:
        cloned(rooms, wall, spec(with_history(git_server)), at=gone)
    assert caught.value.type == "repository_error"
