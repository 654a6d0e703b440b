from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandpiper.adapters.event_log import WORDS_SEQ, event_from_item
from sandpiper.errors import Fenced

if TYPE_CHECKING:
    from typing import Any

    from sandpiper.models.run import Run
    from tests.contract.worlds import Aws, Store


def test_words_are_no_part_of_the_log(store: Store, run: Run) -> None:
    store.runs.show_words(run.run_id, {"text": "Hm"}, attempt=1)
    assert [event.seq for event in store.runs.events(run.run_id, after=0, limit=10)] == [1]
    assert store.runs.get(run.run_id).last_seq == 1


def test_a_later_attempt_takes_the_word_and_an_older_gets_it_no_more(store: Store, run: Run) -> None:
    for attempt in (1, 1, 2):
        store.runs.show_words(run.run_id, {"text": "Hm"}, attempt=attempt)
    with pytest.raises(Fenced):
        store.runs.show_words(run.run_id, {"text": "late"}, attempt=1)


def test_what_the_stream_carries_says_whose_words_they_are(aws: Aws, dynamodb: Any, run_id: str, store: Store) -> None:
    aws.runs(store.clock).show_words(run_id, {"turn": 2, "text": "é🦆\ud800"}, attempt=4)
    key = {"run_id": {"S": run_id}, "seq": {"N": str(WORDS_SEQ)}}
    told = event_from_item(dynamodb.get_item(TableName=aws.events_table, Key=key)["Item"])
    assert (told["run_id"], told["type"], told["attempt"]) == (run_id, "agent_delta", 4)
    assert told["data"] == {"turn": 2, "text": "é🦆\ud800"}
