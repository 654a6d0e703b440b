"""What a function imports before its first request is most of its cold start. `make bench` has the times."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("anthropic", "boto3", "botocore.session", "cryptography", "jwt", "pydantic", "aws_lambda_powertools")
EVERY_FUNCTION = [
    "api",
    "authorizer",
    "broadcast",
    "reconcile",
    "task_stopped",
    "websocket",
    "workflow",
    "webhook",
    "github",
]
PATHS = ["layers/core/python", "functions"]


def heavy_imports(function: str) -> set[str]:
    program = (
        f"import sys; sys.path[:0] = {PATHS!r}; import {function}.handler; "
        f"print(*(name for name in {HEAVY!r} if name in sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


@pytest.mark.parametrize("function", EVERY_FUNCTION)
def test_no_function_imports_the_model_sdk_or_all_of_boto3(function: str) -> None:
    assert not heavy_imports(function) & {"anthropic", "boto3"}


@pytest.mark.parametrize("function", ["authorizer", "broadcast", "webhook", "websocket"])
def test_the_functions_that_stand_in_front_of_everything_import_nothing_heavy(function: str) -> None:
    assert heavy_imports(function) == set()
