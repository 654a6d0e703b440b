"""Known secrets are planted in a run; afterwards, and while it goes on, they are in no store but where they belong."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import JWT_SECRET, MODEL_KEY
from tests.e2e.stores import everything, is_in, unpacked
from tests.e2e.support import (
    Case,
    Person,
    finishes,
    make_repository,
    new_task,
    plans,
    says,
    shell,
    tool,
    wait_for,
    writes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.conftest import Stack

# The first has no shape that gives it away; the second is known to nobody, and has one.
GITHUB_TOKEN = "Qy7-opaque-token-of-a-planted-run-0815"
PRINTED = "ghp_" + "1a2B3c4D5e6F7g8H9i0J" * 2
MARK = "word-that-is-no-secret-4711"
PLANTED = (GITHUB_TOKEN, MODEL_KEY, JWT_SECRET, PRINTED)
OWN_FILES = (b"./leaked.txt\n", b"./.git/objects/")
PLACES = {"table", "object", "execution", "history", "task", "log", "file"}
LOOK_AROUND = (
    "cat leaked.txt; env; cat .git/config; git remote -v; cat /proc/*/environ /proc/*/cmdline 2>/dev/null; true"
)


@pytest.fixture(scope="module")
def planted(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    """Finds what it could in a file, prints one that it has put together, and asks before it ends."""
    leaked = f"{GITHUB_TOKEN}\n{MODEL_KEY}\n{PRINTED}\n"
    repository = make_repository(tmp_path_factory.mktemp("planted") / "project", {"leaked.txt": leaked})
    task = new_task(
        stack,
        plans("cat leaked.txt"),
        shell(f"{LOOK_AROUND}; echo {PRINTED[::-1]} | rev; echo {MARK}"),
        writes("copy.txt", MARK),
        says(tool("ask_user", question="Go on?")),
        finishes(),
    )
    with Person(stack) as person:
        run_id = person.start({"task": task, "repo": str(repository)}, X_GitHub_Token=GITHUB_TOKEN)
        yield Case(person, run_id, repository)


def test_no_store_holds_a_planted_secret_while_the_run_waits_nor_after_it_has_ended(
    stack: Stack, planted: Case
) -> None:
    """One story: what a suspended run keeps is looked through, checkpoint and all, then what an ended one does."""
    planted.person.suspended(planted.run_id)
    secrets = {"pk": {"S": f"RUN#{planted.run_id}"}, "sk": {"S": "SECRETS"}}
    runs = stack.outputs["RunsTable"]
    assert "ciphertext" in stack.aws("dynamodb").get_item(TableName=runs, Key=secrets)["Item"]
    assert found_in(stack) == set()

    planted.person.http.post(f"/runs/{planted.run_id}/messages", json={"text": "Yes."})
    assert planted.run["status"] == "completed"
    wait_for(lambda: "Item" not in stack.aws("dynamodb").get_item(TableName=runs, Key=secrets) or None)
    assert found_in(stack) == set()
    log = planted.person.download(planted.run_id, "logs").text
    assert (MARK in log, "[redacted]" in log) == (True, True)


def test_the_search_would_find_what_is_there(stack: Stack, planted: Case) -> None:
    """The wall removed: a word that nobody hides is found where secrets are looked for."""
    planted.person.event(planted.run_id, "file_changed")
    places = {place.split()[0] for place, content in everything(stack) if is_in(content, MARK)}
    assert {"table"} <= places <= PLACES
    assert {place.split()[0] for place, _ in everything(stack)} == PLACES


@pytest.mark.parametrize("pack", [gzip.compress, lambda text: b"PACK" + zlib.compress(text)], ids=["gzip", "git"])
def test_what_is_compressed_is_looked_into(pack: object) -> None:
    assert callable(pack)
    assert any(is_in(content, PRINTED) for content in unpacked(pack(PRINTED.encode())))


def found_in(stack: Stack) -> set[tuple[str, str]]:
    """Where which planted secret was found. A stored workspace holds the repository's own files as they are."""
    kept = ((place, content) for place, content in everything(stack) if not content.startswith(OWN_FILES))
    return {(place, secret) for place, content in kept for secret in PLANTED if is_in(content, secret)}
