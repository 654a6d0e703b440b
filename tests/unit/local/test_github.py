"""The fake GitHub as a part of a stack."""

from __future__ import annotations

import os
from pathlib import Path

import httpx
import jwt

from sandpiper_local.fake_github.client import GitHubAdmin
from sandpiper_local.github import start_github
from sandpiper_local.parts import Parts
from sandpiper_local.paths import StateDir


def test_a_stack_gets_a_github_an_app_on_it_and_all_that_it_must_know(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    state.clear()
    reader, writer = os.pipe()
    with Parts(state, leftovers=[], inherit_fd=writer) as parts:
        told = start_github(parts, state, api_url="http://127.0.0.1:8787")
        assert told["GITHUB_API_URL"] == f"{told['GITHUB_URL']}/api/v3"
        claims = {"iss": told["GITHUB_APP_ID"], "iat": 1, "exp": 2}
        signed = jwt.encode(claims, told["GITHUB_APP_PRIVATE_KEY"], "RS256")
        refused = httpx.get(f"{told['GITHUB_API_URL']}/app", headers={"Authorization": f"Bearer {signed}"})
        assert "exp" in refused.json()["message"]  # the signature was good: it was looked at first
        admin = GitHubAdmin(told["GITHUB_URL"])
        assert admin.call("GET", "/repos/acme/tillroll/issues/1", by="ann")["state"] == "open"
        admin.close()
        process = Path(f"/proc/{parts.pids['github']}")
        seen_by_all = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        assert told["GITHUB_WEBHOOK_SECRET"].encode() not in seen_by_all
    os.close(reader)
    os.close(writer)
    assert not process.exists()
