"""Every port twice: as its fake, and as the real adapter on an AWS that runs on this machine."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sandpiper.adapters.slots import DynamoSlots
from sandpiper.models.events import NewEvent
from sandpiper.testing.fakes import FakeBlobs, FakeClock, FakeRuns, FakeSlots
from tests.contract.samples import a_run, new_run_id
from tests.contract.worlds import Aws, Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandpiper.models.run import Run

MINISTACK = Path(__file__).parents[2] / ".tools/ministack/bin/ministack"
KEYED = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aws]:
    port = _free_port()
    directory = tmp_path_factory.mktemp("ministack")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "TMPDIR": str(directory),
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "LOG_LEVEL": "WARNING",
    }
    with (
        (directory / "log").open("wb") as log,
        subprocess.Popen([str(MINISTACK)], env=environment, cwd=directory, stdout=log, stderr=log) as process,
    ):
        try:
            _wait_until_it_listens(port, process)
            embedded = Aws(f"http://127.0.0.1:{port}")
            _create_tables(embedded)
            yield embedded
        finally:
            process.terminate()


@pytest.fixture(scope="session")
def dynamodb(aws: Aws) -> Any:
    return aws.client("dynamodb")


@pytest.fixture(params=["fake", "real"])
def store(request: pytest.FixtureRequest) -> Store:
    clock = FakeClock()
    if request.param == "fake":
        fake_slots, fake_blobs = FakeSlots(), FakeBlobs()
        return Store(FakeRuns(clock, blobs=fake_blobs, slots=fake_slots), fake_slots, fake_blobs, clock)
    aws: Aws = request.getfixturevalue("aws")
    slots = DynamoSlots(request.getfixturevalue("dynamodb"), runs_table=aws.runs_table)
    return Store(aws.runs(clock), slots, aws.blobs(), clock)


@pytest.fixture
def owner() -> str:
    return f"user-{uuid.uuid4()}"


@pytest.fixture
def run(store: Store, owner: str) -> Run:
    return store.runs.create(a_run(owner, store.clock), [NewEvent(type="run_queued")])


@pytest.fixture
def run_id() -> str:
    return new_run_id()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_it_listens(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        assert process.poll() is None, "the embedded AWS did not start"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    pytest.fail("the embedded AWS does not answer")


def _create_tables(aws: Aws) -> None:
    """The tables of template.yaml, as far as the adapters can tell."""
    dynamodb = aws.client("dynamodb")
    by_owner = {
        "IndexName": "by_owner",
        "KeySchema": [
            {"AttributeName": "owner", "KeyType": "HASH"},
            {"AttributeName": "created_key", "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "ALL"},
    }
    _create_table(dynamodb, aws.runs_table, KEYED, "pk sk owner created_key", GlobalSecondaryIndexes=[by_owner])
    _create_table(dynamodb, aws.connections_table, KEYED, "pk sk")
    numbered = [{"AttributeName": "run_id", "KeyType": "HASH"}, {"AttributeName": "seq", "KeyType": "RANGE"}]
    _create_table(dynamodb, aws.events_table, numbered, "run_id seq")
    _create_table(dynamodb, aws.idempotency_table, [{"AttributeName": "id", "KeyType": "HASH"}], "id")
    aws.client("s3").create_bucket(Bucket=aws.bucket)


def _create_table(dynamodb: Any, name: str, keys: list[dict[str, str]], attributes: str, **options: Any) -> None:
    dynamodb.create_table(
        TableName=name,
        KeySchema=keys,
        AttributeDefinitions=[
            {"AttributeName": attribute, "AttributeType": "N" if attribute == "seq" else "S"}
            for attribute in attributes.split()
        ],
        BillingMode="PAY_PER_REQUEST",
        **options,
    )
