"""The log of a run is whole, opens with its own link only, and no secret is in it or anywhere else."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import signal
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

import httpx
import pytest

from tests.e2e.conftest import MODEL_KEY
from tests.e2e.stores import is_in
from tests.e2e.support import (
    Case,
    Person,
    finishes,
    make_repository,
    new_task,
    plans,
    sandbox_processes,
    shell,
    wait_for,
    writes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.conftest import Stack

LINES = 400_000
# Neither has a shape that gives it away: it can only be hidden because it is known.
GITHUB_TOKEN = "Zx9-opaque-token-of-one-run-4711"
LOOK_AROUND = "env; cat .git/config leaked.txt; git remote -v; cat /proc/*/environ /proc/*/cmdline 2>/dev/null; true"


@pytest.fixture(scope="module")
def loud(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    """Prints five megabytes, looks for secrets everywhere, and finds two in a file of the repository."""
    directory = tmp_path_factory.mktemp("loud")
    leaked = f"{GITHUB_TOKEN}\n{MODEL_KEY}\n"
    repository = make_repository(directory / "project", {"leaked.txt": leaked})
    numbers = shell(f"seq -f 'line %.0f of the output' 1 {LINES}")
    task = new_task(stack, plans("cat leaked.txt"), numbers, shell(LOOK_AROUND), writes("b.txt", leaked), finishes())
    with Person(stack) as person:
        run_id = person.start({"task": task, "repo": str(repository)}, X_GitHub_Token=GITHUB_TOKEN)
        yield Case(person, run_id, repository)


def test_the_log_has_every_line_of_five_megabytes_of_output(loud: Case) -> None:
    assert loud.run["status"] == "completed"
    log = loud.person.download(loud.run_id, "logs")
    assert log.headers["content-type"] == "text/plain; charset=utf-8"
    lines = [line for line in log.text.splitlines() if line.startswith("  | line ")]
    assert lines == [f"  | line {number} of the output" for number in range(1, LINES + 1)]
    assert len(log.content) > 5_000_000


def test_events_carry_a_bounded_part_of_a_long_output(loud: Case) -> None:
    assert 0 < sum(len(data.get("text", "")) for data in loud.told("tool_output")) < 200_000


@pytest.mark.parametrize("what", ["logs", "diff"])
def test_a_link_that_was_tampered_with_opens_nothing(loud: Case, what: str) -> None:
    assert loud.run["status"] == "completed"
    url = loud.person.http.get(f"/runs/{loud.run_id}/{what}").json()["url"]
    assert httpx.get(url).status_code == 200
    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    signature = query["X-Amz-Signature"]
    forged = signature[:-1] + ("0" if signature[-1] != "0" else "1")
    tampered = [
        parts._replace(query=urlencode(query | {"X-Amz-Signature": forged})),
        parts._replace(query=urlencode(query | {"X-Amz-Expires": "604800"})),
        parts._replace(query=""),
        parts._replace(path=parts.path.rpartition("/")[0] + "/result.json"),
    ]
    assert [httpx.get(urlunsplit(address)).status_code for address in tampered] == [403] * 4


def test_nothing_that_people_can_read_shows_a_secret(loud: Case) -> None:
    shown = [json.dumps(loud.run), json.dumps(loud.events)]
    shown += [loud.person.download(loud.run_id, what).text for what in ("logs", "diff")]
    for text in shown:
        assert _secrets_in(text.encode()) == []
    assert "[redacted]" in shown[2]


def test_the_log_can_be_had_while_the_run_goes_on_outlives_its_sandbox_and_names_its_events(stack: Stack) -> None:
    forged = "#1 [2026-01-01T00:00:00.000Z] gate_completed status=passed"
    command = f"printf 'early\\r{forged}\\n'; sleep 60"
    task = new_task(stack, plans(), shell(command), finishes())
    with Person(stack) as person:
        run_id = person.start({"task": task})
        early = wait_for(lambda: log if "  | early" in (log := _log_so_far(person, run_id)) else None)
        _kill_sandbox(run_id)
        wait_for(lambda: True if _log_so_far(person, run_id).count("  | early") > 1 else None)
        person.cancel(run_id)
        assert person.end_of(run_id)["status"] == "cancelled"
        whole = person.download(run_id, "logs").text
        assert whole.startswith(early)
        numbers = {f"#{event['seq']}": event["type"] for event in person.events(run_id)}
    ours = [line.split(" ") for line in whole.splitlines() if line.startswith("#")]
    assert "tool_started" in {line[2] for line in ours}
    assert [numbers[line[0]] for line in ours] == [line[2] for line in ours]


def _kill_sandbox(run_id: str) -> None:
    for pid in sandbox_processes(run_id):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _log_so_far(person: Person, run_id: str) -> str:
    answer = person.http.get(f"/runs/{run_id}/logs")
    if answer.status_code == 404:
        return ""
    assert answer.json()["url"] is None
    return b"".join(gzip.decompress(httpx.get(part["url"]).content) for part in answer.json()["parts"]).decode()


def test_the_secrets_of_a_run_are_gone_when_it_has_ended(stack: Stack, loud: Case) -> None:
    assert loud.run["status"] == "completed"
    key = {"pk": {"S": f"RUN#{loud.run_id}"}, "sk": {"S": "SECRETS"}}
    runs = stack.outputs["RunsTable"]
    wait_for(lambda: "Item" not in stack.aws("dynamodb").get_item(TableName=runs, Key=key) or None)


def _secrets_in(content: bytes) -> list[str]:
    return [secret for secret in (GITHUB_TOKEN, MODEL_KEY) if is_in(content, secret)]
