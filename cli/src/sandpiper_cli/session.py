"""Where the API is and who is asking: from options, from the environment, or from the stack that runs here."""

from __future__ import annotations

import base64
import hmac
import json
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandpiper_cli import exits
from sandpiper_cli.addresses import is_web_url
from sandpiper_local.paths import StateDir, default_state_dir

if TYPE_CHECKING:
    from pathlib import Path

    from sandpiper_cli.client import Api

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
            return _client(local_info(self.state)["api_url"], self.token or mint(self.state))
        if self.token is None:
            raise exits.CliError("with --endpoint, give a token too: --token or SANDPIPER_TOKEN", exits.USAGE)
        return _client(self.endpoint, self.token)

    def open_api(self) -> Api:
        """For the routes that ask for no token."""
        return _client(self.endpoint or local_info(self.state)["api_url"], self.token)


def _client(endpoint: str, token: str | None) -> Api:
    from sandpiper_cli.client import Api  # noqa: PLC0415 - help and tokens need no HTTP

    if not is_web_url(endpoint):
        raise exits.CliError(f"{endpoint} is no http or https URL", exits.USAGE)
    return Api(endpoint, token and token.strip())


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
    try:
        secret = state.jwt_secret.read_text(encoding="utf-8")
    except FileNotFoundError:
        message = f"there is no secret to sign with in {state.root}: start the stack with `sandpiper up`"
        raise exits.CliError(message, exits.NOT_RUNNING) from None
    now = int(time.time())
    claims = {"sub": user, "org": org, "scope": scope, "iat": now, "exp": now + ttl_seconds}
    return _signed({name: value for name, value in claims.items() if value is not None}, secret)


def _signed(claims: dict[str, Any], secret: str) -> str:
    """An HS256 token. A library for all kinds of them takes as long to import as everything else here."""
    said = ".".join(_part(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    return f"{said}.{_part(hmac.digest(secret.encode(), said.encode(), 'sha256'))}"


def _part(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
