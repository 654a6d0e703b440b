"""The work of one attempt, phase by phase. It raises; who calls it makes a result of what is known by then."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandbox_task import delivery, options, stories
from sandbox_task.agent import context, prompting
from sandbox_task.agent.budget import Budget
from sandbox_task.agent.loop import Agent
from sandbox_task.agent.strategy import choose_strategy
from sandbox_task.agent.tools.planning import Finish, UpdatePlan
from sandbox_task.agent.tools.selection import select_tools, unknown_tools
from sandbox_task.agent.tools.toolbox import Toolbox
from sandbox_task.gate.checks import select_checks
from sandbox_task.gate.gate import Gate
from sandbox_task.model.catalogue import is_priced
from sandbox_task.workspace.repository import Repository
from sandpiper import limits
from sandpiper.errors import RunError
from sandpiper.models.run import CommitInfo, GateReport, Plan, Usage
from sandpiper.models.spec import READ_ONLY_TASKS, RunSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall
    from sandbox_task.model.port import Model
    from sandbox_task.options import Options
    from sandbox_task.reporter import Reporter
    from sandbox_task.stopping import Stop

_REPLY_TOKENS = 16_384


@dataclass
class Progress:
    """What is known so far; a run that ends badly still tells all of it."""

    repository: Repository | None = None
    tree: str | None = None
    summary: str = ""
    gate: GateReport | None = None
    commit: CommitInfo | None = None
    durations_ms: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            spent = round((time.monotonic() - started) * 1000)
            self.durations_ms[name] = self.durations_ms.get(name, 0) + spent


@dataclass
class Work:
    run_id: str
    spec: RunSpec
    wall: Wall
    rooms: Rooms
    model: Model
    sink: Reporter
    stop: Stop
    github_token: str | None
    github_url: str
    author: tuple[str, str]
    confirm_current: Callable[[], None]
    now: Callable[[], datetime]
    progress: Progress = field(default_factory=Progress)
    agent: Agent | None = None
    planning: UpdatePlan = field(init=False)

    def __post_init__(self) -> None:
        self.planning = UpdatePlan(self.sink)

    @property
    def plan(self) -> Plan | None:
        return self.planning.plan

    @property
    def usage(self) -> Usage:
        return self.agent.usage if self.agent else Usage()

    def perform(self) -> None:
        """Raises RunError, Stopped or Fenced."""
        repository = self._clone()
        settings = options.parse_options(repository.show(repository.base_tree, options.FILE))
        self._set_up(settings)
        self._start_agent()
        finish = self._work(self._first_message(repository, settings))
        if finish.status == "blocked":
            raise RunError("agent_loop_error", f"The agent could not do the task: {finish.summary}")
        if self.spec.type in READ_ONLY_TASKS:
            self._require_untouched(repository)
            return
        self._deliver(repository, self._prove(repository, settings))

    def _clone(self) -> Repository:
        with self.progress.phase("clone"):
            self.sink.emit("repo_clone_started", repo=self.spec.repo, base=self.spec.base, branch=self.spec.branch)
            repository = Repository.clone(self.spec, self.rooms, token=self.github_token)
            repository.deliver(self.wall)
            self.progress.repository = repository
            self.progress.tree = repository.base_tree
        self.sink.emit(
            "repo_clone_completed",
            commit=repository.base_commit,
            branch=repository.start.name,
            duration_ms=self.progress.durations_ms["clone"],
        )
        self.stop.check()
        return repository

    def _set_up(self, settings: Options) -> None:
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

    def _start_agent(self) -> None:
        tools = select_tools(self.spec, self.wall, self.sink, self.planning)
        self.agent = Agent(
            self.model,
            Toolbox(tools, self.sink, self.stop),
            self.sink,
            system=prompting.system_prompt(self.spec, self.wall),
            budget=Budget(self.spec.max_turns, self.spec.max_cost_usd),
            stop=self.stop,
            reply_tokens=self.spec.max_tokens or _REPLY_TOKENS,
        )
        if unknown := unknown_tools(self.spec):
            self.sink.emit("warning", message=f"There are no such tools here: {', '.join(unknown)}.", tools=unknown)
        if not is_priced(self.model.name):
            self.sink.emit("warning", message=f"No price is known for {self.model.name}: its cost is counted as 0.")

    def _first_message(self, repository: Repository, settings: Options) -> str:
        with self.progress.phase("context"):
            found = context.collect(repository, self.spec.task)
            strategy = choose_strategy(self.spec)
        self.sink.emit("repo_context_collected", files=found.files, included=found.included, omitted=found.omitted)
        self.sink.emit(
            "prompt_strategy_selected", strategy=strategy.name, source=strategy.source, reason=strategy.reason
        )
        return prompting.task_prompt(self.spec, strategy, instructions=settings.instructions, repository=found.text)

    def _work(self, message: str) -> Finish:
        """The agent's turns, and afterwards the tree that they have led to."""
        if self.agent is None:
            raise AssertionError("the agent has not been started")
        with self.progress.phase("agent"):
            finish = self.agent.work(message)
        self.progress.summary = finish.summary
        self.take_tree()
        return finish

    def take_tree(self) -> None:
        """The files as they are now become what is shown, checked and committed."""
        if self.progress.repository is not None:
            self.wall.end_all()
            self.progress.tree = self.progress.repository.take_tree(self.wall)

    def _require_untouched(self, repository: Repository) -> None:
        changes = repository.changes(repository.base_tree, str(self.progress.tree))
        if touched := [change.path for change in changes if change.status != "A"]:
            raise RunError(
                "agent_loop_error",
                f"This task is read-only, but it changed files of the repository: {', '.join(touched[:10])}",
            )
        if changes:
            left = [change.path for change in changes]
            self.sink.emit("warning", message="Files that the read-only work left behind are dropped.", paths=left[:50])
            self.progress.tree = repository.base_tree

    def _prove(self, repository: Repository, settings: Options) -> GateReport:
        """The gate, with repairs. Raises RunError if it stays red."""
        gate = Gate(self.wall, repository, self.sink, self.stop)
        report = self._check(gate, repository, settings)
        for repairs_left in reversed(range(limits.MAX_REPAIRS)):
            if report.status != "failed":
                break
            self.sink.emit("gate_repair_started", checks=_failed_commands(report), left=repairs_left)
            self._work(prompting.repair_prompt([check for check in report.checks if check.status == "failed"]))
            report = self._check(gate, repository, settings)
        if report.status == "failed":
            failed = ", ".join(_failed_commands(report))
            raise RunError("gate_failed", f"The work breaks checks, so nothing was committed: {failed}")
        return report

    def _check(self, gate: Gate, repository: Repository, settings: Options) -> GateReport:
        tree = str(self.progress.tree)
        with self.progress.phase("gate"):
            if tree == repository.base_tree:
                report = gate.skip("Nothing was changed, so there is nothing to check.")
            else:
                report = gate.run(select_checks(settings, self.plan, repository, tree), tree)
        self.progress.gate = report
        return report

    def _deliver(self, repository: Repository, gate: GateReport) -> None:
        if reason := self._why_no_commit(repository):
            self.sink.emit("commit_skipped", reason=reason)
            return
        with self.progress.phase("push"):
            self._record_story(repository, gate)
            message = delivery.commit_message(self.spec, self.run_id, self.progress.summary, gate)
            branch = delivery.branch_name(self.spec, self.run_id)
            sha = repository.commit(str(self.progress.tree), message, author=self.author)
            commit = CommitInfo(sha=sha, branch=branch, message=message, verified=gate.status == "passed")
            self.progress.commit = commit
            self.sink.emit("commit_created", **commit.model_dump(include={"sha", "branch", "message", "verified"}))
            if not repository.start.continues_branch:
                self.sink.emit("git_branch_created", branch=branch, base=repository.start.name)
            self._push(repository, commit)

    def _why_no_commit(self, repository: Repository) -> str | None:
        if self.progress.tree == repository.base_tree:
            return "Nothing was changed."
        if not self.spec.commit:
            return "The run was asked not to commit."
        if not self.spec.repo_url:
            return "There is no repository to push to; the work is in the diff."
        return None

    def _push(self, repository: Repository, commit: CommitInfo) -> None:
        """Only when nothing of B lives any more, and only if this attempt is still the one."""
        self.wall.close()
        self.stop.check()
        self.confirm_current()
        repository.push(commit.sha, commit.branch)
        url = delivery.commit_url(self.spec, commit.sha, self.github_url)
        self.progress.commit = commit.model_copy(update={"pushed": True, "url": url})
        self.sink.emit("commit_pushed", sha=commit.sha, branch=commit.branch, url=url)

    def _record_story(self, repository: Repository, gate: GateReport) -> None:
        """In the tree that is about to be committed; `passes` changes only by a gate that passed or failed."""
        tree = str(self.progress.tree)
        if (data := repository.show(tree, stories.FILE)) is None:
            return
        try:
            text = data.decode()
            story = stories.choose_story(text, self._words())
            if story is None:
                self.sink.emit("story_skipped", reason="Every story passes already.")
                return
            self.sink.emit("story_selected", id=story.id, title=story.title, score=story.score)
            if gate.status == "passed":
                tree = repository.replace_file(
                    tree, stories.FILE, stories.mark_story(text, story, passes=True).encode()
                )
        except (stories.BrokenPrd, UnicodeDecodeError) as error:
            self.sink.emit("story_skipped", reason=f"{stories.FILE} can't be used: {error}")
            return
        line = stories.progress_line(story, gate.status, gate.summary, self.spec.task, self.now())
        before = repository.show(tree, stories.PROGRESS) or b""
        self.progress.tree = repository.replace_file(tree, stories.PROGRESS, before + line.encode())
        self.sink.emit("story_updated", id=story.id, passes=gate.status == "passed", verdict=line.split(" :: ")[1])

    def _words(self) -> str:
        plan = self.plan
        return "\n".join((self.spec.task, *((plan.summary, *plan.steps) if plan else ())))


def _failed_commands(report: GateReport) -> list[str]:
    return [check.command for check in report.checks if check.status == "failed"]
