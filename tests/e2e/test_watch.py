"""`sandpiper watch` on a bad network."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

from sandpiper_cli.client import Api
from sandpiper_cli.live import Stream
from sandpiper_local import aws
from tests.e2e.command_line import CommandLine
from tests.e2e.cutting_proxy import CuttingProxy
from tests.e2e.sockets import SilentRun, socket_of
from tests.e2e.support import Person, wait_for

if TYPE_CHECKING:
    import subprocess

    from tests.e2e.conftest import Stack

CUTS = 4
CUTS_OF_A_STREAM = 50


def reconnected(network: CuttingProxy, times: int) -> None:
    wait_for(lambda: True if network.sockets_opened >= times else None, every=0.02)


def seen_by(watcher: subprocess.Popen[str], count: int) -> list[int]:
    assert watcher.stdout is not None
    return [json.loads(watcher.stdout.readline())["seq"] for _ in range(count)]


def test_a_watcher_that_is_cut_again_and_again_sees_every_event_once(stack: Stack) -> None:
    with Person(stack) as ann, CuttingProxy(stack.api_url) as network:
        run = SilentRun(stack, ann.name)
        seen = []
        with CommandLine(ann).started("--endpoint", network.url, "watch", run.run_id, "--json") as watcher:
            seen += seen_by(watcher, 1)
            for opened in range(1, CUTS + 1):
                reconnected(network, opened)
                run.append(10)
                seen += seen_by(watcher, 5)
                assert network.cut() > 0
                run.append(10)
                seen += seen_by(watcher, 15)
            run.end()
            seen += seen_by(watcher, 1)
            rest = watcher.communicate(timeout=30)
        assert seen == list(range(1, CUTS * 20 + 3))
        (ended,) = rest[0].splitlines()
        assert json.loads(ended)["status"] == "cancelled"
        assert watcher.returncode == 1
        assert rest[1] == ""


def test_a_stream_whose_socket_is_cut_fifty_times_shows_no_gap_and_no_double(stack: Stack) -> None:
    with Person(stack) as ann, CuttingProxy(stack.api_url) as network, Api(network.url, stack.token(ann.name)) as api:
        run = SilentRun(stack, ann.name)
        seen: list[int] = []
        stream = Stream(api, run.run_id, sleep=lambda _: None)
        reader = threading.Thread(target=lambda: seen.extend(event.seq for event in stream))
        reader.start()
        for opened in range(1, CUTS_OF_A_STREAM + 1):
            reconnected(network, opened)
            run.append(3)
            assert network.cut() > 0
        run.end()
        reader.join(30)
        assert seen == list(range(1, CUTS_OF_A_STREAM * 3 + 3))
        assert network.sockets_opened >= CUTS_OF_A_STREAM


def test_records_of_the_table_that_come_again_and_too_late_are_shown_once(stack: Stack) -> None:
    with Person(stack) as ann, Api(stack.api_url, stack.token(ann.name)) as api, socket_of(ann) as socket:
        run = SilentRun(stack, ann.name)
        run.append(3)
        seen: list[int] = []
        stream = Stream(api, run.run_id)
        reader = threading.Thread(target=lambda: seen.extend(event.seq for event in stream))
        reader.start()
        wait_for(lambda: run.subscribers() or None)
        socket.subscribe(run.run_id, after=4)
        broadcast_again(stack, run.run_id, [3, 2, 4, 2])
        assert socket.numbers(4) == [3, 2, 4, 2], "they do reach who is connected"
        run.end()
        reader.join(30)
        assert seen == [1, 2, 3, 4, 5]


def broadcast_again(stack: Stack, run_id: str, numbers: list[int]) -> None:
    """As a stream does whose last batch was not confirmed."""
    key = {"ExpressionAttributeValues": {":run": {"S": run_id}}, "KeyConditionExpression": "run_id = :run"}
    rows = stack.aws("dynamodb").query(TableName=stack.outputs["EventsTable"], **key)["Items"]
    images = {int(row["seq"]["N"]): row for row in rows}
    records = [
        {"eventName": "INSERT", "dynamodb": {"SequenceNumber": str(place), "NewImage": images[number]}}
        for place, number in enumerate(numbers)
    ]
    functions = stack.aws("lambda").list_functions()["Functions"]
    (name,) = (each["FunctionName"] for each in functions if each["Handler"] == "broadcast.handler.handler")
    answer = stack.aws("lambda").invoke(FunctionName=name, Payload=json.dumps({"Records": records}).encode())
    assert json.load(answer["Payload"]) == {"batchItemFailures": []}


def test_a_watcher_whose_socket_the_server_closes_comes_back(stack: Stack) -> None:
    base = f"{stack.info['aws_endpoint']}/_aws/execute-api/{stack.outputs['WebSocketApiId']}/live"
    gateway = aws.client("apigatewaymanagementapi", base, stack.info["region"], stack.info["credentials"])
    with Person(stack) as ann:
        run = SilentRun(stack, ann.name)
        with CommandLine(ann).started("watch", run.run_id, "--json", "--after", "1") as watcher:
            (first,) = wait_for(lambda: run.subscribers() or None)
            gateway.delete_connection(ConnectionId=first)
            wait_for(lambda: True if set(run.subscribers()) - {first} else None)
            run.append(3)
            run.end()
            seen = [json.loads(line).get("seq") for line in watcher.communicate(timeout=30)[0].splitlines()]
        assert seen == [2, 3, 4, 5, None]  # the last line is the run
