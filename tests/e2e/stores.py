"""Everything that a deployment on the embedded AWS holds, to look for what should be in none of it."""

from __future__ import annotations

import base64
import gzip
import io
import re
import tarfile
import zlib
from typing import TYPE_CHECKING, Any

import zstandard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.conftest import Stack

_ZLIB = re.compile(rb"\x78[\x01\x5e\x9c\xda]")  # how each object of a git pack begins


def is_in(content: bytes, secret: str) -> bool:
    """As it is, or as a header or a URL would carry it."""
    basic = base64.b64encode(f"x-access-token:{secret}".encode()).rstrip(b"=")
    return any(form in content for form in (secret.encode(), base64.b64encode(secret.encode()).rstrip(b"="), basic))


def unpacked(content: bytes) -> Iterator[bytes]:
    """What is inside, if it is compressed: gzip, zstd, and whatever git has packed."""
    if content.startswith(b"\x1f\x8b"):
        yield gzip.decompress(content)
    elif content.startswith(b"\x28\xb5\x2f\xfd"):
        yield from _members(zstandard.ZstdDecompressor().decompressobj().decompress(content))
    elif content.startswith(b"PACK"):
        yield from filter(None, (_inflated(content[found.start() :]) for found in _ZLIB.finditer(content)))


def _members(archive: bytes) -> Iterator[bytes]:
    """The files of a stored workspace, and what git has packed in it, each behind its name."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member in files:
            content = file.read() if (file := files.extractfile(member)) else b""
            yield from (f"{member.name}\n".encode() + form for form in (content, *unpacked(content)))


def _inflated(content: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(content)
    except zlib.error:
        return b""  # two bytes that only look like a beginning


def everything(stack: Stack) -> Iterator[tuple[str, bytes]]:
    """Every row, object, execution, task and log line that the embedded AWS holds, and the stack's own files."""
    yield from _rows(stack)
    yield from _objects(stack)
    yield from _executions(stack)
    yield from _tasks_and_logs(stack)
    for directory in (stack.state_dir / "logs", stack.state_dir / "tasks"):
        yield from ((f"file {path}", path.read_bytes()) for path in directory.rglob("*") if path.is_file())


def _rows(stack: Stack) -> Iterator[tuple[str, bytes]]:
    dynamodb = stack.aws("dynamodb")
    for table in dynamodb.list_tables()["TableNames"]:
        for page in dynamodb.get_paginator("scan").paginate(TableName=table):
            yield from ((f"table {table}", repr(item).encode()) for item in page["Items"])


def _objects(stack: Stack) -> Iterator[tuple[str, bytes]]:
    s3 = stack.aws("s3")
    bucket = stack.outputs["ArtifactsBucket"]
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for entry in page.get("Contents", []):
            content = s3.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read()
            yield from ((f"object {entry['Key']}", form) for form in (content, *unpacked(content)))


def _executions(stack: Stack) -> Iterator[tuple[str, bytes]]:
    sfn = stack.aws("stepfunctions")
    for execution in sfn.list_executions(stateMachineArn=stack.outputs["StateMachineArn"])["executions"]:
        arn = execution["executionArn"]
        yield f"execution {arn}", repr(sfn.describe_execution(executionArn=arn)).encode()
        yield f"history {arn}", repr(sfn.get_execution_history(executionArn=arn)["events"]).encode()


def _tasks_and_logs(stack: Stack) -> Iterator[tuple[str, bytes]]:
    ecs, logs, cluster = stack.aws("ecs"), stack.aws("logs"), stack.outputs["ClusterArn"]
    arns: list[Any] = [arn for s in ("RUNNING", "STOPPED") for arn in _task_arns(ecs, cluster, s)]
    for arn in arns:
        yield f"task {arn}", repr(ecs.describe_tasks(cluster=cluster, tasks=[arn])["tasks"]).encode()
    for group in logs.describe_log_groups()["logGroups"]:
        for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group["logGroupName"]):
            yield f"log {group['logGroupName']}", repr(page["events"]).encode()


def _task_arns(ecs: Any, cluster: str, status: str) -> list[str]:
    return list(ecs.list_tasks(cluster=cluster, desiredStatus=status)["taskArns"])
