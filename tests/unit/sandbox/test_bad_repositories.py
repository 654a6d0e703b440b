"""Repositories as they should not be, but are: each is worked on, or refused in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandbox_task.agent.context.collect import collect
from sandbox_task.workspace.repository import Repository
from sandpiper import limits
from sandpiper.errors import RunError
from tests.unit.sandbox.clones import AUTHOR, cloned, do, spec
from tests.unit.sandbox.git_server import TOKEN

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall
    from tests.unit.sandbox.git_server import GitServer
# for what takes long and has nothing to do with the wall
ONE_WALL = pytest.mark.parametrize("wall", ["bwrap"], indirect=True)


def made(server: GitServer, script: str) -> str:
    url = server.create("r")
    server.shell("r", script)
    return url


def pushed(repository: Repository, wall: Wall) -> None:
    repository.push(repository.commit(repository.take_tree(wall), "m\n", author=AUTHOR), "out")


def test_without_a_default_branch_the_branches_are_named(git_server: GitServer, rooms: Rooms) -> None:
    url = git_server.create("r", {"a": "a"})
    git_server.push("r", {"a": "b"}, branch="dev")
    git_server.git("r", "symbolic-ref", "HEAD", "refs/heads/nowhere")
    with pytest.raises(RunError, match=r"o/r has no default branch: name one of its 2 with `base` \(dev, main\)\."):
        Repository.clone(spec(url), rooms, token=TOKEN)


def test_an_only_branch_is_the_default(git_server: GitServer, rooms: Rooms) -> None:
    url = git_server.create("r")
    tip = git_server.push("r", {"a": "b"}, branch="dev")
    repository = Repository.clone(spec(url), rooms, token=TOKEN)
    assert (repository.base_commit, repository.start.name) == (tip, "dev")


def test_a_head_without_a_branch_is_a_start_too(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    url = git_server.create("r", {"a": "a\n"})
    first = git_server.git("r", "rev-parse", "main").strip()
    git_server.push("r", {"a": "b\n"})
    git_server.git("r", "update-ref", "--no-deref", "HEAD", first)
    repository = cloned(rooms, wall, spec(url))
    assert repository.base_commit == first
    assert do(wall, "cat a; git log --oneline | wc -l") == "a\n1\n"


def test_names_of_any_bytes_go_through_checkout_edit_and_commit(
    git_server: GitServer, rooms: Rooms, wall: Wall, tmp_path: Path
) -> None:
    names = (
        r"""'with space' 'quote"d' "apostrophe's" $'new\nline' $'\xff\xfe' -dash $'tab\t' 'dir *?[x]' '~' '$(false)'"""
    )
    script = f'for name in {names}; do mkdir -p -- "$name.d"; echo a > "./$name"; echo b > "./$name.d/f"; done'
    repository = cloned(rooms, wall, spec(made(git_server, script)))
    assert do(wall, "git status --porcelain") == ""
    assert repository.take_tree(wall) == repository.base_tree
    do(wall, "find . -type f -not -path './.git/*' -name f -exec sh -c 'echo more >> \"$1\"' _ {} \\;")
    tree = repository.take_tree(wall)
    assert len(repository.changes(repository.base_tree, tree)) == 10
    repository.restore(wall, present=tree, wanted=repository.base_tree)
    assert do(wall, "git status --porcelain") == ""
    repository.restore(wall, present=repository.base_tree, wanted=tree)
    repository.write_diff(tree, tmp_path / "diff")
    collect(repository, "Do it").text.encode()
    pushed(repository, wall)
    assert git_server.git("r", "rev-parse", "out^{tree}").strip() == tree


@pytest.mark.parametrize("attributes", ["", "* text=auto\n", "* text\n", "* text eol=crlf\n", "* ident\n"])
def test_every_byte_of_a_file_stays_as_it_is(git_server: GitServer, rooms: Rooms, wall: Wall, attributes: str) -> None:
    url = made(
        git_server,
        f"""printf 'one\r\ntwo\nthree\r$Id$\n' > mixed; printf 'a\r\nb\r\n' > crlf
        printf '{attributes}' > .gitattributes; printf '* -text -ident\n' > .git/info/attributes""",
    )
    repository = cloned(rooms, wall, spec(url))
    assert do(wall, "cat mixed") == "one\r\ntwo\nthree\r$Id$\n"
    assert do(wall, "git status --porcelain") == ""
    assert repository.take_tree(wall) == repository.base_tree
    do(wall, "printf 'c\\r\\n' >> crlf")
    assert repository.show(repository.take_tree(wall), "crlf") == b"a\r\nb\r\nc\r\n"


def test_a_file_of_a_filter_stays_the_pointer_that_it_is(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    files = {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "big.bin": pointer}
    repository = cloned(rooms, wall, spec(git_server.create("r", files)))
    assert do(wall, "cat big.bin; git status --porcelain") == pointer
    assert repository.take_tree(wall) == repository.base_tree


def test_links_and_executable_bits_survive(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    url = made(
        git_server,
        "echo a > a; ln -s nowhere dangling; ln -s /etc/passwd absolute; mkdir d; ln -s ../d d/loop; chmod +x a",
    )
    repository = cloned(rooms, wall, spec(url))
    assert do(wall, "readlink dangling absolute d/loop; test -x a; git status --porcelain") == (
        "nowhere\n/etc/passwd\n../d\n"
    )
    assert repository.take_tree(wall) == repository.base_tree


def test_a_link_that_became_a_file_can_be_set_back(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    repository = cloned(rooms, wall, spec(made(git_server, "echo target > t; ln -s t link; mkdir d; echo x > d/x")))
    do(wall, "rm link; echo file > link; rm -r d; echo file > d")
    tree = repository.take_tree(wall)
    repository.restore(wall, present=tree, wanted=repository.base_tree)
    assert repository.take_tree(wall) == repository.base_tree
    repository.restore(wall, present=repository.base_tree, wanted=tree)
    assert repository.take_tree(wall) == tree
    assert do(wall, "cat t") == "target\n"


SUBMODULE = """git init -q ../inner && git -C ../inner commit -q --allow-empty -m i
git -c protocol.file.allow=always submodule --quiet add ../inner sub 2>/dev/null; echo a > a"""


def test_submodules_stay_as_they_are_and_that_is_said(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    repository = cloned(rooms, wall, spec(made(git_server, SUBMODULE)))
    assert repository.warnings == ["Submodules are not checked out and stay as they are: sub."]
    assert "Submodules, empty here: sub." in collect(repository, "Do it").text
    do(wall, "git status --porcelain; rmdir sub; echo b > a")
    changed = repository.changes(repository.base_tree, repository.take_tree(wall))
    assert [(each.status, each.path) for each in changed] == [("M", "a")]


def test_a_file_in_the_place_of_a_submodule_is_refused(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    repository = cloned(rooms, wall, spec(made(git_server, SUBMODULE)))
    do(wall, "rmdir sub; echo file > sub")
    with pytest.raises(RunError, match=r"adds or moves a submodule \(sub\)"):
        repository.take_tree(wall)


@ONE_WALL
def test_a_huge_file_that_is_not_touched_costs_nothing(
    git_server: GitServer, rooms: Rooms, wall: Wall, tmp_path: Path
) -> None:
    size = limits.MAX_PATCH_FILE_BYTES + 1  # beyond every limit for the content of a file
    url = made(git_server, f"git config core.compression 1; truncate -s {size} huge.txt; echo a > a")
    repository = cloned(rooms, wall, spec(url))
    context = collect(repository, "Look at huge.txt")
    assert (context.included, context.omitted) == ((), ("huge.txt",))
    do(wall, "echo b > a")
    tree = repository.take_tree(wall)
    repository.write_diff(tree, tmp_path / "diff")
    assert (tmp_path / "diff").stat().st_size < 1000
    pushed(repository, wall)
    assert git_server.git("r", "cat-file", "-s", "out:huge.txt") == f"{size}\n"


def test_a_huge_file_that_was_changed_is_named_in_the_diff_without_its_content(
    git_server: GitServer, rooms: Rooms, wall: Wall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_PATCH_FILE_BYTES", 1000)
    repository = cloned(rooms, wall, spec(made(git_server, "truncate -s 2000 huge; echo a > a")))
    do(wall, "echo >> huge; echo b > a; truncate -s 2000 new; echo n >> new")
    repository.write_diff(repository.take_tree(wall), tmp_path / "diff")
    diff = (tmp_path / "diff").read_text(encoding="utf-8")
    assert "Binary files a/huge and b/huge differ" in diff
    assert "Binary files /dev/null and b/new differ" in diff
    assert "+b" in diff
    assert "GIT binary patch" not in diff


def test_a_file_of_ours_that_is_too_large_is_refused_with_its_size(git_server: GitServer, rooms: Rooms) -> None:
    url = git_server.create("r", {".sandpiper.yml": "x" * 2000})
    repository = Repository.clone(spec(url), rooms, token=TOKEN)
    with pytest.raises(RunError, match=r"\.sandpiper\.yml in the repository is too large to be read: 2000 bytes"):
        repository.show(repository.base_tree, ".sandpiper.yml", at_most=1000)


MANY = r"""awk 'BEGIN {
    print "commit refs/heads/many\ncommitter A <a@b> 1 +0000\ndata 1\nx"
    for (d = 1; d <= 100; d++) for (n = 1; n <= 300; n++) {
        text = d "." n
        printf "M 100644 inline p%d/q/f%d\ndata %d\n%s\n", d, n, length(text), text
    }
}' | git -C ../r.git fast-import --quiet"""


@ONE_WALL
def test_thirty_thousand_files_are_cloned_told_and_committed(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    url = made(git_server, MANY)
    repository = cloned(rooms, wall, spec(url, base="many"))
    context = collect(repository, "Change p7/q/f7")
    assert context.files == 30_000
    assert "p7/q/f7" in context.included
    assert context.tokens < limits.CONTEXT_TOKENS
    do(wall, "echo more >> p7/q/f7; rm -r p8")
    tree = repository.take_tree(wall)
    assert len(repository.changes(repository.base_tree, tree)) == 301
    pushed(repository, wall)
    assert git_server.git("r", "rev-parse", "out^{tree}").strip() == tree
