"""The containers of a run, as ECS tasks that carry the run's id in `startedBy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from sandpiper import limits
from sandpiper.adapters.aws import error_code

if TYPE_CHECKING:
    from mypy_boto3_ecs import ECSClient


class EcsSandboxes:
    def __init__(self, ecs: ECSClient, *, cluster_arn: str) -> None:
        self._ecs = ecs
        self._cluster_arn = cluster_arn

    def stop_all(self, run_id: str, reason: str) -> int:
        pages = self._ecs.get_paginator("list_tasks").paginate(cluster=self._cluster_arn, startedBy=run_id)
        return sum(self._stop(task_arn, reason) for page in pages for task_arn in page["taskArns"])

    def _stop(self, task_arn: str, reason: str) -> bool:
        """Whether there was anything to stop: a task that ended meanwhile may be forgotten already."""
        try:
            self._ecs.stop_task(cluster=self._cluster_arn, task=task_arn, reason=reason[: limits.MAX_STOP_REASON_CHARS])
        except ClientError as error:
            if error_code(error) == "InvalidParameterException" and "not found" in str(error):
                return False
            raise
        return True
