from __future__ import annotations

import io
import json
import socket
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from websockets.sync.client import connect

from sandpiper import limits
from sandpiper.adapters.aws import client
from sandpiper.adapters.sockets import ApiGatewaySockets
from sandpiper.ports import Gone, Stuck
from sandpiper.testing.fakes import FakeSockets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandpiper.ports import Sockets
    from tests.contract.worlds import Aws

TELLS_ITS_CONNECTION_ID = """
def handler(event, context):
    return {"statusCode": 200, "body": event["requestContext"]["connectionId"]}
"""


class World(Protocol):
    """The port, and the far end of its sockets."""

    @property
    def sockets(self) -> Sockets: ...

    def client(self) -> Any:
        """A context: (connection id, a function that waits for the next frame)."""


@dataclass(frozen=True)
class FakeWorld:
    sockets: FakeSockets

    @contextmanager
    def client(self) -> Iterator[tuple[str, Callable[[], bytes]]]:
        self.sockets.connect("connection")
        yield "connection", lambda: self.sockets.frames["connection"].pop(0)
        self.sockets.disconnect("connection")


@dataclass(frozen=True)
class RealWorld:
    sockets: ApiGatewaySockets
    url: str

    @contextmanager
    def client(self) -> Iterator[tuple[str, Callable[[], bytes]]]:
        with connect(self.url) as socket:
            socket.send(json.dumps({"action": "who"}))
            yield str(socket.recv(timeout=20)), lambda: _encoded(socket.recv(timeout=20))


@pytest.fixture(scope="session")
def real_world(aws: Aws) -> RealWorld:
    gateway = aws.client("apigatewayv2")
    api_id = gateway.create_api(Name="ws", ProtocolType="WEBSOCKET", RouteSelectionExpression="$request.body.action")[
        "ApiId"
    ]
    integration = gateway.create_integration(
        ApiId=api_id, IntegrationType="AWS_PROXY", IntegrationUri=_create_function(aws.client("lambda"))
    )
    target = f"integrations/{integration['IntegrationId']}"
    gateway.create_route(ApiId=api_id, RouteKey="$default", Target=target, RouteResponseSelectionExpression="$default")
    gateway.create_stage(ApiId=api_id, StageName="live")
    base = f"{aws.endpoint}/_aws/execute-api/{api_id}/live"
    management = aws.client("apigatewaymanagementapi", endpoint_url=base)
    return RealWorld(ApiGatewaySockets(management), base.replace("http:", "ws:"))


@pytest.fixture(params=["fake", "real"])
def world(request: pytest.FixtureRequest) -> World:
    if request.param == "fake":
        return FakeWorld(FakeSockets())
    real: RealWorld = request.getfixturevalue("real_world")
    return real


def test_frames_arrive_in_the_order_in_which_they_were_sent(world: World) -> None:
    frames = [json.dumps({"n": n, "text": "é"}, ensure_ascii=False).encode() for n in range(20)]
    with world.client() as (connection_id, receive):
        for frame in frames:
            world.sockets.send(connection_id, frame)
        assert [receive() for _ in frames] == frames


def test_the_largest_frame_arrives_and_a_larger_one_is_refused(world: World) -> None:
    largest = b"x" * limits.MAX_FRAME_BYTES
    with world.client() as (connection_id, receive):
        with pytest.raises(ValueError, match="is the most"):
            world.sockets.send(connection_id, largest + b"x")
        world.sockets.send(connection_id, largest)
        assert receive() == largest


def test_a_closed_connection_is_gone(world: World) -> None:
    with pytest.raises(Gone):
        world.sockets.send("nobody", b"{}")


def _create_function(functions: Any) -> str:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("index.py", TELLS_ITS_CONNECTION_ID)
    function = functions.create_function(
        FunctionName="who",
        Runtime="python3.13",
        Handler="index.handler",
        Role="arn:aws:iam::000000000000:role/who",
        Code={"ZipFile": archive.getvalue()},
    )
    return str(function["FunctionArn"])


def _encoded(frame: str | bytes) -> bytes:
    return frame.encode() if isinstance(frame, str) else frame


def test_a_gateway_that_takes_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "eu-west-1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        gateway = client("apigatewaymanagementapi", endpoint_url=url, read_seconds=0.05, attempts=1)
        with pytest.raises(Stuck):
            ApiGatewaySockets(gateway).send("connection", b"{}")
