"""A reply of the model is stored beside the state that it answers, and is part of that state for whoever goes on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from sandbox_task.agent.journal import Journal
from sandbox_task.checkpoint import Checkpoint, Checkpoints
from sandbox_task.model.port import Text, ToolCall, ToolResult
from sandbox_task.redaction import Redactor
from sandpiper import limits
from sandpiper.errors import Fenced
from sandpiper.models.run import Run, Usage
from sandpiper.models.spec import RunSpec
from sandpiper.testing.fakes import FakeBlobs, FakeRuns

if TYPE_CHECKING:
    from pathlib import Path

RUN_ID = "run-01jd0000000000000000000abc"
SECRET = "a-secret-of-the-run"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Trees:
    """A repository whose trees are packed as their names."""

    def save_tree(self, tree: str, path: Path, *, after: str | None) -> str:
        path.write_text(tree)
        return tree


class Desk:
    """The stores of a run, and its attempts one after the other."""

    def __init__(self, private: Path) -> None:
        self.blobs, self.private = FakeBlobs(), private
        self.runs = FakeRuns(blobs=self.blobs)
        run = Run(run_id=RUN_ID, owner="ann", spec=RunSpec(task="t"), created_at=NOW, updated_at=NOW)
        self.runs.create(run, [])
        self.runs.change(RUN_ID, allowed=("queued",), changes={"status": "running"})

    def attempt(self, number: int) -> Checkpoints:
        self.runs.change(RUN_ID, allowed=("running",), changes={"attempt": number})
        return Checkpoints(self.runs, self.blobs, RUN_ID, number, self.private, Redactor([SECRET]))

    @property
    def keys(self) -> list[str]:
        return sorted(key for key in self.blobs.bodies if key.endswith("state.json"))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


TREES: Any = Trees()
ASKED = Journal(usage=Usage(turns=1)).with_words(Text(text="Do it."))


def state(journal: Journal, tree: str = "1", **more: Any) -> Checkpoint:
    return Checkpoint(reason="lost", base_commit=None, tree=tree, journal=journal, **more)


def answered(words: str = "Let me see.", turns: int = 2) -> Journal:
    call = ToolCall(id="c", name="run_command", arguments={"command": "ls"})
    return ASKED.with_reply((Text(text=words), call)).model_copy(update={"usage": Usage(turns=turns, cost_usd=0.5)})


def test_a_reply_is_one_write_beside_the_state_and_the_next_attempt_has_it(desk: Desk) -> None:
    store = desk.attempt(1)
    store.save(state(ASKED), TREES)
    before, row = desk.keys, desk.runs.get(RUN_ID)
    store.save(state(answered(), seconds_used=9.5), TREES)
    assert (desk.keys, desk.runs.get(RUN_ID)) == (before, row)
    found = desk.attempt(2).load()
    assert found is not None
    assert (found.journal, found.seconds_used) == (answered(), 9.5)
    assert found.journal.unanswered() is not None


def test_a_reply_that_was_cut_off_keeps_what_was_said_of_its_last_call(desk: Desk) -> None:
    store, refusal = desk.attempt(1), ToolResult(call_id="c", content="cut off", is_error=True)
    journal = answered().model_copy(update={"results": (refusal,)})
    store.save(state(ASKED), TREES)
    store.save(state(journal), TREES)
    found = desk.attempt(2).load()
    assert found is not None
    assert found.journal == journal


def test_a_reply_to_a_state_that_was_never_stored_is_stored_with_it(desk: Desk) -> None:
    desk.attempt(1).save(state(answered()), TREES)
    assert desk.runs.last_reply(RUN_ID) is None
    found = desk.attempt(2).load()
    assert found is not None
    assert found.journal == answered()


def test_a_reply_means_nothing_beside_a_newer_state(desk: Desk) -> None:
    store = desk.attempt(1)
    store.save(state(ASKED), TREES)
    store.save(state(answered()), TREES)
    done = answered().with_words(ToolResult(call_id="c", content="files"))
    store.save(state(done, tree="2"), TREES)
    found = desk.attempt(2).load()
    assert found is not None
    assert (found.journal, found.tree) == (done, "2")


def test_a_reply_that_an_older_attempt_got_to_its_own_state_is_ignored(desk: Desk) -> None:
    first = desk.attempt(1)
    first.save(state(ASKED), TREES)
    first.save(state(answered("theirs")), TREES)
    desk.attempt(2).save(state(ASKED), TREES)
    found = desk.attempt(3).load()
    assert found is not None
    assert found.journal == ASKED


@pytest.mark.parametrize(
    "later",
    [
        state(answered(), tree="2"),
        state(answered(), repairs=1),
        state(answered().with_words(Text(text="And this."))),
        state(Journal().with_words(Text(text="Shortened.")).with_reply((Text(text="So be it."),))),
        state(answered("long " * limits.REPLY_BYTES)),
    ],
    ids=["other files", "more than the journal", "words after it", "a shortened conversation", "too long for a row"],
)
def test_what_is_more_than_a_reply_is_stored_as_a_whole_state(desk: Desk, later: Checkpoint) -> None:
    store = desk.attempt(1)
    store.save(state(ASKED), TREES)
    store.save(later, TREES)
    assert desk.runs.last_reply(RUN_ID) is None
    found = desk.attempt(2).load()
    assert found is not None
    assert found.model_copy(update={"packs": later.packs}) == later


def test_an_attempt_that_was_replaced_stores_no_reply(desk: Desk) -> None:
    old = desk.attempt(1)
    old.save(state(ASKED), TREES)
    desk.attempt(2)
    with pytest.raises(Fenced):
        old.save(state(answered()), TREES)
    assert desk.runs.last_reply(RUN_ID) is None


def test_secrets_are_no_part_of_a_stored_reply(desk: Desk) -> None:
    store = desk.attempt(1)
    store.save(state(ASKED), TREES)
    store.save(state(answered(f"The key is {SECRET}.")), TREES)
    stored = desk.runs.last_reply(RUN_ID)
    assert stored is not None
    assert SECRET not in stored.step
    assert "[redacted]" in stored.step
