"""Where the API is and who is asking: from options, from the environment, or from the stack that runs here."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandpiper_cli import exits
from sandpiper_cli.client import Api
from sandpiper_local.paths import StateDir, default_state_dir

if TYPE_CHECKING:
    from pathlib import Path

LOCAL_USER = "local"
LOCAL_TOKEN_SECONDS = 12 * 60 * 60  # long enough for the longest run to be followed to its end


@dataclass(frozen=True)
class Connection:
    """What was said on the command line, after or before the subcommand."""

    endpoint: str | None = None
    token: str | None = None
    state_dir: Path | None = None

    def over(self, other: Connection) -> Connection:
        """These settings, completed by those."""
        return Connection(
            endpoint=self.endpoint or other.endpoint,
            token=self.token or other.token,
            state_dir=self.state_dir or other.state_dir,
        )

    @property
    def state(self) -> StateDir:
        return StateDir(self.state_dir.absolute() if self.state_dir else default_state_dir(os.environ))

    def api(self) -> Api:
        if self.endpoint is None:
            return Api(local_info(self.state)["api_url"], self.token or mint(self.state))
        if self.token is None:
            raise exits.CliError("with --endpoint, give a token too: --token or SANDPIPER_TOKEN", exits.USAGE)
        return Api(self.endpoint, self.token)

    def open_api(self) -> Api:
        """For the routes that ask for no token."""
        return Api(self.endpoint or local_info(self.state)["api_url"], self.token)


def local_info(state: StateDir) -> dict[str, Any]:
    try:
        info: dict[str, Any] = json.loads(state.info.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise exits.CliError(
            f"nothing is running in {state.root}: start it with `sandpiper up`, or give --endpoint", exits.NOT_RUNNING
        ) from None
    return info


def mint(
    state: StateDir,
    *,
    user: str = LOCAL_USER,
    org: str | None = None,
    scope: str | None = None,
    ttl_seconds: int = LOCAL_TOKEN_SECONDS,
) -> str:
    """A token that the stack of this state directory takes."""
    import jwt  # noqa: PLC0415 - slow to import, and most commands against an endpoint never mint

    try:
        secret = state.jwt_secret.read_text(encoding="utf-8")
    except FileNotFoundError:
        message = f"there is no secret to sign with in {state.root}: start the stack with `sandpiper up`"
        raise exits.CliError(message, exits.NOT_RUNNING) from None
    now = int(time.time())
    claims = {"sub": user, "org": org, "scope": scope, "iat": now, "exp": now + ttl_seconds}
    return jwt.encode({name: value for name, value in claims.items() if value is not None}, secret, algorithm="HS256")
