"""What it costs that a run survives: a checkpoint after every step, the workspace of a run that waits, a new sandbox.

- A turn with and without a checkpoint, of the same agent on the same 2,000 files behind the same wall, round by round;
  the store is the embedded AWS. The model is a function: what lies between its answer and the next request is ours.
  With a model that answers at once a state is stored only now and then (ADR 11), so the mean is told beside the median.
  With one that takes a second, "nothing measurable" is: less than what plain turns differ by among themselves, from the
  tenth to the ninetieth of a hundred.
- The workspace is stored to and read from the embedded S3; the baseline is `tar | zstd` to a local file, same level.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bench.stack import new_user, running_run, wait_until
from sandbox_task.agent.loop import Agent
from sandbox_task.agent.tools.commands import RunCommand
from sandbox_task.agent.tools.planning import FinishTool, UpdatePlan
from sandbox_task.agent.tools.sessions import Sessions
from sandbox_task.agent.tools.toolbox import Toolbox
from sandbox_task.allowance import Allowance
from sandbox_task.checkpoint import Checkpoint, Checkpoints
from sandbox_task.inbox import Inbox
from sandbox_task.isolation.choose import put_up_wall
from sandbox_task.isolation.launch import Rooms, open_rooms
from sandbox_task.keeping import Keeping
from sandbox_task.logfile import LogFile
from sandbox_task.model.port import Hear, Reply, Request, ToolCall, TurnUsage, nobody
from sandbox_task.redaction import Redactor
from sandbox_task.reporter import Reporter
from sandbox_task.saving import Saver
from sandbox_task.stopping import Stop
from sandbox_task.workspace import snapshot
from sandbox_task.workspace.repository import Repository
from sandpiper import limits
from sandpiper.adapters.blobs import S3Blobs
from sandpiper.models.spec import RunSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.report import Report
    from bench.stack import Stack
    from sandbox_task.agent.journal import Journal
    from sandbox_task.agent.tools.toolbox import Tool
    from sandbox_task.isolation.wall import Wall
    from sandpiper.adapters.runs import DynamoRuns

FILES = 2_000
ROUNDS, SLOW_ROUNDS = 7, 2
WARM_UP = 3
ADDED_MS = 15
WORKSPACE_MB = 500
SPEED = 0.7
BACK_SECONDS = 5
FILL = f"""for d in $(seq 40); do mkdir -p src/p$d; for f in $(seq {FILES // 40}); do
seq 40 > src/p$d/m$f.py; done; done"""


def run(report: Report, stack: Stack) -> None:
    with Desk(stack) as desk:
        for seconds, turns in ((0.0, 40), (1.0, 12)):
            tell_turns(report, desk, seconds, turns)
        tell_snapshot(report, desk)
    tell_recovery(report, stack)


# ---- a checkpoint


class Model:
    """Changes one file each turn; knows how long each took between its answer and the next request."""

    name = "bench"
    context_tokens = 200_000

    def __init__(self, seconds: float, turns: int) -> None:
        self._seconds, self._turns = seconds, turns
        self._number = 0
        self._answered = 0.0
        self.own: list[float] = []

    def complete(self, request: Request, hear: Hear = nobody) -> Reply:  # noqa: ARG002
        self.own.append(time.monotonic() - self._answered)
        time.sleep(self._seconds)
        self._number += 1
        is_last = self._number > self._turns
        arguments = {"status": "done", "summary": "x"} if is_last else {"command": "echo more >> src/p3/m3.py"}
        call = ToolCall(id=f"call-{self._number}", name="finish" if is_last else "run_command", arguments=arguments)
        self._answered = time.monotonic()
        return Reply(blocks=(call,), stop="tool_calls", usage=TurnUsage())


@dataclass
class Desk:
    """A wall around a workspace of many files, and a run on the embedded AWS to store it for."""

    stack: Stack
    _directory: tempfile.TemporaryDirectory[str] = field(
        default_factory=lambda: tempfile.TemporaryDirectory(prefix="sandpiper-bench-")
    )

    def __enter__(self) -> Self:
        root = Path(self._directory.name)
        root.chmod(0o711)
        self.rooms: Rooms = open_rooms(root / "sandbox", 10002)
        self.wall: Wall = put_up_wall(None, self.rooms, tools=None, worker_uid=10002)
        self.runs: DynamoRuns = self.stack.runs()
        self.blobs = S3Blobs(self.stack.aws("s3"), bucket=self.stack.outputs["ArtifactsBucket"])
        self.run_id = running_run(self.runs, new_user())
        self.runs.change(self.run_id, allowed=("queued",), changes={"status": "running", "attempt": 1})
        self.repository = Repository.clone(RunSpec(task="bench"), self.rooms, token=None)
        self.repository.deliver(self.wall)
        self.do(FILL)
        self.tree = self.repository.take_tree(self.wall)
        return self

    def __exit__(self, *_: object) -> None:
        self.wall.close()
        self._directory.cleanup()

    def do(self, command: str) -> None:
        assert self.wall.run(command, timeout=300, on_output=lambda _data: None).succeeded

    def turns(self, seconds: float, turns: int, *, kept: bool) -> list[float]:
        """The milliseconds of our own in each turn."""
        stop, model = Stop(), Model(seconds, turns)
        log = LogFile(self.blobs, self.run_id, 1)
        reporter = Reporter(self.runs, self.run_id, attempt=1, redactor=Redactor([]), log=log, stop=stop)
        keeping = self._keeping(stop) if kept else None
        planning = UpdatePlan(reporter)
        sessions = Sessions.open(self.wall, reporter, self.rooms.private)
        tools: list[Tool[Any]] = [RunCommand(self.wall, reporter, sessions), FinishTool()]
        Agent(
            model, Toolbox(tools, reporter, stop), planning, reporter, system="s",
            allowance=Allowance(RunSpec(task="b", max_turns=500)), inbox=Inbox(), stop=stop, reply_tokens=1000,
            keeping=keeping,
        ).work("go")  # fmt: skip
        if keeping:
            keeping.close()
        reporter.close()
        log.close()
        return [each * 1000 for each in model.own[1 + WARM_UP :]]

    def _keeping(self, stop: Stop) -> Keeping:
        store = Checkpoints(self.runs, self.blobs, self.run_id, 1, self.rooms.private, Redactor([]))
        saver = Saver(partial(store.save, repository=self.repository), stop, on_trouble=print, tidy=store.tidy)
        return Keeping(self.repository, self.wall, saver, _draft, on_trouble=print, tree=self.tree)


def _draft(journal: Journal, tree: str) -> Checkpoint:
    return Checkpoint(reason="bench", base_commit=None, tree=tree, journal=journal)


def tell_turns(report: Report, desk: Desk, seconds: float, turns: int) -> None:
    desk.turns(0.0, WARM_UP + 1, kept=True)
    times = range(SLOW_ROUNDS if seconds else ROUNDS)
    rounds = [[desk.turns(seconds, turns, kept=kept) for kept in (False, True)] for _ in times]
    plain, kept = (list(itertools.chain.from_iterable(side)) for side in zip(*rounds, strict=True))
    added = statistics.median(statistics.median(with_) - statistics.median(without) for without, with_ in rounds)
    mean = statistics.mean(kept) - statistics.mean(plain)
    tenths = statistics.quantiles(plain, n=10)
    most = tenths[-1] - tenths[0] if seconds else ADDED_MS
    report.add(
        f"a checkpoint, {FILES:,} files, one changed, model of {seconds:g} s: added to a turn",
        measured=f"{added:.1f} ms (mean {mean:.1f} ms)",
        baseline=f"{statistics.median(plain):.1f} ms without",
        ratio=f"{1 + added / (seconds * 1000 + statistics.median(plain)):.3f}×",
        goal=f"≤ {most:.1f} ms, the spread of turns without" if seconds else f"≤ {most} ms",
        met=added <= most,
    )


# ---- the whole workspace


def tell_snapshot(report: Report, desk: Desk) -> None:
    _install(desk.rooms.workspace)
    key = f"runs/{desk.run_id}/checkpoints/1/workspace"
    local = desk.rooms.private / "local.tar.zst"
    level = f"-{limits.SNAPSHOT_LEVEL}"
    pack = f"tar -C {desk.rooms.workspace} -cf - . | zstd -q -f -T0 {level} -o {local}"
    unpack = f"mkdir -p {{to}} && zstd -q -d -c {local} | tar -C {{to}} -xf -"
    megabytes = snapshot.store(desk.wall, desk.blobs, key) / 1_000_000
    stored = _both(lambda: snapshot.store(desk.wall, desk.blobs, key), pack)
    _tell_speed(report, "storing", megabytes, *stored)
    root = Path(tempfile.mkdtemp(dir=desk.rooms.root))
    root.chmod(0o711)
    rooms = open_rooms(root / "second", 10002)
    wall = put_up_wall(None, rooms, tools=None, worker_uid=10002)
    restored = _both(lambda: snapshot.restore(wall, desk.blobs, key), unpack.format(to=root / "plain"))
    wall.close()
    desk.blobs.delete([key])
    _tell_speed(report, "restoring", megabytes, *restored)


def _install(workspace: Path) -> None:
    """Real packages, as often as it takes: those of this very environment."""
    packages = Path(limits.__file__).parents[4] / ".venv" / "lib"
    size = sum(file.stat().st_size for file in packages.rglob("*") if file.is_file() and not file.is_symlink())
    for number in range(max(1, round(WORKSPACE_MB * 1_000_000 / size))):
        shutil.copytree(packages, workspace / f"installed-{number}", symlinks=True)


def _both(ours: Callable[[], object], plain: str) -> tuple[float, float]:
    """Seconds; the plain one before and after, so that whatever else the machine does hits both alike."""
    before = _seconds(lambda: subprocess.run(["bash", "-c", plain], check=True))
    own = _seconds(ours)
    return own, (before + _seconds(lambda: subprocess.run(["bash", "-c", plain], check=True))) / 2


def _seconds(action: Callable[[], object]) -> float:
    started = time.monotonic()
    action()
    return time.monotonic() - started


def _tell_speed(report: Report, what: str, megabytes: float, own: float, plain: float) -> None:
    report.add(
        f"{what} a workspace of {megabytes:.0f} MB of installed packages",
        measured=f"{megabytes / own:.0f} MB/s",
        baseline=f"{megabytes / plain:.0f} MB/s, `tar | zstd` and a local file",
        ratio=f"{plain / own:.2f}×",
        goal=f"≥ {SPEED:g}×",
        met=plain / own >= SPEED,
    )


# ---- a lost sandbox, and one that nobody needs


def tell_recovery(report: Report, stack: Stack) -> None:
    times = []
    for _ in range(3):
        api, words = stack.api(new_user()), f"Lose the sandbox {new_user()}"
        nap = {"tools": [{"name": "run_command", "input": {"command": "sleep 60"}}]}
        stack.model.add({"name": words, "match": {"words": [words]}, "replies": [nap]})
        run_id = api.start({"task": words}, headers={})["run_id"]
        wait_until(lambda: "tool_started" in _types(stack, run_id), every=0.05)  # noqa: B023
        killed = time.monotonic()
        _kill(run_id)
        wait_until(lambda: _types(stack, run_id).count("run_started") == 2, every=0.02)  # noqa: B023
        times.append(time.monotonic() - killed)
        _kill(run_id)  # nobody needs it any more, and the next ones should not share the machine with it
    report.add(
        "kill → running again in a new sandbox, median of 3",
        measured=f"{statistics.median(times):.1f} s (longest {max(times):.1f} s)",
        goal=f"≤ {BACK_SECONDS} s",
        met=statistics.median(times) <= BACK_SECONDS,
    )
    tell_suspended(report, stack)


def tell_suspended(report: Report, stack: Stack) -> None:
    api, words = stack.api(new_user()), f"Ask somebody {new_user()}"
    ask = {"tools": [{"name": "ask_user", "input": {"question": "?"}}]}
    stack.model.add({"name": words, "match": {"words": [words]}, "replies": [ask]})
    run_id = api.start({"task": words}, headers={})["run_id"]
    wait_until(lambda: api.run(run_id)["status"] == "suspended", every=0.1)
    wait_until(lambda: not _processes(run_id), seconds=30, every=0.1)
    report.add("processes of a suspended run", measured=str(len(_processes(run_id))), goal="0", met=True)


def _types(stack: Stack, run_id: str) -> list[str]:
    return [event.type for event in stack.runs().events(run_id, after=0, limit=200)]


def _kill(run_id: str) -> None:
    for pid in _processes(run_id):
        os.kill(pid, signal.SIGKILL)


def _processes(run_id: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"RUN_ID={run_id}".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found
