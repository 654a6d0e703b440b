from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from sandbox_task.workspace.repository import Repository
from sandpiper.errors import RunError
from tests.unit.sandbox.clones import AUTHOR, cloned, do, spec
from tests.unit.sandbox.git_server import TOKEN, GitServer

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall

FILES = {"a.txt": "one\n", "dir/b.txt": "two\n", ".gitignore": "*.log\n"}


def test_the_workspace_holds_the_base_and_belongs_to_the_worker(
    git_server: GitServer, rooms: Rooms, wall: Wall
) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", FILES)))
    assert (
        do(wall, "cat a.txt dir/b.txt; git status --porcelain; git log --format=%s; touch new; rm a.txt")
        == "one\ntwo\nbase\n"
    )
    assert repository.start.name == "main"


def test_the_token_is_nowhere_in_what_the_worker_gets(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    cloned(rooms, wall, spec(git_server.create("r", FILES)))
    assert (
        do(wall, f"grep -rF {TOKEN[4:]} . || true; git remote -v; git config --list --local | grep -i url || true")
        == ""
    )


def test_the_token_is_in_no_setting_of_our_own_repository(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", FILES)))
    assert TOKEN not in (repository.git.git_dir / "config").read_text(encoding="utf-8")


def test_a_wrong_token_is_told_in_words(git_server: GitServer, rooms: Rooms) -> None:
    with pytest.raises(RunError, match="refused the access") as caught:
        Repository.clone(spec(git_server.create("r", FILES)), rooms, token="wrong")
    assert caught.value.type == "repository_error"


def test_a_missing_token_is_told_in_words(git_server: GitServer, rooms: Rooms) -> None:
    with pytest.raises(RunError, match="refused the access"):
        Repository.clone(spec(git_server.create("r", FILES)), rooms, token=None)


def test_a_repository_that_does_not_exist_is_told_in_words(git_server: GitServer, rooms: Rooms) -> None:
    with pytest.raises(RunError, match="There is no repository o/r"):
        Repository.clone(spec(git_server.url("nothing")), rooms, token=TOKEN)


def test_a_server_that_is_away_is_told_in_words_and_may_be_tried_again(rooms: Rooms) -> None:
    with pytest.raises(RunError, match="could not be reached") as caught:
        Repository.clone(spec("http://127.0.0.1:9/r.git"), rooms, token=TOKEN)
    assert caught.value.retryable


def test_another_protocol_than_the_repositorys_own_is_refused(rooms: Rooms, tmp_path: Path) -> None:
    with pytest.raises(RunError):
        Repository.clone(spec(f"ext::sh -c touch% {tmp_path}/fired"), rooms, token=TOKEN)
    assert not (tmp_path / "fired").exists()


def test_a_base_that_is_not_there_is_named(git_server: GitServer, rooms: Rooms) -> None:
    with pytest.raises(RunError, match="no branch or tag 'v9'"):
        Repository.clone(spec(git_server.create("r", FILES), base="v9"), rooms, token=TOKEN)


@pytest.mark.parametrize("name", ["--upload-pack=touch fired", "a..b", "x y", "-"])
def test_a_branch_that_is_no_name_is_refused(git_server: GitServer, rooms: Rooms, name: str) -> None:
    url = git_server.create("r", FILES)
    with pytest.raises(RunError, match=r"is no name that a branch can have|no branch or tag"):
        Repository.clone(spec(url, base=name), rooms, token=TOKEN)


def test_work_starts_from_the_base_that_was_asked_for(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    url = git_server.create("r", FILES)
    git_server.push("r", {"a.txt": "other\n"}, branch="dev")
    cloned(rooms, wall, spec(url, base="dev"))
    assert do(wall, "cat a.txt; git branch --show-current") == "other\ndev\n"


def test_a_commit_can_be_the_base(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    url = git_server.create("r", FILES)
    first = git_server.git("r", "rev-parse", "main").strip()
    git_server.push("r", {"a.txt": "newer\n"})
    git_server.git("r", "config", "uploadpack.allowAnySHA1InWant", "true")
    repository = cloned(rooms, wall, spec(url, base=first))
    assert repository.base_commit == first
    assert do(wall, "cat a.txt") == "one\n"


def test_a_branch_that_exists_is_continued(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    url = git_server.create("r", FILES)
    tip = git_server.push("r", {"a.txt": "continued\n"}, branch="work")
    repository = cloned(rooms, wall, spec(url, branch="work"))
    assert (repository.base_commit, repository.start.continues_branch) == (tip, True)


def test_an_empty_repository_can_be_filled(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r")))
    do(wall, "echo first > README")
    commit = repository.commit(repository.take_tree(wall), "first\n", author=AUTHOR)
    repository.push(commit, "main")
    assert git_server.git("r", "show", "main:README") == "first\n"


def test_without_a_repository_there_is_an_empty_workspace(rooms: Rooms, wall: Wall) -> None:
    repository = cloned(rooms, wall, spec(None))
    do(wall, "echo x > f; git add f; git status")
    assert repository.changes(repository.base_tree, repository.take_tree(wall))[0].path == "f"


def test_the_tree_has_new_deleted_renamed_binary_and_mode_changes(
    git_server: GitServer, rooms: Rooms, wall: Wall, tmp_path: Path
) -> None:
    files = {**FILES, "gone": "x\n", "tool": "#!/bin/sh\n", "old": "".join(f"line {n}\n" for n in range(20))}
    repository = cloned(rooms, wall, spec(git_server.create("r", files)))
    do(
        wall,
        "rm gone; chmod +x tool; mv old new; printf 'a\\0b' > bin; echo more >> a.txt; echo no > hidden.log;"
        "mkdir -p __pycache__; touch __pycache__/x.pyc",
    )
    tree = repository.take_tree(wall)
    repository.write_diff(tree, tmp_path / "diff")
    diff = (tmp_path / "diff").read_text(encoding="utf-8")
    for sign in (
        "deleted file mode",
        "old mode 100644\nnew mode 100755",
        "rename from old\nrename to new",
        "GIT binary patch",
        "+more",
    ):
        assert sign in diff
    assert "hidden.log" not in diff
    assert "__pycache__" not in diff
    stat = repository.stat(tree)
    assert (stat.files, stat.insertions, stat.deletions) == (5, 1, 1), "as the diff has it: what was moved is one file"
    assert diff.count("diff --git ") == stat.files


def test_the_diff_can_be_applied_to_the_base(git_server: GitServer, rooms: Rooms, wall: Wall, tmp_path: Path) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", FILES)))
    do(wall, "echo more >> a.txt; printf 'a\\0b' > bin; git mv dir/b.txt c.txt")
    tree = repository.take_tree(wall)
    repository.write_diff(tree, tmp_path / "diff")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(git_server.root / "r.git"), str(clone)], check=True)
    subprocess.run(["git", "-C", str(clone), "apply", "--index", str(tmp_path / "diff")], check=True)
    applied = subprocess.run(["git", "-C", str(clone), "write-tree"], check=True, capture_output=True, text=True)
    assert applied.stdout.strip() == tree


def test_file_names_may_be_anything(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", FILES)))
    do(wall, "touch 'with space' 'quote\"d' $'new\\nline' $'\\xff\\xfe' -- -dash")
    paths = {change.path for change in repository.changes(repository.base_tree, repository.take_tree(wall))}
    assert paths == {"with space", 'quote"d', "new\nline", "\udcff\udcfe", "-dash"}


def test_files_that_the_worker_closed_are_taken_all_the_same(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", FILES)))
    do(wall, "echo x > closed; chmod 000 closed; mkdir shut; echo y > shut/f; chmod 000 shut")
    assert {"closed", "shut/f"} <= set(repository.paths(repository.take_tree(wall)))


def test_the_push_makes_one_new_branch_and_moves_no_other(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", FILES)))
    do(wall, "echo more >> a.txt")
    commit = repository.commit(repository.take_tree(wall), "feat: more\n\nSandpiper-Run: x\n", author=AUTHOR)
    repository.push(commit, "sandpiper/x")
    assert git_server.branches("r") == ["main", "sandpiper/x"]
    assert git_server.git("r", "log", "-1", "--format=%an <%ae>|%s|%P", "sandpiper/x") == (
        f"Sandpiper <sandpiper@example.com>|feat: more|{repository.base_commit}\n"
    )


def test_a_branch_that_moved_meanwhile_is_not_overwritten(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    url = git_server.create("r", FILES)
    git_server.push("r", {"a.txt": "1\n"}, branch="work")
    repository = cloned(rooms, wall, spec(url, branch="work"))
    tip = git_server.push("r", {"a.txt": "2\n"}, branch="work")
    do(wall, "echo mine > a.txt")
    commit = repository.commit(repository.take_tree(wall), "m\n", author=AUTHOR)
    with pytest.raises(RunError, match="has moved since this run began"):
        repository.push(commit, "work")
    assert git_server.git("r", "rev-parse", "work").strip() == tip


def test_what_is_planted_in_the_workspaces_own_git_never_runs(
    git_server: GitServer, rooms: Rooms, wall: Wall, open_dir: Path
) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", FILES)))
    fired = open_dir / "fired"
    trap = f"#!/bin/sh\\ntouch {fired}\\n"
    do(
        wall,
        f"""printf '{trap}' > trap; chmod 755 trap; mkdir -p .git/hooks
        for hook in pre-commit post-commit pre-push post-index-change post-checkout; do cp trap .git/hooks/$hook; done
        git config core.fsmonitor "$PWD/trap"; git config core.hooksPath "$PWD"; git config diff.external "$PWD/trap"
        git config filter.x.clean "$PWD/trap"; git config diff.x.textconv "$PWD/trap"
        echo '* filter=x diff=x' > .gitattributes
        git config core.sshCommand "$PWD/trap"; git config credential.helper "$PWD/trap"; git config core.worktree /
        """,
    )
    commit = repository.commit(repository.take_tree(wall), "m\n", author=AUTHOR)
    repository.write_diff(repository.base_tree, rooms.private / "d")
    repository.push(commit, "x")
    assert not fired.exists()
    assert "x" in git_server.branches("r")


def test_a_repository_inside_the_repository_is_refused(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", FILES)))
    do(wall, "git init -q inner && cd inner && git -c user.name=a -c user.email=b commit -q --allow-empty -m x")
    with pytest.raises(RunError, match="a git repository of its own in inner"):
        repository.take_tree(wall)


def test_a_repository_in_an_ignored_directory_is_no_concern(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", {**FILES, ".gitignore": "vendor/\n"})))
    do(wall, "mkdir vendor; git init -q vendor/inner")
    assert repository.take_tree(wall) == repository.base_tree


def test_a_link_to_our_files_is_committed_as_a_link(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", FILES)))
    do(wall, f"ln -s {rooms.private}/token leak; rm -r dir; ln -s {rooms.private} dir")
    tree = repository.take_tree(wall)
    assert repository.show(tree, "leak") == f"{rooms.private}/token".encode()
    assert repository.paths(tree).count("dir") == 1


def test_the_workspace_can_be_set_to_the_base_and_back(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", FILES)))
    do(wall, "echo more >> a.txt; rm dir/b.txt; echo n > new; echo kept > x.log")
    tree = repository.take_tree(wall)
    repository.restore(wall, present=tree, wanted=repository.base_tree)
    assert do(wall, "cat a.txt dir/b.txt x.log; ls new 2>&1 || true").startswith("one\ntwo\nkept\n")
    repository.restore(wall, present=repository.base_tree, wanted=tree)
    assert do(wall, "cat a.txt new x.log; ls dir 2>/dev/null || true") == "one\nmore\nn\nkept\n"
    assert repository.take_tree(wall) == tree
