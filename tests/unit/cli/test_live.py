"""The socket client against a real socket that is cut, doubles, reorders, loses and refuses."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from sandpiper_cli import live
from sandpiper_cli.client import Api
from sandpiper_cli.failures import ApiError, Unreachable
from sandpiper_cli.live import Stream
from tests.unit.cli.fake_api import RUN_ID, TOKEN, FakeApi, SocketScript, a_run, event

LAST = 12


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "GAP_SECONDS", 0.05)
    monkeypatch.setattr(live, "SILENCE_SECONDS", 0.05)


@pytest.fixture
def finished(api: FakeApi) -> FakeApi:
    api.events = [event(seq) for seq in range(1, LAST)] + [event(LAST, "run_completed")]
    return api


def followed(api: FakeApi, *, after: int = 0, token: str = TOKEN) -> list[int]:
    with Api(api.url, token) as client:
        return [found.seq for found in Stream(client, RUN_ID, after=after, sleep=lambda _seconds: None)]


def frames(api: FakeApi, *numbers: int) -> list[dict[str, object]]:
    return [{"type": "event", "event": api.events[seq - 1]} for seq in numbers]


def test_every_event_comes_once_and_the_last_ends_it(finished: FakeApi) -> None:
    assert followed(finished) == list(range(1, LAST + 1))


def test_it_begins_after_the_event_that_was_asked_for(finished: FakeApi) -> None:
    assert followed(finished, after=9) == [10, 11, 12]
    assert finished.subscriptions == [9]


def test_a_socket_that_is_cut_is_opened_again_and_nothing_is_missed_or_doubled(
    finished: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished.sockets = [
        SocketScript(frames(finished, 1, 2, 3), then_cut=True),
        SocketScript(frames(finished, 4, 4, 5), then_cut=True),
    ]
    monkeypatch.setattr(Stream, "_patiently_from_log", lambda _self: iter(()))  # the socket alone
    assert followed(finished) == list(range(1, LAST + 1))
    assert finished.subscriptions == [0, 3, 5]


def test_early_and_doubled_events_are_put_in_order(finished: FakeApi) -> None:
    finished.sockets = [SocketScript(frames(finished, 3, 1, 1, 2, 5, 4, 12, 11, 10, 9, 8, 7, 6))]
    assert followed(finished) == list(range(1, LAST + 1))
    assert not [request for request in finished.requests if request["path"].endswith("/events")]


def test_a_gap_that_stays_is_filled_from_the_log(finished: FakeApi) -> None:
    finished.sockets = [SocketScript(frames(finished, 1, 2, 5, 6))]
    assert followed(finished) == list(range(1, LAST + 1))


def test_a_last_event_that_never_arrives_is_fetched_from_the_log(finished: FakeApi) -> None:
    finished.sockets = [SocketScript(frames(finished, *range(1, LAST)))]
    assert followed(finished) == list(range(1, LAST + 1))


def test_without_any_socket_the_log_is_polled(finished: FakeApi) -> None:
    finished.refuses_sockets = True
    assert followed(finished) == list(range(1, LAST + 1))


def test_more_than_a_page_of_events_is_fetched_to_the_end(api: FakeApi) -> None:
    api.refuses_sockets = True
    api.events = [event(seq) for seq in range(1, 450)] + [event(450, "run_failed")]
    assert followed(api) == list(range(1, 451))


def test_a_run_that_is_over_and_seen_ends_at_once(finished: FakeApi) -> None:
    assert followed(finished, after=LAST) == []


def test_frames_of_the_gateway_and_of_later_versions_do_no_harm(finished: FakeApi) -> None:
    noise: list[object] = [{"type": "pong"}, {"type": "news"}, "", "no JSON", "[]"]
    broken: list[dict[str, object]] = [{"message": "Internal server error", "connectionId": "x"}]
    finished.sockets = [SocketScript([*noise, *frames(finished, 1), *broken])]
    assert followed(finished) == list(range(1, LAST + 1))


def test_a_log_that_comes_in_several_answers_is_asked_for_to_its_end(
    finished: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {"type": "more", "run_id": RUN_ID, "last_seq": LAST}
    finished.sockets = [
        SocketScript([*frames(finished, 1, 2, 3), {**more, "after": 3}]),
        SocketScript([*frames(finished, 4, LAST, 5), {**more, "after": 5}]),
    ]
    monkeypatch.setattr(live, "SILENCE_SECONDS", 30)
    monkeypatch.setattr(live, "GAP_SECONDS", 30)
    assert followed(finished) == list(range(1, LAST + 1))
    assert finished.subscriptions == [0, 3, 5]
    assert len([request for request in finished.requests if request["path"] == "/tickets"]) == 1


def test_a_gap_that_gets_smaller_is_left_to_the_socket(finished: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = itertools.count()  # each look at the clock is a second later; there are a few looks at every event
    monkeypatch.setattr(live, "time", SimpleNamespace(monotonic=lambda: float(next(moments))))
    monkeypatch.setattr(live, "GAP_SECONDS", 10.0)
    finished.sockets = [SocketScript(frames(finished, LAST, *range(1, LAST)))]
    assert followed(finished) == list(range(1, LAST + 1))
    assert not [request for request in finished.requests if request["path"].endswith("/events")]


def test_what_the_model_is_just_saying_is_handed_on_and_is_no_event(finished: FakeApi) -> None:
    def delta(attempt: int, text: str) -> dict[str, object]:
        return {"type": "agent_delta", "run_id": RUN_ID, "attempt": attempt, "ephemeral": True, "text": text}

    finished.events[1]["attempt"] = 2
    script = [delta(1, "a"), *frames(finished, 1), delta(1, "b"), *frames(finished, 2), delta(1, "late"), delta(2, "c")]
    finished.sockets = [SocketScript([*script, *frames(finished, *range(3, LAST + 1))])]
    heard: list[str] = []
    with Api(finished.url, TOKEN) as client:
        stream = Stream(client, RUN_ID, on_delta=lambda found: heard.append(found["text"]))
        assert [found.seq for found in stream] == list(range(1, LAST + 1))
    assert heard == ["a", "b", "c"]


def test_a_passing_failure_of_the_api_is_waited_out(finished: FakeApi) -> None:
    passing = {"type": "internal_error", "message": "busy", "retryable": True}
    finished.failures = [(503, passing), (503, passing), (503, passing)]
    assert followed(finished) == list(range(1, LAST + 1))


def test_an_error_frame_that_can_not_pass_is_raised(api: FakeApi) -> None:
    refusal = {"type": "not_found", "message": "There is no such run.", "retryable": False}
    api.sockets = [SocketScript(refusal=refusal)]
    api.run = a_run(status="running")
    with pytest.raises(ApiError, match="no such run"):
        followed(api)


def test_a_connection_that_the_server_has_forgotten_is_opened_again(
    finished: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten = {"type": "not_found", "message": "The connection is not open.", "retryable": False}
    finished.sockets = [SocketScript([*frames(finished, 1, 2), {"type": "error", "error": forgotten}])]
    monkeypatch.setattr(Stream, "_patiently_from_log", lambda _self: iter(()))  # the socket alone
    assert followed(finished) == list(range(1, LAST + 1))
    assert finished.subscriptions == [0, 2]


def test_a_wrong_token_is_no_reason_to_try_again(finished: FakeApi) -> None:
    with pytest.raises(ApiError, match="Who are you"):
        followed(finished, token="wrong")
    assert len(finished.requests) == 1


def test_an_api_that_stays_away_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "GIVE_UP_SECONDS", 0.0)
    with FakeApi() as gone:
        url = gone.url
    with Api(url, TOKEN) as client, pytest.raises(Unreachable, match="nobody answers"):
        list(Stream(client, RUN_ID, sleep=lambda _seconds: None))
