"""One task of the embedded ECS: what it is given, and what the world hears when it ends."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

# Longer than any run: 2 h of work plus provisioning and finishing. ECS would renew them; a process can't be told.
CREDENTIAL_SECONDS = 12 * 60 * 60


class CannotStart(Exception):
    """ECS would stop the task before its container starts; the message becomes its stoppedReason."""


@dataclass(frozen=True)
class Ended:
    exit_code: int | None
    reason: str
    stop_code: str


def container_environment(definition: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, str]:
    """Of the one container of our task definition, with the overrides that RunTask gave."""
    container = definition["containerDefinitions"][0]
    environment = {entry["name"]: entry["value"] for entry in container.get("environment", [])}
    for override in overrides.get("containerOverrides", []):
        if override.get("name", container["name"]) == container["name"]:
            environment |= {entry["name"]: entry["value"] for entry in override.get("environment", [])}
    return environment


def stop_timeout(definition: Mapping[str, Any]) -> float:
    """Seconds between SIGTERM and SIGKILL; 30 is ECS's own default."""
    return float(definition["containerDefinitions"][0].get("stopTimeout", 30))


def secret_values(definition: Mapping[str, Any], secretsmanager: Any) -> dict[str, str]:
    """Of the container's `secrets`, read by whoever `secretsmanager` is: the execution role."""
    container = definition["containerDefinitions"][0]
    return {entry["name"]: _secret(entry["valueFrom"], secretsmanager) for entry in container.get("secrets", [])}


def _secret(reference: str, secretsmanager: Any) -> str:
    arn, key = _split_reference(reference)
    try:
        value: str = secretsmanager.get_secret_value(SecretId=arn)["SecretString"]
    except secretsmanager.exceptions.ClientError as error:
        raise CannotStart(f"ResourceInitializationError: unable to retrieve secret {arn}: {error}") from error
    if not key:
        return value
    try:
        return str(json.loads(value)[key])
    except (ValueError, KeyError, TypeError) as error:
        raise CannotStart(f"ResourceInitializationError: secret {arn} has no key {key}") from error


def _split_reference(reference: str) -> tuple[str, str]:
    """`arn:aws:secretsmanager:region:account:secret:name[:json-key[:stage[:version]]]`"""
    fields = reference.split(":")
    return ":".join(fields[:7]), fields[7] if len(fields) > 7 else ""


def stopped_event(task: Mapping[str, Any], ended: Ended, region: str) -> dict[str, Any]:
    """What EventBridge delivers for `ECS Task State Change` with lastStatus STOPPED."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    container = {
        "containerArn": task["containers"][0].get("containerArn", ""),
        "name": task["containers"][0]["name"],
        "lastStatus": "STOPPED",
        "taskArn": task["taskArn"],
        **({} if ended.exit_code is None else {"exitCode": ended.exit_code}),
    }
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": "ECS Task State Change",
        "source": "aws.ecs",
        "account": task["taskArn"].split(":")[4],
        "time": now,
        "region": region,
        "resources": [task["taskArn"]],
        "detail": {
            "clusterArn": task["clusterArn"],
            "taskArn": task["taskArn"],
            "taskDefinitionArn": task["taskDefinitionArn"],
            "startedBy": task.get("startedBy", ""),
            "group": task.get("group", ""),
            "launchType": task.get("launchType", "FARGATE"),
            "overrides": task.get("overrides", {}),
            "containers": [container],
            "lastStatus": "STOPPED",
            "desiredStatus": "STOPPED",
            "stoppedReason": ended.reason,
            "stopCode": ended.stop_code,
            "stoppedAt": now,
        },
    }
