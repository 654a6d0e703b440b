"""A's git in a tree that B has prepared for it."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox_task.workspace.repository import Repository
from sandpiper.errors import RunError
from sandpiper.models.spec import RunSpec
from tests.security.git_attacks import TRAPS, Trap
from tests.unit.sandbox.git_server import TOKEN, GitServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall

AUTHOR = ("Sandpiper", "sandpiper@example.com")
FILES = {"a.txt": "one\n", "dir/b.txt": "two\n"}


@pytest.fixture(scope="module")
def git_server(open_dir: Path) -> Iterator[GitServer]:
    with GitServer(open_dir / "git") as server:
        server.create("r", FILES)
        yield server


@pytest.fixture(scope="module")
def repository(git_server: GitServer, open_dir: Path, rooms: Rooms, wall: Wall) -> Iterator[Repository]:
    spec = RunSpec(task="t", repo="o/r", repo_url=git_server.url("r"))
    repository = Repository.clone(spec, rooms, token=TOKEN)
    yield repository
    (rooms.private / "git").rename(rooms.private / f"git-{wall.backend}")


@dataclass
class Bait:
    """What the traps are made of, new for each test; `sprung` says whether one has worked."""

    place: Path
    known: dict[str, str]

    def fill(self, command: str, root: str) -> str:
        for name, value in {**self.known, "root": root, "trap": f"{root}/trap.sh"}.items():
            command = command.replace("{" + name + "}", value)
        return command

    def sprung(self, output: str) -> bool:
        return (self.place / "fired").exists() or self.known["secret"] in output


@pytest.fixture
def bait(open_dir: Path, git_server: GitServer) -> Iterator[Bait]:
    place = open_dir / secrets.token_hex(4)
    place.mkdir()
    secret = secrets.token_hex(16)
    hidden = place / "hidden"
    hidden.mkdir(mode=0o700)
    (hidden / "secret").write_text(secret, encoding="utf-8")
    vault = hidden / "vault"
    subprocess.run(["git", "init", "--quiet", "--bare", str(vault)], check=True)
    blob = _git(vault, "hash-object", "-w", str(hidden / "secret")).strip()
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        threading.Thread(target=_fire_on_connection, args=(proxy, place / "fired"), daemon=True).start()
        known = {
            "secret": secret,
            "fired": str(place / "fired"),
            "secret_dir": str(hidden),
            "vault": str(vault),
            "blob": blob,
            "proxy": f"http://127.0.0.1:{proxy.getsockname()[1]}",
            "http": git_server.url("r"),
            "remote": str(git_server.root / "r.git"),
        }
        yield Bait(place, known)


def _fire_on_connection(proxy: socket.socket, fired: Path) -> None:
    """Before whoever came is let go, so that it is known when their git gives up."""
    try:
        visitor, _ = proxy.accept()
    except OSError:
        return  # closed: nobody came
    with visitor:
        fired.touch()


def _git(place: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(place), *arguments], capture_output=True, text=True, check=True).stdout


def _name(trap: Trap) -> str:
    return trap.name


_TRAP = "printf '#!/bin/sh\\ntouch {fired}\\nexit 1\\n' > trap.sh && chmod 755 trap.sh && "


def lay(wall: Wall, rooms: Rooms, bait: Bait, trap: Trap) -> None:
    """As B. A calls what it finds by its own path of the workspace."""
    said = bytearray()
    command = bait.fill(_TRAP + trap.plant, str(rooms.workspace))
    assert wall.run(command, timeout=30, on_output=said.extend).succeeded, said.decode()


def deliver(repository: Repository, wall: Wall) -> None:
    """A fresh workspace."""
    wall.end_all()
    wall.run("rm -rf -- * .[!.]*", timeout=30, on_output=lambda _: None)
    repository.deliver(wall)


def go_on(repository: Repository, wall: Wall, target: Path) -> str:
    """Everything that A does after B: take the tree, compare it, commit and push. What leaves is returned."""
    tree = repository.take_tree(wall)
    repository.changes(repository.base_tree, tree)
    repository.stat(tree)
    repository.write_diff(tree, target)
    commit = repository.commit(tree, "work\n", author=AUTHOR)
    repository.push(commit, f"work-{secrets.token_hex(4)}")
    return target.read_text(encoding="utf-8", errors="replace")


@pytest.mark.parametrize("trap", TRAPS, ids=_name)
def test_no_trap_in_the_repository_is_sprung(
    repository: Repository, wall: Wall, rooms: Rooms, bait: Bait, trap: Trap
) -> None:
    deliver(repository, wall)
    lay(wall, rooms, bait, trap)
    (bait.place / "fired").unlink(missing_ok=True)  # B may have walked into it itself
    left = ""
    if trap.refused:
        with pytest.raises(RunError):
            go_on(repository, wall, bait.place / "diff")
    else:
        left = go_on(repository, wall, bait.place / "diff")
    assert not bait.sprung(left)


def test_no_trap_is_sprung_when_all_are_laid_at_once(
    repository: Repository, wall: Wall, rooms: Rooms, bait: Bait
) -> None:
    deliver(repository, wall)
    plants = "; ".join(f"({trap.plant}) >/dev/null 2>&1" for trap in TRAPS if not trap.refused)
    lay(wall, rooms, bait, Trap("all", f"{plants}; true"))
    (bait.place / "fired").unlink(missing_ok=True)
    assert not bait.sprung(go_on(repository, wall, bait.place / "diff"))


@pytest.mark.parametrize("trap", TRAPS, ids=_name)
def test_the_attack_works_without_a_wall(git_server: GitServer, bait: Bait, trap: Trap) -> None:
    """The same trap for a supervisor that runs git in the workspace."""
    root = bait.place / "naive"
    _git(bait.place, "clone", "--quiet", str(git_server.root / "r.git"), str(root))
    plant = bait.fill(_TRAP + trap.plant, str(root))
    done = subprocess.run(["bash", "-c", plant], cwd=root, capture_output=True, text=True, check=False, env=_careless())
    assert done.returncode == 0, done.stderr
    (bait.place / "fired").unlink(missing_ok=True)
    naive = subprocess.run(
        ["bash", "-c", bait.fill(trap.naive, str(root))],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        env=_careless(),
        timeout=30,
    )
    assert bait.sprung(naive.stdout), naive.stdout + naive.stderr


def _careless() -> dict[str, str]:
    identity = {f"GIT_{role}_{what}": "x@x" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return {"PATH": os.environ["PATH"], "HOME": "/", "GIT_TERMINAL_PROMPT": "0", **identity}


@pytest.mark.parametrize(
    "name", ["--upload-pack=touch${IFS}NAME", "-c", "--exec=x", "$(touch${IFS}NAME)", "a;touch${IFS}NAME"]
)
def test_a_branch_with_the_name_of_an_option_is_a_name(
    git_server: GitServer, open_dir: Path, other: Rooms, wall: Wall, name: str
) -> None:
    fired = secrets.token_hex(8)
    server, name = f"s-{fired}", name.replace("NAME", fired)
    url = git_server.create(server, FILES)
    git_server.git(server, "update-ref", f"refs/heads/{name}", "main")
    git_server.git(server, "symbolic-ref", "HEAD", f"refs/heads/{name}")
    private = other.private / "git"
    if private.exists():
        private.rename(other.private / secrets.token_hex(4))
    repository = Repository.clone(RunSpec(task="t", repo="o/r", repo_url=url), other, token=TOKEN)
    deliver(repository, wall)
    wall.run("echo work > a.txt", timeout=20, on_output=lambda _: None)
    assert repository.start.name == name
    assert not [*open_dir.rglob(fired), *Path("/").glob(fired), *Path().glob(fired)]


def test_names_of_files_are_names(repository: Repository, wall: Wall, tmp_path: Path) -> None:
    deliver(repository, wall)
    names = ["--output=fired", "-x", "$(touch fired)", "a\nb", ":x", "e\x1b[2Jf"]
    script = "import sys; [open(n, 'w').write(n) for n in sys.stdin.read().split('|')]"
    wall.run(f"printf '%s' '{'|'.join(names)}' | python3 -c \"{script}\"", timeout=20, on_output=lambda _: None)
    tree = repository.take_tree(wall)
    assert {change.path for change in repository.changes(repository.base_tree, tree)} == set(names)
    repository.write_diff(tree, tmp_path / "diff")
    assert "\x1b" not in (tmp_path / "diff").read_text(encoding="utf-8").splitlines()[0]


def test_nothing_of_the_work_can_be_hidden_from_the_diff(repository: Repository, wall: Wall, tmp_path: Path) -> None:
    """By B's own index or its replaced objects."""
    deliver(repository, wall)
    hide = "echo changed > a.txt; git update-index --assume-unchanged a.txt; echo y > dir/b.txt; "
    hide += "git update-index --skip-worktree dir/b.txt; echo '*' > .git/info/exclude; echo new > new.txt; "
    hide += "git replace HEAD^{tree} $(git mktree </dev/null) -f"
    wall.run(hide, timeout=20, on_output=lambda _: None)
    tree = repository.take_tree(wall)
    assert [change.path for change in repository.changes(repository.base_tree, tree)] == [
        "a.txt",
        "dir/b.txt",
        "new.txt",
    ]


ODD_TREES = {
    "pipes in the way": ("rm -r a.txt dir && mkfifo a.txt && mkdir dir && mkfifo dir/b.txt", "can't keep"),
    "names that are no text": ("printf x > $'\\xff\\xfe' && mkdir $'d\\xc3' && printf x > $'d\\xc3/\\x01\\n'", None),
    "files that nobody may read": ("echo x > closed && chmod 000 closed && mkdir shut && chmod 000 shut", None),
}


@pytest.mark.parametrize(("make", "complaint"), ODD_TREES.values(), ids=ODD_TREES)
def test_a_tree_is_taken_or_it_is_said_why_not(
    repository: Repository, wall: Wall, tmp_path: Path, make: str, complaint: str | None
) -> None:
    deliver(repository, wall)
    wall.run(make, timeout=60, on_output=lambda _: None)
    if complaint is None:
        repository.write_diff(repository.take_tree(wall), tmp_path / "diff")
        assert (tmp_path / "diff").stat().st_size
    else:
        with pytest.raises(RunError, match=complaint):
            repository.take_tree(wall)
