"""Where a run stands, stored so that another sandbox can go on from there: journal, tree, and what has been proven.

The pointer on the run's row moves only when everything is stored, and only if this attempt is still the one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field

from sandbox_task.agent.journal import Journal
from sandbox_task.gate.gate import GateState
from sandbox_task.github.published import Published
from sandpiper.errors import Conflict, Fenced
from sandpiper.logic.artifacts import checkpoint_prefix
from sandpiper.models.base import Model as Record

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox_task.redaction import Redactor
    from sandbox_task.workspace.repository import Repository
    from sandpiper.ports import Blobs, Runs


class Checkpoint(Record):
    reason: str
    base_commit: str | None
    tree: str
    journal: Journal
    repairs: int = 0
    gate: GateState = GateState()
    summary: str = ""
    durations_ms: dict[str, int] = Field(default_factory=dict)
    seconds_used: float = 0.0
    inbox_seen: int = 0
    instructions_shown: tuple[str, ...] = ()
    log_key: str | None = None
    tree_key: str | None = None
    published: Published | None = None


@dataclass(frozen=True)
class Checkpoints:
    runs: Runs
    blobs: Blobs
    run_id: str
    attempt: int
    private: Path
    redactor: Redactor

    def load(self) -> Checkpoint | None:
        """Where an earlier attempt has left off, if it has."""
        key = self.runs.get(self.run_id).checkpoint_key
        return Checkpoint.model_validate_json(self.blobs.get(key)) if key else None

    def save(self, checkpoint: Checkpoint, repository: Repository) -> None:
        """Raises Fenced."""
        tree_key, state_key = self._key("tree.bundle"), self._key("state.json")
        bundle = self.private / "tree.bundle"
        repository.save_tree(checkpoint.tree, bundle)
        with bundle.open("rb") as file:
            self.blobs.put_file(tree_key, file, content_type="application/octet-stream")
        state = self.redactor.data(checkpoint.model_copy(update={"tree_key": tree_key}).model_dump(mode="json"))
        stored = Checkpoint.model_validate(state).model_dump_json().encode()
        self.blobs.put(state_key, stored, content_type="application/json")
        self._point_to(state_key, checkpoint)

    def restore_tree(self, checkpoint: Checkpoint, repository: Repository) -> None:
        """Into A's objects; the workspace is filled from there."""
        if checkpoint.tree_key is None:
            return
        bundle = self.private / "tree.bundle"
        with bundle.open("wb") as file:
            self.blobs.get_file(checkpoint.tree_key, file)
        repository.load_tree(bundle, checkpoint.tree)

    def _point_to(self, key: str, checkpoint: Checkpoint) -> None:
        try:
            self.runs.change(
                self.run_id,
                allowed=("running",),
                changes={"checkpoint_key": key, "usage": checkpoint.journal.usage},
                attempt=self.attempt,
            )
        except Conflict as error:
            raise Fenced(error.message) from error

    def _key(self, name: str) -> str:
        return f"{checkpoint_prefix(self.run_id)}s/{self.attempt}/{name}"
