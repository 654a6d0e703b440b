from __future__ import annotations

import os
import shutil
import socket
from typing import TYPE_CHECKING

import pytest

from sandbox_task.isolation.choose import put_up_wall
from sandbox_task.isolation.wall import WallError
from sandpiper.errors import RunError
from tests.unit.sandbox.behind_wall import outcome, said

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall


def test_a_command_is_a_real_shell_with_pipes_and_an_exit_code(wall: Wall) -> None:
    completed, output = outcome(wall, "echo one | tr o 0 && cat <<X\ntwo\nX\nexit 7")
    assert (completed.exit_code, completed.ended_by, output) == (7, "itself", "0ne\ntwo\n")


def test_both_streams_arrive_and_input_is_empty(wall: Wall) -> None:
    assert said(wall, "cat; echo out; echo err >&2") == "out\nerr\n"


def test_the_streams_can_be_opened_by_their_names(wall: Wall) -> None:
    assert (
        said(wall, "echo out > /dev/stdout; echo err > /dev/stderr; echo tee | tee /dev/stderr")
        == "out\nerr\ntee\ntee\n"
    )


def test_commands_run_as_a_user_without_any_privilege(wall: Wall) -> None:
    status = said(wall, "cat /proc/self/status")
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["Uid"].split()[0] not in {"0", ""}
    assert [int(fields[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")] == [0, 0, 0, 0]
    assert fields["NoNewPrivs"] == "1"


def test_nothing_of_our_environment_reaches_a_command(wall: Wall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "planted-secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted-secret")
    names = {line.partition("=")[0] for line in said(wall, "env").splitlines()}
    assert names <= {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "LANG", "TERM", "CI", "PAGER", "PWD", "SHLVL", "_"),
        *("GIT_TERMINAL_PROMPT", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "OLDPWD", "ASAN_OPTIONS"),
    }


def test_our_environment_and_memory_can_not_be_read_from_inside(wall: Wall) -> None:
    script = "for p in /proc/[0-9]*; do cat $p/environ 2>/dev/null | tr '\\0' '\\n'; done"
    assert f"PYTEST_CURRENT_TEST={os.environ['PYTEST_CURRENT_TEST']}" not in said(wall, script)
    completed, _ = outcome(wall, f"head -c 1 /proc/{os.getpid()}/mem")
    assert not completed.succeeded


def test_our_private_files_can_not_be_read_from_inside(wall: Wall, rooms: Rooms) -> None:
    (rooms.private / "token").write_text("planted-secret", encoding="utf-8")
    completed, output = outcome(wall, f"cat {rooms.private}/token; ls -la {rooms.private}; cat ../private/token")
    assert not completed.succeeded
    assert "planted-secret" not in output


def test_descriptors_of_ours_are_not_inherited(wall: Wall) -> None:
    targets = said(wall, "ls -l /proc/self/fd | sed 's/.*-> //'").split()
    assert all(
        target.startswith(("pipe:", "/dev/null", "/proc/")) for target in targets if "/" in target or ":" in target
    )


def test_output_that_is_larger_than_any_buffer_arrives_whole(wall: Wall) -> None:
    assert len(said(wall, "head -c 5000000 /dev/zero | tr '\\0' x")) == 5_000_000


def test_a_directory_that_is_not_there_is_said_so(wall: Wall) -> None:
    with pytest.raises(WallError, match=r"No such file or directory: .*/nowhere"):
        said(wall, "true", cwd="nowhere")
    assert said(wall, "echo on") == "on\n"


def test_files_are_written_and_read_as_the_worker(wall: Wall, rooms: Rooms) -> None:
    wall.write_file("deep/er/file.bin", b"\0\xff text")
    assert wall.read_file("deep/er/file.bin", limit=100).data == b"\0\xff text"
    part = wall.read_file("deep/er/file.bin", offset=3, limit=2)
    assert (part.data, part.size) == (b"te", 7)
    assert (rooms.workspace / "deep").stat().st_uid == rooms.workspace.stat().st_uid


def test_a_file_that_becomes_shorter_keeps_no_old_end(wall: Wall) -> None:
    wall.write_file("f", b"long content")
    wall.write_file("f", b"short")
    assert wall.read_file("f", limit=100).data == b"short"


@pytest.mark.parametrize("path", ["/etc/passwd", "../private/log.txt", "link", "dir/../../x", "linked/new"])
def test_a_path_that_leads_out_of_the_workspace_is_refused(wall: Wall, rooms: Rooms, path: str) -> None:
    said(wall, f"ln -s {rooms.private}/secret link; ln -s / linked; mkdir dir")
    with pytest.raises(WallError, match="outside the workspace"):
        wall.read_file(path, limit=10)
    with pytest.raises(WallError, match="outside the workspace"):
        wall.write_file(path, b"x")


def test_a_link_within_the_workspace_may_be_followed(wall: Wall) -> None:
    said(wall, "echo hi > real; ln -s real link")
    assert wall.read_file("link", limit=10).data == b"hi\n"


def test_special_files_are_refused_and_do_not_hang(wall: Wall) -> None:
    said(wall, "mkfifo fifo; mkdir directory")
    for path in ("fifo", "directory"):
        with pytest.raises(WallError):
            wall.read_file(path, limit=10)


def test_the_bwrap_wall_has_no_network(rooms: Rooms) -> None:
    wall = put_up_wall("bwrap", rooms, tools=None, worker_uid=10002)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        completed, _ = outcome(wall, f"exec 3<>/dev/tcp/127.0.0.1/{port}")
    wall.close()
    assert not completed.succeeded


def test_tools_are_read_only_and_come_first(rooms: Rooms, open_dir: Path) -> None:
    tool = open_dir / "tools" / "bin" / "git"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\necho the tool\n", encoding="utf-8")
    tool.chmod(0o755)
    wall = put_up_wall("bwrap", rooms, tools=open_dir / "tools", worker_uid=10002)
    output = said(wall, f"git; rm {tool}")
    wall.close()
    assert output.startswith("the tool\n")
    assert tool.exists()


def test_without_any_wall_the_run_is_refused_with_what_to_install(
    rooms: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(RunError, match=r"Install bubblewrap .*bwrap: bwrap is not installed; uid: setpriv"):
        put_up_wall(None, rooms, tools=None, worker_uid=10002)
