"""Where a run stands, stored so that another sandbox can go on from there: journal, tree, and what has been proven.

The pointer on the run's row moves only when everything is stored, and only if this attempt is still the one. What it no
longer leads to is deleted. A reply of the model to the very state that the pointer leads to is stored beside the row
instead, which is one small write: the next state has it.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from sandbox_task.agent.journal import Journal
from sandbox_task.gate.gate import GateState
from sandbox_task.github.published import Published
from sandpiper import limits
from sandpiper.errors import Conflict, Fenced
from sandpiper.logic.artifacts import checkpoint_prefix
from sandpiper.models.base import Model as Record
from sandpiper.models.run import Finding, GateReport, LastReply

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox_task.redaction import Redactor
    from sandbox_task.workspace.repository import Repository
    from sandpiper.ports import Blobs, Runs

_BINARY = "application/octet-stream"


class Finished(Record):
    """What the agent has said at last; the model need not be asked again."""

    status: Literal["done", "blocked"]
    summary: str
    findings: tuple[Finding, ...] = ()


class Proof(Record):
    """The gate has let the work through. `at` is the time of everything that is published of it."""

    gate: GateReport
    at: datetime


class Packs(Record):
    """The saved trees of a run: `last` is by which name the last one was saved, on top of those before."""

    keys: tuple[str, ...] = ()
    last: str | None = None
    tree: str | None = None


class Checkpoint(Record):
    reason: str
    base_commit: str | None
    tree: str
    journal: Journal
    setup_tree: str | None = None
    repairs: int = 0
    gate: GateState = GateState()
    finished: Finished | None = None
    proof: Proof | None = None
    summary: str = ""
    durations_ms: dict[str, int] = Field(default_factory=dict)
    seconds_used: float = 0.0
    inbox_seen: int = 0
    instructions_shown: tuple[str, ...] = ()
    snapshot_key: str | None = None
    packs: Packs = Packs()
    published: Published | None = None

    def parts(self) -> set[str]:
        """The keys of what it needs besides itself."""
        return {*self.packs.keys, *((self.snapshot_key,) if self.snapshot_key else ())}

    def answered(self, later: Checkpoint) -> Answer | None:
        """What the later state has more, if that is a reply of the model and nothing else."""
        old, new = self.journal, later.journal
        step = new.model_copy(update={"messages": new.messages[len(old.messages) :]})
        answer = Answer(journal=step, seconds_used=later.seconds_used)
        is_reply = [message.role for message in step.messages] == ["assistant"]
        return answer if is_reply and self.followed_by(answer) == later else None

    def followed_by(self, answer: Answer) -> Checkpoint:
        messages = (*self.journal.messages, *answer.journal.messages)
        journal = answer.journal.model_copy(update={"messages": messages})
        return self.model_copy(update={"journal": journal, "seconds_used": answer.seconds_used})


class Answer(Record):
    """A journal that has only what the model said last."""

    journal: Journal
    seconds_used: float


@dataclass
class Checkpoints:
    """Used by one thread at a time."""

    runs: Runs
    blobs: Blobs
    run_id: str
    attempt: int
    private: Path
    redactor: Redactor
    _packs: Packs = field(default_factory=Packs, init=False)
    _last: tuple[str, Checkpoint] | None = field(default=None, init=False)  # what the pointer leads to, if it is ours
    _needed: set[str] = field(default_factory=set, init=False)  # what the pointer leads to
    _loose: set[str] = field(default_factory=set, init=False)  # what it does not lead to yet
    _left: set[str] = field(default_factory=set, init=False)  # what it does not lead to any more
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1), init=False)

    def load(self) -> Checkpoint | None:
        """Where an earlier attempt has left off, if it has."""
        key = self.runs.get(self.run_id).checkpoint_key
        if key is None:
            return None
        checkpoint = Checkpoint.model_validate_json(self.blobs.get(key))
        self._packs, self._needed = checkpoint.packs, {key, *checkpoint.parts()}
        reply = self.runs.last_reply(self.run_id)
        if reply is None or reply.after != key:
            return checkpoint
        return checkpoint.followed_by(Answer.model_validate_json(reply.step))

    def save(self, checkpoint: Checkpoint, repository: Repository) -> None:
        """Raises Fenced, and then leaves nothing behind."""
        reply = self._reply_in(checkpoint)
        if reply is None:
            self._save_whole(checkpoint, repository)
        else:
            self.runs.put_reply(self.run_id, reply, attempt=self.attempt)

    def _reply_in(self, checkpoint: Checkpoint) -> LastReply | None:
        """If that is all that is new, and small enough for a row."""
        key, stored = self._last or ("", None)
        answer = stored.answered(checkpoint) if stored else None
        if answer is None:
            return None
        step = json.dumps(self.redactor.data(answer.model_dump(mode="json")))
        usage = checkpoint.journal.usage
        return LastReply(after=key, usage=usage, step=step) if len(step) <= limits.REPLY_BYTES else None

    def _save_whole(self, checkpoint: Checkpoint, repository: Repository) -> None:
        packs = self._with_tree(checkpoint.tree, repository)
        whole = checkpoint.model_copy(update={"packs": packs})
        key = self.new_key("state.json")
        state = self.redactor.data(whole.model_dump(mode="json"))
        self.blobs.put(key, json.dumps(state).encode(), content_type="application/json")
        try:
            self._point_to(key, whole)
        except Fenced:
            self.blobs.delete(self._loose)
            raise
        known, self._needed, self._packs = self._needed | self._loose, {key, *whole.parts()}, packs
        self._loose, self._left = set(), self._left | (known - self._needed)
        self._last = key, checkpoint

    def tidy(self) -> None:
        """Delete what the pointer no longer leads to. For when nobody waits."""
        self.blobs.delete(self._left)
        self._left = set()

    def restore_trees(self, checkpoint: Checkpoint, repository: Repository) -> None:
        """Into A's objects; the workspace is filled from there."""
        paths = []
        for number, key in enumerate(checkpoint.packs.keys):
            paths.append(self.private / f"saved-{number}.pack")
            with paths[-1].open("wb") as file:
                self.blobs.get_file(key, file)
        repository.load_trees(paths, checkpoint.tree)
        repository.setup_tree = checkpoint.setup_tree

    def new_key(self, name: str) -> str:
        """For a part of the next checkpoint. None is the beginning of another, so that each can be deleted alone."""
        key = f"{checkpoint_prefix(self.run_id)}s/{self.attempt}/{next(self._numbers):06}-{name}"
        self._loose.add(key)
        return key

    def _with_tree(self, tree: str, repository: Repository) -> Packs:
        """What the last one has not is added to it, until there are so many that one new pack is better."""
        packs = self._packs
        if packs.tree == tree:
            return packs
        if len(packs.keys) >= limits.CHECKPOINT_PACKS:
            packs = Packs()
        path, key = self.private / "tree.pack", self.new_key("tree.pack")
        name = repository.save_tree(tree, path, after=packs.last)
        with path.open("rb") as file:
            self.blobs.put_file(key, file, content_type=_BINARY)
        return Packs(keys=(*packs.keys, key), last=name, tree=tree)

    def _point_to(self, key: str, checkpoint: Checkpoint) -> None:
        usage = checkpoint.journal.usage
        changes = {"checkpoint_key": key, "checkpoint_turn": usage.turns, "usage": usage}
        try:
            self.runs.change(self.run_id, allowed=("running",), changes=changes, attempt=self.attempt)
        except Conflict as error:
            raise Fenced(error.message) from error
