"""What the sandbox notes of a commit that it waits for, the webhook's side finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandpiper.adapters.github.topics import DynamoTopics
from sandpiper.adapters.head_watch import DynamoHeadWatch
from sandpiper.testing.clock import FakeClock

if TYPE_CHECKING:
    from tests.contract.worlds import Aws


def test_a_commit_leads_to_the_run_that_waits_for_it_last(aws: Aws, dynamodb: Any, run_id: str) -> None:
    watch = DynamoHeadWatch(dynamodb, runs_table=aws.runs_table, clock=FakeClock())
    for waiting in ("run-old", run_id, run_id):
        watch.watch("Octo/Repo", run_id, waiting)
    assert DynamoTopics(dynamodb, runs_table=aws.runs_table).watcher("octo/repo", run_id) == run_id
