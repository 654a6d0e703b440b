"""authorizer, websocket and broadcast, called as AWS calls them."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jwt
import pytest

from authorizer import handler as authorizer
from authorizer.keys import REMEMBERED_SECONDS, SharedSecret
from authorizer.settings import Settings as AuthorizerSettings
from broadcast import handler as broadcast
from sandpiper import limits
from sandpiper.adapters.dynamodb_values import to_item
from sandpiper.logic import tickets
from sandpiper.logic.broadcast import Broadcast
from sandpiper.logic.tokens import TokenRules
from shared.json_logs import json_logger
from tests.unit.logic.world import ANN, World
from websocket import controls as websocket_controls
from websocket import handler as websocket

if TYPE_CHECKING:
    from sandpiper.models.identity import Identity

SECRET = "a secret that is long enough for HS256 to be happy with it"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(websocket, "subscriptions", lambda: made.subscriptions)
    sender = Broadcast(made.connections, made.sockets, lambda run_id: made.get(run_id).owner, lambda _: None)
    monkeypatch.setattr(broadcast, "broadcast", lambda: sender)
    monkeypatch.setattr(authorizer, "policy", lambda: (SharedSecret(lambda: SECRET), TokenRules()))
    return made


def authorize(header: str | None) -> dict[str, Any]:
    headers = {} if header is None else {"authorization": header}
    return authorizer.handler({"version": "2.0", "type": "REQUEST", "headers": headers}, None)


def socket_event(kind: str, *, route: str = "$default", **more: Any) -> dict[str, Any]:
    context = {"eventType": kind, "routeKey": route, "connectionId": "c1", "requestId": "req-1"}
    return {"requestContext": context, **more}


def connect(world: World, identity: Identity = ANN) -> int:
    world.sockets.connect("c1")
    ticket = tickets.issue(identity, world.connections, world.clock).ticket
    answer = websocket.handler(socket_event("CONNECT", queryStringParameters={"ticket": ticket}), None)
    return int(answer["statusCode"])


@pytest.mark.usefixtures("world")
def test_a_good_token_lets_its_user_in() -> None:
    token = jwt.encode({"sub": "ann", "org": "acme", "exp": int(time.time()) + 60}, SECRET, algorithm="HS256")
    assert authorize(f"Bearer {token}") == {
        "isAuthorized": True,
        "context": {"user": "ann", "org": "acme", "scope": ""},
    }


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("header", [None, "", "Bearer rubbish", "Basic eDp5"])
def test_everything_else_is_not_authorized(header: str | None) -> None:
    assert authorize(header) == {"isAuthorized": False}


@pytest.mark.usefixtures("world")
def test_a_refused_token_is_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    json_logger("authorizer")
    authorize("Bearer aaa.bbb.cccsecret")
    assert "cccsecret" not in capsys.readouterr().out


def test_the_secret_is_read_again_after_five_minutes() -> None:
    moment, reads = 0.0, iter(["one", "two"])
    keys = SharedSecret(lambda: next(reads), now=lambda: moment)
    assert [keys.key_for("t"), keys.key_for("t")] == ["one", "one"]
    moment = REMEMBERED_SECONDS
    assert keys.key_for("t") == "two"


def test_empty_settings_of_the_authorizer_are_none() -> None:
    environment = {"JWT_SECRET_ARN": "arn", "JWKS_URL": "", "JWT_ISSUER": "", "JWT_AUDIENCE": ""}
    assert AuthorizerSettings.read(environment) == AuthorizerSettings("arn", None, None, None)


def test_a_socket_opens_with_a_ticket(world: World) -> None:
    assert connect(world) == 200
    assert world.connections.identity("c1")["user"] == "ann"


@pytest.mark.parametrize("query", [None, {}, {"ticket": ""}, {"ticket": "made-up"}])
def test_a_socket_without_a_good_ticket_is_refused(world: World, query: dict[str, str] | None) -> None:
    assert websocket.handler(socket_event("CONNECT", queryStringParameters=query), None) == {"statusCode": 401}


def test_one_socket_too_many_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 1)
    now = int(world.clock.now().timestamp())
    world.connections.open("c0", {"user": "ann"}, expires_at=now + 60, now=now)
    assert connect(world) == 429


def test_messages_of_every_route_are_answered_in_the_socket(world: World) -> None:
    connect(world)
    for body in ['{"action": "ping"}', "rubbish", None]:
        assert websocket.handler(socket_event("MESSAGE", body=body), None) == {"statusCode": 200}
    assert [frame["type"] for frame in world.frames("c1")] == ["pong", "error", "error"]


@pytest.mark.parametrize("route", ["$connect", "$disconnect"])
def test_a_message_that_names_a_route_of_the_gateway_is_a_message(world: World, route: str) -> None:
    connect(world)
    body = json.dumps({"action": route})
    assert websocket.handler(socket_event("MESSAGE", route=route, body=body), None) == {"statusCode": 200}
    assert [frame["type"] for frame in world.frames("c1")] == ["error"]
    assert world.connections.identity("c1")["user"] == "ann"


def test_a_closed_socket_is_forgotten(world: World) -> None:
    connect(world)
    run_id = world.start()
    subscribe = json.dumps({"action": "subscribe", "run_id": run_id})
    websocket.handler(socket_event("MESSAGE", body=subscribe), None)
    assert world.connections.subscribers(run_id) == ["c1"]
    websocket.handler(socket_event("DISCONNECT"), None)
    assert world.connections.subscribers(run_id) == []


def stream_record(run_id: str, seq: int, name: str = "INSERT") -> dict[str, Any]:
    row = {"run_id": run_id, "seq": seq, "ts": "2026-01-01T12:00:00.000000Z", "attempt": 1, "type": "warning"}
    image = to_item({**row, "data": json.dumps({"n": seq}), "expires_at": 5})
    return {"eventName": name, "dynamodb": {"SequenceNumber": str(100 + seq), "NewImage": image}}


def test_new_rows_of_the_log_reach_their_subscribers(world: World) -> None:
    connect(world)
    run_id = world.start()
    world.connections.subscribe("c1", run_id)
    records = [stream_record(run_id, 1), stream_record(run_id, 2), {"eventName": "REMOVE", "dynamodb": {}}]
    assert broadcast.handler({"Records": records}, None) == {"batchItemFailures": []}
    assert [frame["event"] for frame in world.frames("c1")] == [
        {
            "run_id": run_id,
            "seq": seq,
            "ts": "2026-01-01T12:00:00.000000Z",
            "attempt": 1,
            "type": "warning",
            "data": {"n": seq},
        }
        for seq in (1, 2)
    ]


def test_words_that_are_written_over_reach_those_who_follow_all_runs(world: World) -> None:
    connect(world)
    run_id = world.start()
    websocket.handler(socket_event("MESSAGE", body=json.dumps({"action": "subscribe", "runs": "all"})), None)
    records = []
    for n, name in enumerate(("INSERT", "MODIFY")):
        record = stream_record(run_id, 0, name)
        record["dynamodb"]["NewImage"] |= to_item({"type": "agent_delta", "data": json.dumps({"text": f"word {n}"})})
        records.append(record)
    assert broadcast.handler({"Records": records}, None) == {"batchItemFailures": []}
    assert [frame["text"] for frame in world.frames("c1")[1:]] == ["word 0", "word 1"]


def test_a_run_is_controlled_over_the_socket_by_the_rules_of_https(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket_controls, "controls", lambda: world.controls)
    wired = replace(world.subscriptions, control=websocket._control)
    monkeypatch.setattr(websocket, "subscriptions", lambda: wired)
    connect(world)
    run_id = world.running()
    body = json.dumps({"action": "cancel", "run_id": run_id, "key": "k"})
    websocket.handler(socket_event("MESSAGE", body=body), None)
    assert [(frame["type"], frame["key"]) for frame in world.frames("c1")] == [("ack", "k")]
    assert world.get(run_id).cancel_requested


def test_records_that_could_not_be_handled_are_named_to_the_stream(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> list[str]:
        raise ConnectionError

    monkeypatch.setattr(world.connections, "subscribers", fail)
    answer = broadcast.handler({"Records": [stream_record("r", 1), stream_record("r", 2)]}, None)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "101"}, {"itemIdentifier": "102"}]}


def test_logs_are_lines_of_json_with_what_was_added(capsys: pytest.CaptureFixture[str]) -> None:
    logger = json_logger("light")
    try:
        raise ValueError("boom")  # noqa: TRY301
    except ValueError:
        logger.exception("it failed", extra={"run_id": "run-1"})
    line = json.loads(capsys.readouterr().out)
    assert (line["level"], line["message"], line["run_id"], line["service"]) == (
        "ERROR",
        "it failed",
        "run-1",
        "sandpiper-test",
    )
    assert "ValueError: boom" in line["exception"]
