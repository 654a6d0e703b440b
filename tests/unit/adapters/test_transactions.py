from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from sandpiper.adapters import transactions
from sandpiper.adapters.transactions import TRIES, commit, turns
from sandpiper.errors import Unavailable


class Dynamodb:
    """Answers in turn what it was given, and notes the tokens it was called with."""

    def __init__(self, *answers: Exception | None) -> None:
        self._answers = list(answers)
        self.tokens: list[str] = []

    def transact_write_items(self, *, TransactItems: Any, ClientRequestToken: str) -> None:  # noqa: N803 - AWS's names
        self.tokens.append(ClientRequestToken)
        answer = self._answers.pop(0) if self._answers else None
        if answer is not None:
            raise answer


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    taken: list[float] = []
    monkeypatch.setattr("sandpiper.adapters.transactions.time.sleep", taken.append)
    return taken


def refusal(code: str, *reasons: str) -> ClientError:
    response: Any = {"Error": {"Code": code}, "CancellationReasons": [{"Code": reason} for reason in reasons]}
    return ClientError(response, "TransactWriteItems")


def run(dynamodb: Any) -> bool:
    return commit(dynamodb, [])


def test_a_transaction_that_goes_through_needs_one_call_and_no_pause(pauses: list[float]) -> None:
    dynamodb = Dynamodb()
    assert run(dynamodb)
    assert (len(dynamodb.tokens), pauses) == (1, [])


@pytest.mark.parametrize(
    "trouble",
    [
        refusal("TransactionCanceledException", "None", "TransactionConflict"),
        refusal("TransactionCanceledException", "ThrottlingError"),
        refusal("TransactionInProgressException"),
        refusal("ThrottlingException"),
        ConnectTimeoutError(endpoint_url="http://dynamodb.test"),
    ],
)
def test_what_may_pass_is_tried_again_as_the_same_request(trouble: Exception, pauses: list[float]) -> None:
    dynamodb = Dynamodb(trouble, trouble)
    assert run(dynamodb)
    assert len(dynamodb.tokens) == 3
    assert len(set(dynamodb.tokens)) == 1
    assert len(pauses) == 2


def test_two_transactions_never_share_a_token() -> None:
    dynamodb = Dynamodb()
    run(dynamodb)
    run(dynamodb)
    assert len(set(dynamodb.tokens)) == 2


def test_a_condition_that_does_not_hold_is_told_at_once() -> None:
    dynamodb = Dynamodb(refusal("TransactionCanceledException", "TransactionConflict", "ConditionalCheckFailed"))
    assert not run(dynamodb)
    assert len(dynamodb.tokens) == 1


@pytest.mark.parametrize(
    "mistake",
    [
        refusal("ValidationException"),
        refusal("AccessDeniedException"),
        refusal("TransactionCanceledException", "ValidationError"),
    ],
)
def test_a_mistake_of_ours_is_not_tried_again(mistake: ClientError) -> None:
    dynamodb = Dynamodb(mistake)
    with pytest.raises(ClientError):
        run(dynamodb)
    assert len(dynamodb.tokens) == 1


def test_a_database_that_never_answers_is_unavailable_in_the_end() -> None:
    dynamodb = Dynamodb(*[ConnectTimeoutError(endpoint_url="http://dynamodb.test")] * TRIES)
    with pytest.raises(Unavailable):
        run(dynamodb)
    assert len(dynamodb.tokens) == TRIES


def test_a_database_that_answers_slowly_is_given_up_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter(range(0, 1000, 15))
    monkeypatch.setattr("sandpiper.adapters.transactions.time.monotonic", lambda: next(moments))
    dynamodb = Dynamodb(*[ConnectTimeoutError(endpoint_url="http://dynamodb.test")] * TRIES)
    with pytest.raises(Unavailable):
        run(dynamodb)
    assert len(dynamodb.tokens) == 1


def test_pauses_grow_to_a_limit(monkeypatch: pytest.MonkeyPatch, pauses: list[float]) -> None:
    monkeypatch.setattr("sandpiper.adapters.transactions.random.uniform", lambda _, longest: longest)
    with pytest.raises(Unavailable):
        list(turns())
    assert pauses == sorted(pauses)
    assert pauses[-1] == transactions.LONGEST_PAUSE_SECONDS
