from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import pytest

from sandbox_task.isolation import landlock, processes
from sandbox_task.isolation.choose import put_up_wall
from sandbox_task.isolation.landlock import knows_scopes
from sandbox_task.isolation.launch import open_rooms
from sandbox_task.isolation.processes import Process
from sandbox_task.isolation.wall import WallError
from tests.unit.sandbox.behind_wall import (
    NAP,
    OTHER_NAP,
    WITHOUT_FIRST_THREAD,
    Background,
    outcome,
    processes_with,
    said,
    wait_for,
)

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Completed, Wall


def test_a_timeout_leaves_nothing_alive_not_even_a_daemon(wall: Wall, rooms: Rooms) -> None:
    completed, _ = outcome(wall, f"(setsid sh -c '{NAP} & exec {NAP}' &) ; touch started; {NAP}", timeout=1)
    assert completed.ended_by == "timeout"
    assert completed.exit_code is None
    assert (rooms.workspace / "started").exists()
    assert processes_with(NAP) == []


def test_two_commands_run_at_the_same_time_with_their_own_output(wall: Wall) -> None:
    meet = "touch {0}; for _ in $(seq 1000); do [ -e {1} ] && break; sleep 0.01; done; echo {0} saw $(ls {1})"
    outputs: dict[str, str] = {}
    threads = [
        threading.Thread(target=lambda me=me, other=other: outputs.update({me: said(wall, meet.format(me, other))}))
        for me, other in (("left", "right"), ("right", "left"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert outputs == {"left": "left saw right\n", "right": "right saw left\n"}


ESCAPES = {
    "double fork": f"(setsid sh -c '{NAP} & exec {NAP}' &)",
    "nohup without environment": f"nohup env -i /bin/sh -c '{NAP} & {NAP}' >/dev/null 2>&1 &",
    "a runner that never stays": "r() { sleep 0.01; r & }; r &",
    "threads without their first one": f"setsid python3 -c '{WITHOUT_FIRST_THREAD}' '{NAP}' &",
    "fork bomb": f"ulimit -u 200; b() {{ b | b & {NAP}; }}; b 2>/dev/null &",
}


@pytest.mark.parametrize("escape", ESCAPES.values(), ids=ESCAPES.keys())
def test_a_timeout_ends_all_of_that_command_and_nothing_of_another(wall: Wall, rooms: Rooms, escape: str) -> None:
    kept = Background(wall, f"{OTHER_NAP}; echo never")
    said(wall, f"setsid {OTHER_NAP}1 >/dev/null 2>&1 &")
    completed, _ = outcome(wall, f"touch started; {escape}\nwhile :; do sleep 0.05; done # {NAP}", timeout=1)
    assert completed.ended_by == "timeout"
    assert (rooms.workspace / "started").exists()
    assert processes_with(NAP) == []
    assert processes_with(f"{OTHER_NAP}1") != []
    assert kept.process.wait(0) is None


def test_ending_a_background_process_reaches_what_outlived_it(wall: Wall) -> None:
    background = Background(wall, f"(setsid {NAP} >/dev/null 2>&1 &); echo gone")
    ended = background.process.wait(10)
    assert (ended and ended.exit_code, background.output) == (0, b"gone\n")
    assert processes_with(NAP) != []
    background.process.end()
    assert processes_with(NAP) == []


def test_ending_a_process_that_is_over_ends_nothing_that_came_after_it(wall: Wall) -> None:
    first = Background(wall, "true")
    first.process.wait(10)
    second = Background(wall, NAP)
    first.process.end()
    assert second.process.wait(0) is None
    assert said(wall, "echo on") == "on\n"


def test_a_background_process_that_is_ended_says_so_after_its_last_output(wall: Wall, rooms: Rooms) -> None:
    background = Background(wall, f"echo first; touch started; {NAP}")
    wait_for("the start", rooms.workspace / "started")
    background.process.end()
    assert background.ended.wait(10)
    ended = background.process.wait(0)
    assert (ended and ended.ended_by, background.output) == ("interrupt", b"first\n")


def test_what_can_not_start_in_the_background_is_told_to_who_waits(wall: Wall) -> None:
    background = Background(wall, "echo a\0b")
    with pytest.raises(WallError, match="null byte"):
        background.process.wait(10)
    assert said(wall, "echo on") == "on\n"


def test_ending_everything_ends_background_processes_too_and_tells_it(wall: Wall) -> None:
    background = Background(wall, f"echo first; {NAP}")
    wall.end_all()
    assert background.ended.is_set()
    ended = background.process.wait(0)
    assert ended is not None
    assert ended.ended_by == "interrupt"
    assert processes_with(NAP) == []
    assert said(wall, "echo on") == "on\n"


def test_a_command_may_follow_at_once_when_everything_was_ended(wall: Wall) -> None:
    for _ in range(20):
        wall.end_all()
        assert said(wall, "echo on") == "on\n"


def test_an_interrupt_of_a_background_process_is_a_ctrl_c(wall: Wall, rooms: Rooms) -> None:
    background = Background(wall, "trap 'echo asked; exit 3' INT; touch started; while :; do sleep 0.05; done")
    wait_for("the start", rooms.workspace / "started")
    background.process.interrupt()
    ended = background.process.wait(10)
    assert (ended and ended.exit_code, background.output) == (3, b"asked\n")


def test_a_command_that_leaves_a_talker_behind_has_ended_all_the_same(wall: Wall) -> None:
    completed, output = outcome(wall, "echo first; yes &")
    assert (completed.exit_code, output[:6]) == (0, "first\n")


def test_a_command_that_kills_its_keeper_costs_no_other_command_anything(wall: Wall) -> None:
    kept = Background(wall, OTHER_NAP)
    completed, _ = outcome(wall, f"(setsid {NAP} &); kill -9 $PPID; {NAP}")
    assert completed.ended_by == "wall_lost"
    assert processes_with(NAP) == []
    assert kept.process.wait(0) is None
    assert said(wall, "echo on") == "on\n"


def test_a_command_that_kills_its_own_shell_is_reported_by_the_signal(wall: Wall) -> None:
    completed, output = outcome(wall, "echo before; kill -9 $$; echo after")
    assert (completed.exit_code, completed.ended_by, output) == (-9, "itself", "before\n")


def test_a_command_that_kills_all_it_can_costs_only_what_ran(rooms: Rooms) -> None:
    """Not with the backend `uid`, where it would end the other tests of this machine, which share the user."""
    wall = put_up_wall("bwrap", rooms, tools=None, worker_uid=10002)
    background = Background(wall, NAP)
    completed, _ = outcome(wall, f"kill -9 -1; {NAP}")
    assert completed.ended_by == "wall_lost"
    assert background.ended.wait(10)
    assert said(wall, "echo on") == "on\n"
    wall.close()


def test_a_command_can_not_use_the_executors_descriptors(wall: Wall) -> None:
    executor = "$(sed 's/.*) . \\([0-9]*\\).*/\\1/' /proc/$PPID/stat)"
    completed, output = outcome(wall, f"for p in $PPID {executor}; do ls /proc/$p/fd; cat /proc/$p/environ; done")
    assert not completed.succeeded
    assert output.count("Permission denied") == 4


def test_what_is_not_text_for_the_system_is_refused_in_words(wall: Wall) -> None:
    for path in ("a\0b", "\ud800"):
        with pytest.raises(WallError):
            wall.read_file(path, limit=10)
        with pytest.raises(WallError):
            said(wall, f"echo {path}")
    assert said(wall, "echo on") == "on\n"


def test_an_interrupt_from_another_thread_ends_the_command_at_once(wall: Wall, rooms: Rooms) -> None:
    results: list[Completed] = []
    thread = threading.Thread(target=lambda: results.append(outcome(wall, f"touch started; {NAP}")[0]))
    thread.start()
    wait_for("the start", rooms.workspace / "started")
    wall.interrupt()
    thread.join(10)
    assert [result.ended_by for result in results] == ["interrupt"]
    assert processes_with(NAP) == []
    assert said(wall, "echo on") == "on\n"


def test_closing_the_wall_ends_what_runs_in_the_background(wall: Wall) -> None:
    said(wall, f"(setsid {NAP} >/dev/null 2>&1 &)")
    assert processes_with(NAP) != []
    wall.close()
    assert processes_with(NAP) == []


def test_a_command_that_kills_the_executor_costs_only_itself(wall: Wall) -> None:
    completed, _ = outcome(wall, f"kill -9 $PPID; {NAP}")
    assert completed.ended_by == "wall_lost"
    assert said(wall, "echo back") == "back\n"
    assert processes_with(NAP) == []


def test_a_command_for_an_executor_that_has_just_died_is_run_by_the_next(wall: Wall) -> None:
    channel = wall._wall._raised.channel  # type: ignore[attr-defined]
    channel._sock.shutdown(socket.SHUT_WR)
    assert not channel.is_lost
    assert said(wall, "echo on") == "on\n"


def test_a_fork_bomb_is_ended_by_the_timeout(wall: Wall) -> None:
    completed, _ = outcome(wall, f"ulimit -u 60; b() {{ b | b & {NAP}; }}; b 2>/dev/null", timeout=1)
    wall.end_all()
    assert completed.ended_by in {"timeout", "itself"}
    assert processes_with(NAP) == []
    assert said(wall, "echo on") == "on\n"


RUNNER = """
import os, time
last = time.time() + 20  # so that a test that fails leaves nobody behind
for _ in range(3):
    os.fork()
beat = os.open("beat", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
while time.time() < last:
    os.write(beat, b"x")
    if os.fork():
        os._exit(0)
    os.setsid()
"""
WAKER = "while :; do kill -CONT -1; done"


def _stands_still(beat: Path) -> bool:
    """Nobody writes to it: who forks and leaves without pause is not seen in /proc."""
    before = beat.stat().st_size
    time.sleep(0.1)
    return beat.stat().st_size == before


@pytest.mark.parametrize("helper", ["", f"({WAKER}) & ({WAKER}) &"], ids=["alone", "with others that wake it"])
def test_nobody_outruns_the_end_by_forking_and_leaving(wall: Wall, rooms: Rooms, helper: str) -> None:
    wall.write_file("runner.py", RUNNER.encode())
    command = f"{helper} python3 runner.py & until [ -s beat ]; do sleep 0.01; done"
    assert said(wall, command) == ""
    assert not _stands_still(rooms.workspace / "beat")
    wall.end_all()
    assert _stands_still(rooms.workspace / "beat")


def test_nobody_outruns_the_end_of_its_own_command(wall: Wall, rooms: Rooms) -> None:
    kept = Background(wall, NAP)
    wall.write_file("runner.py", RUNNER.encode())
    command = "python3 runner.py & until [ -s beat ]; do sleep 0.01; done; sleep 1000"
    assert outcome(wall, command, timeout=1)[0].ended_by == "timeout"
    assert _stands_still(rooms.workspace / "beat")
    assert kept.process.wait(0) is None


def test_nobody_outruns_the_wall_by_killing_the_executor_first(wall: Wall, rooms: Rooms) -> None:
    if not knows_scopes():
        pytest.skip("this kernel can't keep the broker from B")
    wall.write_file("runner.py", RUNNER.encode())
    command = "python3 runner.py & until [ -s beat ]; do sleep 0.01; done; kill -9 $(ps -o ppid= -p $PPID); sleep 1000"
    assert outcome(wall, command)[0].ended_by == "wall_lost"
    assert said(wall, "echo on") == "on\n"
    assert _stands_still(rooms.workspace / "beat")


def test_when_the_end_of_all_is_told_nothing_is_alive_also_when_nobody_was_left_to_end_it(wall: Wall) -> None:
    """What is published next must not change any more. Whoever is late would be so in some of many rounds only."""
    crowd = f"for _ in $(seq 60); do {NAP} & kill -STOP $!; done"
    for _ in range(12):
        outcome(wall, f"{crowd}; kill -9 $(ps -o ppid= -p $PPID); sleep 1000")
        wall.end_all()
        assert processes_with(NAP) == []


def test_who_is_read_just_before_his_parent_ends_is_found_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """His parent is in the list and is gone when it is his turn; by then the child has been adopted."""
    me = os.getpid()
    parents = iter([{10: me, 12: 11}, {10: me, 12: me}])
    found = lambda _place, _pids: [Process(*pair, 0, "S", 1) for pair in next(parents).items()]  # noqa: E731
    monkeypatch.setattr(processes, "numbers", lambda _place: [10, 11, 12])
    monkeypatch.setattr(processes, "read_all", found)
    assert [process.pid for process in processes.descendants(me)] == [10, 12]


def test_where_the_kernel_knows_no_scopes_all_that_has_the_worker_s_user_id_is_ended(
    open_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a user of its own: on this machine there may be other workers."""
    if os.geteuid() != 0:
        pytest.skip("only root may become another user")
    rooms, nobody_else = open_rooms(open_dir / "sandbox", 10_077), 10_077
    wall = put_up_wall("uid", rooms, tools=None, worker_uid=nobody_else)
    monkeypatch.setattr(landlock, "knows_scopes", lambda: False)
    runner = ["/usr/bin/python3", "-c", RUNNER]
    with subprocess.Popen(runner, cwd=rooms.workspace, user=nobody_else, group=nobody_else, extra_groups=[]) as first:
        first.wait()
    wait_for("the start", rooms.workspace / "beat")
    wall.close()
    assert _stands_still(rooms.workspace / "beat")
