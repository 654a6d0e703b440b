"""Plays the part of ECS and Fargate: runs the tasks of a cluster as processes and tells of their end.

ministack marks a task RUNNING and starts nothing; StopTask marks it STOPPED at once; no state change reaches
EventBridge. All three are made good here, so that functions and state machine see what they would see on AWS.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from sandpiper_local import aws
from sandpiper_local.ecs_agent.births import Births
from sandpiper_local.ecs_agent.nursery import Job
from sandpiper_local.ecs_agent.task import (
    CREDENTIAL_SECONDS,
    CannotStart,
    Ended,
    container_environment,
    secret_values,
    stop_timeout,
    stopped_event,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


_SHOWN = ("RUN_ID", "ATTEMPT")  # so that people find the processes of a run

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    cluster: str
    task_stopped_function: str
    endpoint: str
    region: str
    logs: Path
    scratch: Path
    tools: Path | None
    module: str = "sandbox_task"
    preloaded: tuple[str, ...] = (
        "sandbox_task.__main__",
        *("sandbox_task.model.sdk", "httpcore2", "opentelemetry.propagate"),  # what it imports at its first request
    )


@dataclass
class _Running:
    task: dict[str, Any]
    pid: int
    home: Path
    stop_reason: str | None = None


class Agent:
    """Single-threaded: the tasks are tied to the life of the thread that opened their nursery."""

    def __init__(self, settings: Settings, *, ecs: Any, sts: Any, functions: Any) -> None:
        self._settings = settings
        self._ecs = ecs
        self._listing = ecs.get_paginator("list_tasks")
        self._sts = sts
        self._functions = functions
        self._births = Births(settings.preloaded)
        self._running: dict[str, _Running] = {}
        self._seen: set[str] = set()

    def poll(self) -> None:
        """Bring the processes in line with what ECS says, and ECS in line with the processes."""
        wanted = self._wanted()
        for arn in wanted:
            if arn not in self._seen:
                self._seen.add(arn)
                self._start(self._describe([arn])[0])
        self._notice_stop_requests(wanted)
        self._notice_ends()

    @property
    def hears(self) -> int:
        """The descriptor on which the end of a task is told."""
        return self._births.fileno()

    def close(self) -> None:
        """Ends every task: they are tied to the life of the process that they were born of."""
        self._births.close()

    def _wanted(self) -> list[str]:
        pages = self._listing.paginate(cluster=self._settings.cluster, desiredStatus="RUNNING")
        return [arn for page in pages for arn in page["taskArns"]]

    def _describe(self, arns: list[str]) -> list[dict[str, Any]]:
        tasks: list[dict[str, Any]] = self._ecs.describe_tasks(cluster=self._settings.cluster, tasks=arns)["tasks"]
        return tasks

    def _start(self, task: dict[str, Any]) -> None:
        task_id = task["taskArn"].rpartition("/")[2]
        home = self._settings.scratch / task_id
        # others may pass through: a command that runs as another user has its workspace below
        home.mkdir(mode=0o711)
        definition = self._ecs.describe_task_definition(taskDefinition=task["taskDefinitionArn"])["taskDefinition"]
        try:
            pid = self._births.start(self._job(definition, task, home))
        except CannotStart as error:
            logger.warning("task %s: %s", task_id, error)
            shutil.rmtree(home)
            self._end(task, Ended(None, str(error), "TaskFailedToStart"))
            return
        logger.info("task %s started as pid %d", task_id, pid)
        self._running[task["taskArn"]] = _Running(task, pid, home)

    def _job(self, definition: Mapping[str, Any], task: Mapping[str, Any], home: Path) -> Job:
        environment = self._environment(definition, task, home)
        return Job(
            module=self._settings.module,
            environment=environment,
            directory=str(home),
            log=str(self._settings.logs / f"{home.name}.log"),
            grace_seconds=stop_timeout(definition),
            shown={name: environment[name] for name in _SHOWN if name in environment},
        )

    def _environment(self, definition: Mapping[str, Any], task: Mapping[str, Any], home: Path) -> dict[str, str]:
        """Exactly what the container would get, plus where the embedded AWS is."""
        execution = self._assume(definition["executionRoleArn"])
        secretsmanager = aws.client("secretsmanager", self._settings.endpoint, self._settings.region, execution)
        role = self._assume(definition["taskRoleArn"])
        return {
            "PATH": aws.SYSTEM_PATH,
            "HOME": str(home),
            "TMPDIR": str(home),
            "LANG": "C.UTF-8",
            "AWS_ENDPOINT_URL": self._settings.endpoint,
            "AWS_REGION": self._settings.region,
            "AWS_DEFAULT_REGION": self._settings.region,
            "AWS_ACCESS_KEY_ID": role["access_key_id"],
            "AWS_SECRET_ACCESS_KEY": role["secret_access_key"],
            "AWS_SESSION_TOKEN": role["session_token"],
            **({"SANDBOX_TOOLS_DIR": str(self._settings.tools)} if self._settings.tools else {}),
            **secret_values(definition, secretsmanager),
            **container_environment(definition, task.get("overrides", {})),
        }

    def _assume(self, role_arn: str) -> dict[str, str]:
        try:
            answer = self._sts.assume_role(
                RoleArn=role_arn, RoleSessionName="ecs-agent", DurationSeconds=CREDENTIAL_SECONDS
            )
        except ClientError as error:
            raise CannotStart(f"ResourceInitializationError: unable to assume {role_arn}: {error}") from error
        given = answer["Credentials"]
        return {
            "access_key_id": given["AccessKeyId"],
            "secret_access_key": given["SecretAccessKey"],
            "session_token": given["SessionToken"],
        }

    def _notice_stop_requests(self, wanted: list[str]) -> None:
        unwanted = [arn for arn, running in self._running.items() if running.stop_reason is None and arn not in wanted]
        for start in range(0, len(unwanted), 100):  # the limit of DescribeTasks
            for task in self._describe(unwanted[start : start + 100]):
                running = self._running[task["taskArn"]]
                running.stop_reason = task.get("stoppedReason") or "Task stopped by user"
                with suppress(ProcessLookupError):
                    os.kill(running.pid, signal.SIGTERM)

    def _notice_ends(self) -> None:
        for arn, running in list(self._running.items()):
            code = self._births.exit_code(running.pid)
            if code is None:
                continue
            del self._running[arn]
            shutil.rmtree(running.home, ignore_errors=True)
            if running.stop_reason is not None:
                self._end(running.task, Ended(code, running.stop_reason, "UserInitiated"))
            else:
                self._end(running.task, Ended(code, "Essential container in task exited", "EssentialContainerExited"))

    def _end(self, task: dict[str, Any], ended: Ended) -> None:
        logger.info("task %s ended: exit code %s, %s", task["taskArn"], ended.exit_code, ended.reason)
        # there is no way to tell ministack the exit code: the event has it, DescribeTasks says 0
        self._ecs.stop_task(cluster=self._settings.cluster, task=task["taskArn"], reason=ended.reason)
        self._functions.invoke(
            FunctionName=self._settings.task_stopped_function,
            InvocationType="Event",
            Payload=json.dumps(stopped_event(task, ended, self._settings.region), default=str).encode(),
        )
