from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from sandpiper.adapters.sandboxes import EcsSandboxes


class Ecs:
    """Two pages with one task each; stopping the first answers with `refusal`."""

    def __init__(self, code: str, message: str) -> None:
        self._refusal = ClientError({"Error": {"Code": code, "Message": message}}, "StopTask")
        self.stopped: list[str] = []

    def get_paginator(self, _: str) -> Ecs:
        return self

    def paginate(self, *, cluster: str, startedBy: str) -> list[Any]:  # noqa: N803 - AWS's names
        return [{"taskArns": ["ended"]}, {"taskArns": ["running"]}]

    def stop_task(self, *, cluster: str, task: str, reason: str) -> None:
        if task == "ended":
            raise self._refusal
        self.stopped.append(task)


def test_a_task_that_ended_meanwhile_does_not_keep_the_others_running() -> None:
    ecs: Any = Ecs("InvalidParameterException", "The referenced task was not found.")
    assert EcsSandboxes(ecs, cluster_arn="cluster").stop_all("run-1", "done") == 1
    assert ecs.stopped == ["running"]


def test_any_other_refusal_is_not_passed_over() -> None:
    ecs: Any = Ecs("AccessDeniedException", "not allowed")
    with pytest.raises(ClientError):
        EcsSandboxes(ecs, cluster_arn="cluster").stop_all("run-1", "done")
