"""The work of one attempt, phase by phase. It raises; who calls it makes a result of what is known by then."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandbox_task import options
from sandbox_task.agent import prompting
from sandbox_task.agent.context.collect import collect
from sandbox_task.agent.context.marking import as_data
from sandbox_task.agent.context.nested import NestedInstructions
from sandbox_task.agent.journal import Journal
from sandbox_task.agent.loop import Agent
from sandbox_task.agent.strategy import choose_strategy
from sandbox_task.agent.tools.planning import Finish, UpdatePlan
from sandbox_task.agent.tools.selection import select_tools, unknown_tools
from sandbox_task.agent.tools.sessions import Sessions
from sandbox_task.agent.tools.toolbox import Toolbox
from sandbox_task.checkpoint import Checkpoint
from sandbox_task.gate.checks import Selection, declared_checks, gate_mode, select_checks
from sandbox_task.gate.gate import Gate, GateState
from sandbox_task.progress import Progress
from sandbox_task.stories import recording
from sandbox_task.suspension import Suspended
from sandbox_task.workspace.git_relay import remote_config
from sandbox_task.workspace.repository import Repository
from sandpiper import limits
from sandpiper.errors import RunError
from sandpiper.models.spec import READ_ONLY_TASKS, RunSpec

if TYPE_CHECKING:
    from sandbox_task.agent.approvals import Approvals
    from sandbox_task.allowance import Allowance
    from sandbox_task.checkpoint import Checkpoints
    from sandbox_task.inbox import Inbox
    from sandbox_task.isolation.egress.for_run import FindPolicy
    from sandbox_task.isolation.egress.gateway import Gateway
    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall
    from sandbox_task.model.port import Model
    from sandbox_task.options import Options
    from sandbox_task.publishing import Publisher
    from sandbox_task.reporter import Reporter
    from sandbox_task.stopping import Stop
    from sandpiper.models.run import GateReport, Plan, Usage

_REPLY_TOKENS = 16_384


@dataclass
class Work:
    """`left_off` is where an earlier attempt stood; without it the work begins at the beginning."""

    spec: RunSpec
    wall: Wall
    rooms: Rooms
    model: Model
    sink: Reporter
    stop: Stop
    allowance: Allowance
    inbox: Inbox
    checkpoints: Checkpoints
    gateway: Gateway
    find_policy: FindPolicy
    publisher: Publisher
    approvals: Approvals
    github_token: str | None
    left_off: Checkpoint | None = None
    progress: Progress = field(default_factory=Progress)
    agent: Agent | None = None
    gate: Gate | None = None
    nested: NestedInstructions | None = None
    planning: UpdatePlan = field(init=False)

    def __post_init__(self) -> None:
        self.planning = UpdatePlan(self.sink, self.left_off.journal.plan if self.left_off else None)

    @property
    def plan(self) -> Plan | None:
        return self.planning.plan

    @property
    def usage(self) -> Usage:
        journal = self.agent.journal if self.agent else self.left_off.journal if self.left_off else Journal()
        return journal.usage

    def perform(self) -> None:
        """Raises RunError, Stopped, Suspended or Fenced."""
        repository = self._clone()
        declared = repository.show(repository.settled_tree, options.FILE, at_most=limits.MAX_OPTIONS_BYTES)
        settings = options.parse_options(declared)
        paths = repository.paths(repository.settled_tree)
        self.gateway.open(lambda: self.find_policy(paths=paths, egress=settings.egress))
        self._set_up(repository, settings)
        gate = self._open_gate(repository, settings)
        self._start_agent(repository)
        finish = self._work(self._resume(repository) or self._first_message(repository, settings, gate))
        if finish.status == "blocked":
            raise RunError("agent_loop_error", f"The agent could not do the task: {finish.summary}")
        if self.spec.type in READ_ONLY_TASKS:
            self._report(repository, settings, gate)
        else:
            self._publish(repository, self._prove(repository, settings, gate))

    def checkpoint(self, wait: Suspended, log_key: str) -> None:
        """Store where the work stands, so that another sandbox can go on. Raises Fenced."""
        repository, agent = self.progress.repository, self.agent
        if repository is None or agent is None:
            raise AssertionError("only an agent at work can have to wait")
        self.take_tree()
        checkpoint = Checkpoint(
            reason=wait.message,
            base_commit=repository.base_commit,
            tree=str(self.progress.tree),
            journal=agent.journal,
            repairs=self.progress.repairs,
            gate=self.gate.state() if self.gate else GateState(),
            summary=self.progress.summary,
            durations_ms=self.progress.durations_ms,
            seconds_used=self.allowance.seconds_used,
            inbox_seen=self.inbox.seen,
            instructions_shown=tuple(self.nested.shown) if self.nested else (),
            log_key=log_key,
        )
        self.checkpoints.save(checkpoint, repository)

    def take_tree(self) -> None:
        """The files as they are now become what is shown, checked and committed."""
        if self.progress.repository is not None:
            self.wall.end_all()
            self.progress.tree = self.progress.repository.take_tree(self.wall)
            self.progress.at_work = False

    def _clone(self) -> Repository:
        with self.progress.phase("clone"):
            self.sink.emit("repo_clone_started", repo=self.spec.repo, base=self.spec.base, branch=self.spec.branch)
            at = self.left_off.base_commit if self.left_off else None
            repository = Repository.clone(self.spec, self.rooms, token=self.github_token, at=at)
            port = self.gateway.git_port
            repository.deliver(self.wall, remote=remote_config(port) if port else "")
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

    def _set_up(self, repository: Repository, settings: Options) -> None:
        """What the repository wants to have run first. A failure is told, and is no reason not to try."""
        for number, command in enumerate(settings.setup, start=1):
            label = f"setup-{number}"
            with self.progress.phase("setup"), self.sink.output(tool_id=label) as output:
                self.sink.emit("tool_started", tool_id=label, tool="setup", command=command)
                done = self.wall.run(command, timeout=limits.CHECK_SECONDS, on_output=output.feed)
            self.sink.emit(
                "tool_completed", tool_id=label, tool="setup", exit_code=done.exit_code, duration_ms=done.duration_ms
            )
            self.stop.check()
        if settings.setup:
            repository.setup_tree = repository.take_tree(self.wall)
        if changes := repository.changes(repository.base_tree, repository.start_tree):
            paths = [change.path for change in changes[:50]]
            self.sink.emit("warning", message="What the setup changed is no part of the commit.", paths=paths)

    def _open_gate(self, repository: Repository, settings: Options) -> Gate:
        """With what the declared checks say before anything is changed."""
        known = self.left_off.gate if self.left_off else GateState()
        mode = gate_mode(self.spec, settings)
        self.gate = Gate(self.wall, repository, self.sink, self.stop, mode=mode, known=known)
        if self.spec.type not in READ_ONLY_TASKS:
            with self.progress.phase("baseline"):
                self.gate.baseline(declared_checks(settings))
        return self.gate

    def _start_agent(self, repository: Repository) -> None:
        files = frozenset(repository.paths(repository.base_tree))
        sessions = Sessions.open(self.wall, self.sink, self.rooms.private)
        tools = select_tools(
            self.spec,
            self.wall,
            self.sink,
            planning=self.planning,
            sessions=sessions,
            inbox=self.inbox,
            exists=files.__contains__,
            gateway=self.gateway,
        )
        shown = self.left_off.instructions_shown if self.left_off else ()
        self.nested = NestedInstructions(repository, root=self.wall.workspace, shown=shown)
        self.agent = Agent(
            self.model,
            Toolbox(tools, self.sink, self.stop, on_path=self.nested.for_path, approvals=self.approvals),
            self.planning,
            self.sink,
            system=prompting.system_prompt(self.spec, self.wall),
            allowance=self.allowance,
            inbox=self.inbox,
            stop=self.stop,
            reply_tokens=self.spec.max_tokens or _REPLY_TOKENS,
            journal=self.left_off.journal if self.left_off else None,
        )
        if unknown := unknown_tools(self.spec):
            self.sink.emit("warning", message=f"There are no such tools here: {', '.join(unknown)}.", tools=unknown)

    def _resume(self, repository: Repository) -> str | None:
        """Put the files back to where an earlier attempt left off; what the agent is told about that."""
        left_off = self.left_off
        if left_off is None:
            return None
        with self.progress.phase("restore"):
            self.checkpoints.restore_tree(left_off, repository)
            repository.restore(self.wall, present=repository.start_tree, wanted=left_off.tree)
        self.progress.tree, self.progress.repairs = left_off.tree, left_off.repairs
        self.progress.summary = left_off.summary
        for name, spent in left_off.durations_ms.items():
            self.progress.durations_ms[name] = self.progress.durations_ms.get(name, 0) + spent
        return prompting.resumed_prompt(left_off.reason)

    def _first_message(self, repository: Repository, settings: Options, gate: Gate) -> str:
        with self.progress.phase("context"):
            found = collect(repository, self.spec.task)
            strategy = choose_strategy(self.spec)
        if self.nested:
            self.nested.shown += found.included
        self.sink.emit("repo_context_collected", **found.told())
        self.sink.emit(
            "prompt_strategy_selected", strategy=strategy.name, source=strategy.source, reason=strategy.reason
        )
        return prompting.task_prompt(
            self.spec,
            strategy,
            repository=found.text,
            instructions=settings.instructions,
            story=self._story(repository),
            baseline=gate.broken_before(),
        )

    def _story(self, repository: Repository) -> str:
        """The story that the task names, as far as its words tell before there is a plan."""
        choice = recording.choose(repository, self.spec.task).choice
        return as_data(recording.described(choice)) if choice and choice.score else ""

    def _work(self, message: str) -> Finish:
        """The agent's turns, and afterwards the tree that they have led to."""
        if self.agent is None:
            raise AssertionError("the agent has not been started")
        self.progress.at_work = self.inbox.may_interrupt = True
        with self.progress.phase("agent"):
            finish = self.agent.work(message)
        self.progress.summary = finish.summary
        self.progress.findings = finish.reported
        self.take_tree()
        return finish

    def _report(self, repository: Repository, settings: Options, gate: Gate) -> None:
        """Read-only work ends in words and figures; nothing of the repository may have changed."""
        self._require_untouched(repository)
        if self.spec.type == "test-suite":
            with self.progress.phase("suites"):
                self.progress.suites = gate.suites(self._selection(repository, settings))

    def _require_untouched(self, repository: Repository) -> None:
        changes = repository.changes(repository.start_tree, str(self.progress.tree))
        if touched := [change.path for change in changes if change.status != "A"]:
            raise RunError(
                "agent_loop_error",
                f"This task is read-only, but it changed files of the repository: {', '.join(touched[:10])}",
            )
        if changes:
            left = [change.path for change in changes]
            self.sink.emit("warning", message="Files that the read-only work left behind are dropped.", paths=left[:50])
            repository.restore(self.wall, present=str(self.progress.tree), wanted=repository.start_tree)
            self.progress.tree = repository.start_tree

    def _prove(self, repository: Repository, settings: Options, gate: Gate) -> GateReport:
        """The gate, with repairs. Raises RunError if it stays red."""
        report = self._check(repository, settings, gate)
        while report.status == "failed" and self.progress.repairs < limits.MAX_REPAIRS:
            self.progress.repairs += 1
            failed = [check for check in report.checks if check.status == "failed"]
            left = limits.MAX_REPAIRS - self.progress.repairs
            self.sink.emit("gate_repair_started", checks=[check.command for check in failed], left=left)
            self._work(prompting.repair_prompt(failed))
            report = self._check(repository, settings, gate)
        if report.status == "failed":
            _, self.progress.story = self.publisher.story_of(repository, str(self.progress.tree), report, self._words)
            broken = ", ".join(check.command for check in report.checks if check.status == "failed")
            raise RunError("gate_failed", f"The work breaks checks, so nothing was committed: {broken}")
        return report

    def _check(self, repository: Repository, settings: Options, gate: Gate) -> GateReport:
        tree = str(self.progress.tree)
        if self.inbox.is_paused:
            raise Suspended("paused", "The run was paused before its checks.")
        with self.progress.phase("gate"):
            if tree == repository.start_tree:
                report = gate.skip("Nothing was changed, so there is nothing to check.")
            else:
                report = gate.run(self._selection(repository, settings), tree)
        self.progress.gate = report
        return report

    def _selection(self, repository: Repository, settings: Options) -> Selection:
        return select_checks(settings, self.plan, repository, str(self.progress.tree))

    def _publish(self, repository: Repository, gate: GateReport) -> None:
        self.inbox.may_interrupt = False  # what others see is done whole
        self.stop.check()
        with self.progress.phase("push"):
            self.publisher.publish(repository, self.progress, gate, self._words)

    @property
    def _words(self) -> str:
        """By which a story is found."""
        plan = self.plan
        return "\n".join((self.spec.task, *((plan.summary, *plan.steps) if plan else ())))
