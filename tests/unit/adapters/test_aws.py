from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sandpiper.adapters import aws

LIGHT_MODULES = ("connections", "sockets", "event_log", "aws", "clock")
HEAVY_MODULES = ("pydantic", "boto3", "botocore.session", "urllib3")


@pytest.fixture(autouse=True)
def _account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


def test_a_service_has_one_client_per_endpoint() -> None:
    here = aws.client("dynamodb", endpoint_url="http://here.test")
    assert aws.client("dynamodb", endpoint_url="http://here.test") is here
    assert aws.client("dynamodb", endpoint_url="http://there.test") is not here


def test_clients_give_up_soon_and_try_again_a_few_times() -> None:
    config: Any = aws.client("kms", endpoint_url="http://kms.test", read_seconds=7).meta.config
    assert (config.connect_timeout, config.read_timeout) == (aws.CONNECT_SECONDS, 7)
    assert config.retries["total_max_attempts"] == aws.ATTEMPTS


def test_an_error_has_the_code_that_the_service_gave_it() -> None:
    assert aws.error_code(ClientError({"Error": {"Code": "GoneException"}}, "PostToConnection")) == "GoneException"
    assert aws.error_code(ValueError()) == ""


def test_modules_of_the_small_functions_import_nothing_heavy() -> None:
    imports = "; ".join(f"import sandpiper.adapters.{name}" for name in LIGHT_MODULES)
    program = f"import sys; {imports}; print([name for name in {HEAVY_MODULES!r} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
