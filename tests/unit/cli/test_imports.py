"""What each command loads: people and scripts call `sandpiper` often, and its start is mostly imports."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from sandpiper_cli.session import Connection
from tests.unit.cli.fake_api import RUN_ID, TOKEN, FakeApi

if TYPE_CHECKING:
    from pathlib import Path

CALL = "import sys; from sandpiper_cli.main import app; app({args!r}, standalone_mode=False); print(*sys.modules)"
OF_A_STACK = {"aiohttp", "boto3", "botocore", "pydantic", "samtranslator", "sandpiper", "yaml"}
OF_HTTP = {"asyncio", "http.client", "httpx", "ssl", "urllib.request"}
OF_A_TERMINAL = {"markdown_it", "pygments", "rich"}
OF_TYPER = {"importlib.metadata", "pydantic"}  # which it reads the options with
SLOW = {"cryptography", "importlib.metadata", "jwt", "websockets", *OF_A_STACK, *OF_HTTP, *OF_A_TERMINAL}


def loaded(*args: str) -> set[str]:
    code = CALL.format(args=list(args))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    return set(done.stdout.splitlines()[-1].split())


def test_help_loads_nothing_that_only_doing_it_needs() -> None:
    assert not loaded("--help") & SLOW


@pytest.mark.parametrize("words", [["run", "--help"], ["github", "--help"], ["up", "--help"]], ids=" ".join)
def test_help_for_a_command_loads_nothing_that_only_doing_it_needs(words: list[str]) -> None:
    assert not loaded(*words) & (SLOW - OF_TYPER)


def test_a_token_is_made_without_a_cryptography_library_or_a_client() -> None:
    state = Connection().state
    state.create()
    state.jwt_secret.write_text("a secret")
    assert not loaded("token") & (SLOW - OF_TYPER)


@pytest.mark.parametrize(
    "words",
    [["show", RUN_ID], ["runs"], ["health"], ["usage"], ["cancel", RUN_ID], ["logs", RUN_ID], ["diff", RUN_ID]],
    ids=lambda words: words[0],
)
def test_a_command_that_asks_one_thing_loads_no_socket_no_stack_and_no_large_client(
    api: FakeApi, words: list[str]
) -> None:
    api.files = {"logs": b"all of it\n", "diff": b"+one\n"}
    found = loaded("--endpoint", api.url, "--token", TOKEN, *words)
    assert "http.client" in found
    allowed = OF_TYPER | {"http.client", "ssl", "rich"}
    assert not found & (SLOW - allowed | {"rich.live", "rich.progress"})


def test_what_the_list_of_slow_modules_names_exists(tmp_path: Path) -> None:
    code = "\n".join(f"import {name}" for name in sorted(SLOW))
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
