"""From an empty sandbox to a workspace in which the work can begin, or go on where an earlier attempt has left off."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandbox_task import options
from sandbox_task.isolation.wall import WallError
from sandbox_task.workspace import snapshot
from sandbox_task.workspace.crossing import ignore
from sandbox_task.workspace.git_relay import remote_config, remote_url
from sandbox_task.workspace.repository import Repository
from sandpiper import limits
from sandpiper.errors import NotFound

if TYPE_CHECKING:
    from sandbox_task.checkpoint import Checkpoint, Checkpoints
    from sandbox_task.github.hub import Hub
    from sandbox_task.isolation.egress.for_run import FindPolicy
    from sandbox_task.isolation.egress.gateway import Gateway
    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall
    from sandbox_task.options import Options
    from sandbox_task.progress import Progress
    from sandbox_task.reporter import Reporter
    from sandbox_task.stopping import Stop
    from sandpiper.models.spec import RunSpec


@dataclass
class Opening:
    """`is_whole`: everything that the workspace had is there again, also what git ignores."""

    spec: RunSpec
    wall: Wall
    rooms: Rooms
    sink: Reporter
    stop: Stop
    checkpoints: Checkpoints
    gateway: Gateway
    find_policy: FindPolicy
    github: Hub
    progress: Progress
    left_off: Checkpoint | None = None
    is_whole: bool = field(default=False, init=False)

    def open(self) -> tuple[Repository, Options]:
        """Raises RunError, Stopped."""
        repository = self._clone()
        declared = repository.show(repository.settled_tree, options.FILE, at_most=limits.MAX_OPTIONS_BYTES)
        settings = options.parse_options(declared)
        paths = repository.paths(repository.settled_tree)
        self.gateway.open(lambda: self.find_policy(paths=paths, egress=settings.egress))
        if not self.is_whole:
            self._set_up(repository, settings)
        return repository, settings

    def restore(self, repository: Repository) -> None:
        """Put the files back to where the earlier attempt left off."""
        left_off = self.left_off
        if left_off is None:
            return
        with self.progress.phase("restore"):
            present = repository.take_tree(self.wall) if self.is_whole else repository.start_tree
            self.checkpoints.restore_trees(left_off, repository)
            repository.restore(self.wall, present=present, wanted=left_off.tree)
        self.progress.tree, self.progress.repairs = left_off.tree, left_off.repairs
        self.progress.summary = left_off.summary
        for name, spent in left_off.durations_ms.items():
            self.progress.durations_ms[name] = self.progress.durations_ms.get(name, 0) + spent

    def store(self) -> str | None:
        """The key of the whole workspace, or None if it can't be stored, which is told. Nothing of B may be alive."""
        key = self.checkpoints.new_key("workspace.tar.zst")
        try:
            with self.progress.phase("snapshot"):
                snapshot.store(self.wall, self.checkpoints.blobs, key)
        except (snapshot.TooLarge, WallError) as error:
            message = f"Only the files that git knows are kept while the run waits. {error}"
            self.sink.emit("warning", message=message)
            return None
        return key

    def _clone(self) -> Repository:
        with self.progress.phase("clone"):
            self.sink.emit("repo_clone_started", repo=self.spec.repo, base=self.spec.base, branch=self.spec.branch)
            at = self.left_off.base_commit if self.left_off else self.github.starts_at
            repository = Repository.clone(
                self.spec,
                self.rooms,
                token=self.github.token,
                at=at,
                stop=self.stop,
                moved_to=self.github.moved_to,
            )
            self._fill(repository)
            self.progress.repository = repository
            self.progress.tree = repository.base_tree
        self.sink.emit(
            "repo_clone_completed",
            commit=repository.base_commit,
            branch=repository.start.name,
            duration_ms=self.progress.durations_ms["clone"],
        )
        for message in repository.warnings:
            self.sink.emit("warning", message=message)
        self.stop.check()
        return repository

    def _fill(self, repository: Repository) -> None:
        self.is_whole = self._unpack(repository)
        if not self.is_whole:
            port = self.gateway.git_port
            repository.deliver(self.wall, remote=remote_config(port) if port else "")

    def _unpack(self, repository: Repository) -> bool:
        """The workspace as it was when the run began to wait, if that was stored and can be had."""
        key = self.left_off.snapshot_key if self.left_off else None
        if key is None:
            return False
        try:
            snapshot.restore(self.wall, self.checkpoints.blobs, key)
        except (NotFound, WallError, snapshot.TooLarge) as error:
            self.sink.emit(
                "warning", message=f"The stored workspace can't be used, only the files that git knows: {error}"
            )
            self.wall.run("find . -mindepth 1 -delete", timeout=limits.GIT_SECONDS, on_output=ignore)
            return False
        if port := self.gateway.git_port:
            moved = f"git config remote.origin.url {remote_url(port)}"
            self.wall.run(moved, timeout=limits.GIT_SECONDS, on_output=ignore)
        repository.adopt()
        return True

    def _set_up(self, repository: Repository, settings: Options) -> None:
        """What the repository wants to have run first. A failure is told, and is no reason not to try."""
        for number, command in enumerate(settings.setup, start=1):
            label = f"setup-{number}"
            with self.progress.phase("setup"), self.sink.output(tool_id=label) as output:
                self.sink.emit("tool_started", tool_id=label, tool="setup", command=command)
                try:
                    done = self.wall.run(command, timeout=limits.CHECK_SECONDS, on_output=output.feed)
                except WallError as error:
                    self.sink.emit("tool_failed", tool_id=label, tool="setup", error=str(error))
                    raise
            ended = {"exit_code": done.exit_code, "ended_by": done.ended_by, "duration_ms": done.duration_ms}
            self.sink.emit("tool_completed", tool_id=label, tool="setup", **ended)
            self.stop.check()
        if settings.setup:
            repository.setup_tree = repository.take_tree(self.wall)
        if changes := repository.changes(repository.base_tree, repository.start_tree):
            paths = [change.path for change in changes[:50]]
            self.sink.emit("warning", message="What the setup changed is no part of the commit.", paths=paths)
