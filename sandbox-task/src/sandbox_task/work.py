"""The work of one attempt, phase by phase. It raises; who calls it makes a result of what is known by then."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from sandbox_task.agent import prompting
from sandbox_task.agent.context.nested import NestedInstructions
from sandbox_task.agent.journal import Journal
from sandbox_task.agent.loop import Agent
from sandbox_task.agent.tools.planning import UpdatePlan
from sandbox_task.agent.tools.selection import select_tools, unknown_tools
from sandbox_task.agent.tools.sessions import Sessions
from sandbox_task.agent.tools.toolbox import Toolbox
from sandbox_task.beginning import first_words
from sandbox_task.checkpoint import Checkpoint, Finished, Proof
from sandbox_task.gate.checks import declared_checks, gate_mode
from sandbox_task.gate.gate import Gate, GateState
from sandbox_task.github.after_push import after_push
from sandbox_task.github.published import Published
from sandbox_task.keeping import Keeping
from sandbox_task.opening import Opening
from sandbox_task.progress import Progress
from sandbox_task.proving import Proving
from sandbox_task.saving import Saver
from sandpiper import limits
from sandpiper.errors import RunError
from sandpiper.models.run import Usage
from sandpiper.models.spec import READ_ONLY_TASKS, RunSpec

if TYPE_CHECKING:
    from sandbox_task.agent.approvals import Approvals
    from sandbox_task.allowance import Allowance
    from sandbox_task.checkpoint import Checkpoints
    from sandbox_task.github.hub import Hub
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
    from sandbox_task.suspension import Suspended
    from sandbox_task.workspace.repository import Repository
    from sandpiper.models.run import Plan
    from sandpiper.ports import Clock

_REPLY_TOKENS = 16_384
_LOST = "its sandbox was lost"


@dataclass
class Work:
    """`left_off` is where an earlier attempt stood; without it the work begins at the beginning.

    `used` is what the run's row says, which can be more than what was stored of the work.
    """

    spec: RunSpec
    wall: Wall
    rooms: Rooms
    model: Model
    sink: Reporter
    stop: Stop
    clock: Clock
    allowance: Allowance
    inbox: Inbox
    checkpoints: Checkpoints
    gateway: Gateway
    find_policy: FindPolicy
    publisher: Publisher
    approvals: Approvals
    github: Hub
    left_off: Checkpoint | None = None
    used: Usage = field(default_factory=Usage)
    progress: Progress = field(default_factory=Progress)
    agent: Agent | None = None
    gate: Gate | None = None
    nested: NestedInstructions | None = None
    keeping: Keeping | None = None
    planning: UpdatePlan = field(init=False)

    def __post_init__(self) -> None:
        self.planning = UpdatePlan(self.sink, self.left_off.journal.plan if self.left_off else None)

    @property
    def plan(self) -> Plan | None:
        return self.planning.plan

    @property
    def usage(self) -> Usage:
        return self._journal.usage

    def perform(self) -> None:
        """Raises RunError, Stopped, Suspended or Fenced."""
        repository, settings = self._opening.open()
        gate = self._open_gate(repository, settings)
        self._opening.restore(repository)
        self._keep(repository)
        red = after_push(self, repository)
        if self.progress.ci:
            return
        self._start_agent(repository)
        finished = self._finished_before() or self._work(self._words_to_begin(repository, settings, gate) + red)
        if finished.status == "blocked":
            raise RunError("agent_loop_error", f"The agent could not do the task: {finished.summary}")
        proving = self._proving(repository, settings, gate)
        if self.spec.type in READ_ONLY_TASKS:
            proving.report()
            self.github.report(repository, self.progress, settings)
        else:
            self._publish(repository, settings, self._prove(repository, proving))

    def checkpoint(self, wait: Suspended) -> None:
        """Store where the work stands, with all files, so that another sandbox can go on. Raises Fenced."""
        if self.keeping is None or self.progress.repository is None:
            raise AssertionError("only an agent at work can have to wait")
        self.keeping.close()
        if wait.reason == "awaiting_ci":  # nothing is left behind the wall, or nothing has been touched there
            snapshot = None
        else:
            self.take_tree()
            snapshot = self._opening.store()
        state = self._draft(self._journal, str(self.progress.tree))
        changes = {"reason": wait.message, "snapshot_key": snapshot}
        self.checkpoints.save(state.model_copy(update=changes), self.progress.repository)
        self.checkpoints.tidy()

    def hand_over(self) -> None:
        """Store what is known and not stored yet; what was in hand is done again by the next attempt."""
        if self.keeping is not None:
            self.keeping.hand_over()

    def close(self) -> None:
        if self.keeping is not None:
            self.keeping.close()
        self.wall.close()
        self.gateway.close()
        self.github.close()

    def take_tree(self) -> None:
        """The files as they are now become what is shown, checked and committed."""
        if self.keeping is not None:
            self.keeping.settle()
        if self.progress.repository is not None:
            self.wall.end_all()
            self.progress.tree = self.progress.repository.take_tree(self.wall)
            self.progress.at_work = False

    @property
    def _journal(self) -> Journal:
        return self.agent.journal if self.agent else self._journal_before

    @cached_property
    def _journal_before(self) -> Journal:
        journal = self.left_off.journal if self.left_off else Journal()
        return journal.model_copy(update={"usage": journal.usage.at_least(self.used)})

    @cached_property
    def _opening(self) -> Opening:
        return Opening(
            spec=self.spec,
            wall=self.wall,
            rooms=self.rooms,
            sink=self.sink,
            stop=self.stop,
            checkpoints=self.checkpoints,
            gateway=self.gateway,
            find_policy=self.find_policy,
            github=self.github,
            progress=self.progress,
            left_off=self.left_off,
        )

    def _open_gate(self, repository: Repository, settings: Options) -> Gate:
        """With what the declared checks say before anything is changed."""
        known = self.left_off.gate if self.left_off else GateState()
        mode = gate_mode(self.spec, settings)
        self.gate = Gate(self.wall, repository, self.sink, self.stop, mode=mode, known=known)
        if self.left_off is None and self.spec.type not in READ_ONLY_TASKS:
            with self.progress.phase("baseline"):
                self.gate.baseline(declared_checks(settings))
        return self.gate

    def _keep(self, repository: Repository) -> None:
        saver = Saver(
            lambda checkpoint: self.checkpoints.save(checkpoint, repository),
            self.stop,
            on_trouble=self.sink.note,
            tidy=self.checkpoints.tidy,
        )
        self.keeping = Keeping(
            repository, self.wall, saver, self._draft, on_trouble=self.sink.note, tree=self.progress.tree
        )

    def _draft(self, journal: Journal, tree: str) -> Checkpoint:
        """Where the work stands, but for what only a run that has to wait has."""
        repository, before = self.progress.repository, self.left_off
        if repository is None:
            raise AssertionError("there is nothing to store yet")
        return Checkpoint(
            reason=_LOST,
            base_commit=repository.base_commit,
            tree=tree,
            setup_tree=repository.setup_tree,
            journal=journal,
            repairs=self.progress.repairs,
            gate=self.gate.state() if self.gate else GateState(),
            finished=self.progress.finished,
            proof=self.progress.proof,
            summary=self.progress.summary,
            durations_ms=dict(self.progress.durations_ms),
            seconds_used=self.allowance.seconds_used,
            inbox_seen=self.inbox.seen,
            instructions_shown=tuple(self.nested.shown) if self.nested else before.instructions_shown if before else (),
            published=Published.of(self.progress),
            snapshot_key=before.snapshot_key if before else None,
        )

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
            journal=self._journal_before,
            keeping=self.keeping,
        )
        if unknown := unknown_tools(self.spec):
            self.sink.emit("warning", message=f"There are no such tools here: {', '.join(unknown)}.", tools=unknown)

    def _words_to_begin(self, repository: Repository, settings: Options, gate: Gate) -> str:
        if self.left_off:
            return prompting.resumed_prompt(self.left_off.reason, is_whole=self._opening.is_whole)
        with self.progress.phase("context"):
            begin = first_words(self.spec, repository, settings, gate, more=self.github.told_first(repository))
        if self.nested:
            self.nested.shown += begin.context.included
        begin.tell(self.sink)
        return begin.words

    def _finished_before(self) -> Finished | None:
        """What the agent said at last, if an earlier attempt was lost after that."""
        finished = self.left_off.finished if self.left_off else None
        if finished:
            self._note_finish(finished)
        return finished

    def _work(self, message: str) -> Finished:
        """The agent's turns, and afterwards the tree that they have led to."""
        if self.agent is None or self.keeping is None:
            raise AssertionError("the agent has not been started")
        self.progress.finished = None
        self.progress.at_work = self.inbox.may_interrupt = True
        with self.progress.phase("agent"):
            finish = self.agent.work(message)
        self.take_tree()
        self.keeping.tree = self.progress.tree
        finished = Finished(status=finish.status, summary=finish.summary, findings=finish.reported)
        self._note_finish(finished)
        self.keeping.keep(self._draft(self._journal, str(self.progress.tree)))
        return finished

    def _note_finish(self, finished: Finished) -> None:
        self.progress.finished = finished
        self.progress.summary, self.progress.findings = finished.summary, finished.findings

    def _proving(self, repository: Repository, settings: Options, gate: Gate) -> Proving:
        return Proving(
            self.spec,
            repository,
            settings,
            gate,
            self.wall,
            self.sink,
            self.inbox,
            self.planning,
            self.progress,
            repair=self._work,
        )

    def _prove(self, repository: Repository, proving: Proving) -> Proof:
        """What the gate has let through, now or in an earlier attempt. Raises RunError if it is red."""
        if self.left_off and self.left_off.proof:
            self.progress.gate = self.left_off.proof.gate
            return self.left_off.proof
        report = proving.prove()
        proof = Proof(gate=report, at=self.clock.now())
        if report.status == "failed":
            tree = str(self.progress.tree)
            _, self.progress.story = self.publisher.story_of(repository, tree, proof, self._words, self.sink)
            broken = ", ".join(check.command for check in report.checks if check.status == "failed")
            raise RunError("gate_failed", f"The work breaks checks, so nothing was committed: {broken}")
        return proof

    def _publish(self, repository: Repository, settings: Options, proof: Proof) -> None:
        """The proof is stored first: whoever has to publish it again makes the same commit of it."""
        self.inbox.may_interrupt = False  # what others see is done whole
        self.stop.check()
        self.progress.proof = proof
        if self.keeping is None:
            raise AssertionError("nobody keeps what is done")
        self.keeping.keep(self._draft(self._journal, str(self.progress.tree)))
        if not self.keeping.saver.flush(limits.CHECKPOINT_WAIT_SECONDS):
            raise RunError(
                "internal_error", "The run's state could not be stored, so nothing was pushed.", retryable=True
            )
        with self.progress.phase("push"):
            self.github.pull_requests.require_open()
            self.publisher.publish(repository, self.progress, proof, self._words)
            self.github.publish(repository, self.progress, proof.gate, settings)

    @property
    def _words(self) -> str:
        """By which a story is found."""
        plan = self.plan
        return "\n".join((self.spec.task, *((plan.summary, *plan.steps) if plan else ())))
