"""What B could want of files that are not its own, by commands and by the tools that read and write for the model."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox_task.isolation.wall import WallError
from tests.security.attacks import Attack, attempt, must_work, python

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall
    from tests.security.attacks import Rights
    from tests.security.bare import NoWall

ATTACKS = [
    Attack("the supervisor's files by a link", "ln -sfn {private} way; cat way/secret"),
    Attack("the supervisor's files by a hard link", "ln -f {private}/secret mine; cat mine"),
    Attack("writing the supervisor's files", "touch {private}/new-$RANDOM && echo {mark} | rev"),
    Attack("renaming the rooms", "mv {private} {private}.away && mv {private}.away {private} && echo {mark} | rev"),
    Attack("another run's workspace", "cat {other}/workspace/notes", "worker"),
    Attack("another run's home", "cat {other}/home/notes", "worker"),
    Attack("writing another run's workspace", "echo x >> {other}/workspace/notes && echo {mark} | rev", "worker"),
    Attack("removing from another run", "touch {other}/home/x && rm {other}/home/x && echo {mark} | rev", "worker"),
    Attack("listing another run", "ls {other}/workspace | grep -q notes && echo {mark} | rev", "worker"),
    Attack("everybody's files", "cat {shared}/notes", "worker"),
    Attack("a drop for somebody else", "touch {shared}/drop && echo {mark} | rev", "worker"),
    Attack("a trap in everybody's directory", "ln -sfn /etc/passwd {shared}/trap && echo {mark} | rev", "worker"),
    Attack(
        "watching the supervisor's files",
        python("libc.inotify_add_watch(libc.inotify_init(), b'{private}', 0xfff) > 0 and fired()"),
    ),
    Attack("attributes of the supervisor's files", python("os.setxattr('{private}/secret', 'user.x', b'x')\nfired()")),
    Attack("the times of the supervisor's files", python("os.utime('{private}/secret', (1, 1))\nfired()")),
    Attack("the host's home", "cat {home}/*"),
    Attack("the host's accounts", "cat /etc/shadow | grep -q . && echo {mark} | rev"),
    Attack("a change of the system", "touch /usr/local/bin/x && rm /usr/local/bin/x && echo {mark} | rev"),
    Attack("a change of the settings", "touch /etc/x && rm /etc/x && echo {mark} | rev"),
    Attack("a device node", "mknod disk b 7 0 && rm disk && echo {mark} | rev"),
    Attack("a setting of the kernel", "echo -n >> /proc/sys/kernel/core_pattern && echo {mark} | rev"),
]


def _id(attack: Attack) -> str:
    return attack.name


@pytest.mark.parametrize("attack", ATTACKS, ids=_id)
def test_files_of_others_are_out_of_reach(wall: Wall, planted: dict[str, str], attack: Attack) -> None:
    outcome = attempt(wall, attack, planted)
    assert not outcome.succeeded, outcome.output


@pytest.mark.parametrize("attack", ATTACKS, ids=_id)
def test_the_attack_works_without_a_wall(
    no_wall: Callable[[Rights], NoWall], planted: dict[str, str], attack: Attack
) -> None:
    must_work(attempt(no_wall(attack.works_as), attack, planted), attack)


@pytest.mark.parametrize("path", ["link", "linked/secret", "../private/secret", "chain", "/proc/self/root/{private}/x"])
def test_a_tool_is_led_to_nothing_by_a_link(wall: Wall, rooms: Rooms, planted: dict[str, str], path: str) -> None:
    private = rooms.private
    wall.run(
        f"ln -sfn {private}/secret link; ln -sfn {private} linked; ln -sfn link chain",
        timeout=20,
        on_output=lambda _: None,
    )
    with pytest.raises(WallError):
        wall.read_file(path.replace("{private}", str(private)), limit=100)
    with pytest.raises(WallError):
        wall.write_file(path.replace("{private}", str(private)), b"overwritten")
    assert (private / "secret").read_text(encoding="utf-8") == planted["secret"]


def test_a_tool_loses_no_race_against_a_link_that_comes_and_goes(
    wall: Wall, rooms: Rooms, planted: dict[str, str]
) -> None:
    """The directory that was checked is another one when it is used: still only what B itself may do is done."""
    flip = "mkdir -p real; echo own > real/secret; touch turning; while [ -e turning ]; do "
    flip += f"ln -sfn {rooms.private} turn; rm -f turn; mv real turn 2>/dev/null; mv turn real 2>/dev/null; done"
    turning = threading.Thread(target=lambda: wall.run(flip, timeout=60, on_output=lambda _: None))
    turning.start()
    seen = {_read(wall, "turn/secret") for _ in range(300)}
    written = [_write(wall, "turn/secret") for _ in range(300)]
    (rooms.workspace / "turning").unlink(missing_ok=True)
    turning.join()
    assert planted["secret"].encode() not in seen
    assert written
    assert (rooms.private / "secret").read_text(encoding="utf-8") == planted["secret"]


def _read(wall: Wall, path: str) -> bytes:
    try:
        return wall.read_file(path, limit=100).data
    except WallError as error:
        return str(error).encode()


def _write(wall: Wall, path: str) -> str:
    try:
        wall.write_file(path, b"overwritten")
    except WallError as error:
        return str(error)
    return "written"


@pytest.mark.parametrize(
    "make",
    [
        "mkfifo special",
        "ln -s /dev/zero special",
        "mkdir special",
        "ln -s special special",
        "ln -s /proc/self/mem special",
    ],
)
def test_special_files_are_refused_at_once(wall: Wall, make: str) -> None:
    wall.run(f"rm -rf special; {make}", timeout=20, on_output=lambda _: None)
    with pytest.raises(WallError):
        wall.read_file("special", limit=100)
    with pytest.raises(WallError):
        wall.write_file("special", b"x")


def test_of_a_huge_file_only_the_part_that_was_asked_for_is_read(wall: Wall) -> None:
    wall.run("truncate -s 3G huge", timeout=20, on_output=lambda _: None)
    part = wall.read_file("huge", offset=2 * 1024**3, limit=10)
    assert (part.data, part.size) == (bytes(10), 3 * 1024**3)
    wall.run("rm huge", timeout=20, on_output=lambda _: None)


def test_the_worker_s_own_places_are_its_own(wall: Wall) -> None:
    output = bytearray()
    command = "set -e; for place in . ~ $TMPDIR /dev/shm; do t=$(mktemp -p $place); echo x > $t; rm $t; done; echo fine"
    wall.run(command, timeout=20, on_output=output.extend)
    assert output.decode() == "fine\n"


def test_the_temporary_directory_is_closed_to_others(wall: Wall, rooms: Rooms) -> None:
    output = bytearray()
    wall.run('echo "$TMPDIR"; touch "$TMPDIR/trace"', timeout=20, on_output=output.extend)
    outside = Path(output.decode().strip())
    if wall.backend == "uid":
        assert outside.is_relative_to(rooms.root)
        assert outside.stat().st_mode & 0o077 == 0
    else:
        assert not (outside / "trace").exists()


def test_what_a_command_leaves_in_its_home_is_not_run_by_the_next(wall: Wall) -> None:
    """Or the work could decide how its checks end."""
    plant = "for f in .bashrc .profile .bash_profile .bash_login .zshenv; do echo 'echo planted' > ~/$f; done; "
    plant += (
        "mkdir -p ~/.local/bin ~/bin; for b in ~/.local/bin ~/bin; do printf '#!/bin/sh\\necho planted\\n' > $b/true2; "
    )
    plant += "chmod 755 $b/true2; done; export LD_PRELOAD=~/x.so PATH=~/bin:$PATH BASH_ENV=~/.bashrc"
    said = bytearray()
    wall.run(plant, timeout=20, on_output=lambda _: None)
    wall.run("true2; sh -c true; bash -c true; echo ${LD_PRELOAD-unset}", timeout=20, on_output=said.extend)
    assert b"planted" not in said
    assert said.endswith(b"unset\n")
