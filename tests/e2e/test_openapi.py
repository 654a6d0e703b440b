"""The document that describes the API is true: it is the one in docs, and the live API keeps to it."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from sandpiper.adapters.slots import DynamoSlots
from sandpiper.limits import DEFAULT_CONCURRENCY
from sandpiper.models.quota import Scope
from tests.e2e.support import ENDED, Person, wait_for

if TYPE_CHECKING:
    from tests.e2e.conftest import Stack

ROOT = Path(__file__).parents[2]
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance,negative_data_rejection,positive_data_acceptance,ignored_auth"
)
# A cursor is what an earlier answer gave, a limit must leave something to use, and no path may come twice: no schema
# says which are good. Every value of every field of `execute` is a thousand requests: they are made on fakes, in
# tests/contract/test_api_document.py.
SETTINGS = """
[[operations]]
include-operation-id = "execute"
phases.coverage.enabled = false

[[operations]]
include-operation-id = "listRuns"
checks.positive_data_acceptance.expected-statuses = ["200", "400"]

[[operations]]
include-operation-id = "raiseBudget"
checks.positive_data_acceptance.expected-statuses = ["200", "404", "409", "422"]

[[operations]]
include-operation-id = "commitFiles"
checks.positive_data_acceptance.expected-statuses = ["401", "403", "422"]
"""


def test_health_has_looked_at_everything(stack: Stack) -> None:
    answer = httpx.get(f"{stack.api_url}/health", timeout=40)
    assert answer.status_code == 200
    health = answer.json()
    assert (health["status"], health["service"]) == ("healthy", "sandpiper")
    assert health["checks"] == {"database": True, "storage": True, "model": True, "github": "configured"}
    assert health["version"]
    assert health["timestamp"]


def test_the_document_is_open_and_is_the_one_in_docs(stack: Stack) -> None:
    answer = httpx.get(f"{stack.api_url}/openapi.json", timeout=40)
    assert answer.status_code == 200
    written = json.loads((ROOT / "docs" / "openapi.json").read_text())
    served = answer.json()
    assert served["info"].pop("version")
    written["info"].pop("version")
    assert served == written


@pytest.mark.timeout(400)  # 800 requests, one after the other: on a busy machine they take their time
def test_the_api_keeps_to_its_document(stack: Stack, tmp_path: Path) -> None:
    """Whatever it starts waits in line, so that no sandbox is started for it: the slots are held by runs that nobody
    can find and cancel."""
    with Person(stack) as person:
        slots = DynamoSlots(stack.aws("dynamodb"), runs_table=stack.outputs["RunsTable"])
        for n in range(DEFAULT_CONCURRENCY):
            scope, since = Scope("user", person.name), datetime.now(UTC)
            assert slots.acquire(scope, f"run-{n}", since=since, limit=DEFAULT_CONCURRENCY, token="") == 0
        said = _schemathesis(stack, person, tmp_path)
        _cancel_all(person)
    assert said.returncode == 0, said.stdout[-6000:]


def _schemathesis(stack: Stack, person: Person, directory: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("schemathesis")
    (directory / "schemathesis.toml").write_text(SETTINGS)
    command = [
        str(program), "run", f"{stack.api_url}/openapi.json",
        "--header", f"Authorization: Bearer {stack.token(person.name)}",
        "--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--max-examples", "4", "--seed", "20261118",
        "--workers", "2", "--no-color", "--warnings", "off", "--suppress-health-check", "all",
        "--generation-database", "none", "--request-timeout", "40",
    ]  # fmt: skip
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, timeout=360)


def _cancel_all(person: Person) -> None:
    def live() -> list[str]:
        runs = person.http.get("/runs", params={"limit": 200}).json()["runs"]
        return [run["run_id"] for run in runs if run["status"] not in ENDED]

    for run_id in live():
        person.cancel(run_id)
    wait_for(lambda: None if live() else True)
