"""The fake GitHub as a part of the stack: started first, because everything else is told where it is."""

from __future__ import annotations

import secrets
import sys
from typing import TYPE_CHECKING

from sandpiper_local.aws import HOST, SYSTEM_PATH, answers, free_port
from sandpiper_local.fake_github.client import GitHubAdmin
from sandpiper_local.fake_github.keys import app_keys
from sandpiper_local.fake_github.sample import seed

if TYPE_CHECKING:
    from sandpiper_local.parts import Parts
    from sandpiper_local.paths import StateDir

APP_ID = 1
PART = "github"
_READY_SECONDS = 30


def start_github(parts: Parts, state: StateDir, *, api_url: str) -> dict[str, str]:
    """What an operator would set for an App that is made for this stack."""
    port = free_port()
    url = f"http://{HOST}:{port}"
    command = [sys.executable, "-m", "sandpiper_local.fake_github", "--port", str(port), "--state", str(state.github)]
    parts.start(PART, command, {"PATH": SYSTEM_PATH, "LANG": "C.UTF-8"})
    parts.wait_until(lambda: answers(url), part=PART, seconds=_READY_SECONDS)
    private_key, public_key = app_keys()
    secret = secrets.token_urlsafe(32)
    github = GitHubAdmin(url)
    try:
        github.set_app(id=APP_ID, public_key=public_key, webhook_secret=secret)
        seed(github)
        github.set_app(webhook_url=f"{api_url}/github/webhook")
    finally:
        github.close()
    return {
        "GITHUB_URL": url,
        "GITHUB_API_URL": github.api_url,
        "GITHUB_APP_ID": str(APP_ID),
        "GITHUB_APP_PRIVATE_KEY": private_key,
        "GITHUB_WEBHOOK_SECRET": secret,
    }
