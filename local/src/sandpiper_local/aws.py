"""The embedded AWS: how it is started, and clients that talk to it as the account's root."""

from __future__ import annotations

import functools
import secrets
import socket
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandpiper_local import paths
from sandpiper_local.ecs_agent import bell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from botocore.session import Session

REGION = "us-east-1"
HOST = "127.0.0.1"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_building = threading.Lock()  # calling a client is thread-safe, making one on a shared session is not


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True)
class EmbeddedAws:
    """One ministack. The root key is new with every start: what runs on this machine can't guess its way in."""

    port: int = field(default_factory=free_port)
    access_key_id: str = "AKIASANDPIPERLOCAL00"
    secret_access_key: str = field(default_factory=lambda: secrets.token_urlsafe(30), repr=False)
    region: str = REGION

    @property
    def endpoint(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def execute_api(self) -> str:
        return f"{self.endpoint}/_aws/execute-api"

    @property
    def credentials(self) -> dict[str, str]:
        return {"access_key_id": self.access_key_id, "secret_access_key": self.secret_access_key}

    def client(self, service: str) -> Any:
        return client(service, self.endpoint, self.region, self.credentials)

    def client_environment(self) -> dict[str, str]:
        """What an SDK needs to be root here."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
        }

    def command(self) -> list[str | Path]:
        return [paths.MINISTACK_PYTHON, Path(__file__).with_name("ministack_launcher.py")]

    def environment(self, scratch: Path) -> dict[str, str]:
        """All of ministack's environment. Lambda workers inherit it, so nothing of the operator's is in it."""
        return {
            "PATH": SYSTEM_PATH,
            "HOME": str(scratch),
            "TMPDIR": str(scratch),
            "LANG": "C.UTF-8",
            "AUTH": "true",
            "BIND_HOST": HOST,
            "GATEWAY_PORT": str(self.port),
            "MINISTACK_HOST": HOST,
            "MINISTACK_REGION": self.region,
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
            "SANDPIPER_LAYERS": str(paths.LAYERS),
            "SANDPIPER_ECS_BELL": str(scratch / bell.NAME),
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
            "LOG_LEVEL": "WARNING",
        }

    def is_ready(self) -> bool:
        return answers(f"{self.endpoint}/_ministack/ready")


def client(service: str, endpoint: str, region: str, credentials: Mapping[str, str]) -> Any:
    from botocore.config import Config  # noqa: PLC0415 - most that import this module need no SDK

    with _building:
        session: Any = _session()  # the stubs want the service as a literal
        return session.create_client(
            service,
            endpoint_url=endpoint,
            region_name=region,
            aws_access_key_id=credentials["access_key_id"],
            aws_secret_access_key=credentials["secret_access_key"],
            aws_session_token=credentials.get("session_token"),
            config=Config(s3={"addressing_style": "path"}),
        )


@functools.cache
def _session() -> Session:
    """One for all: a new one reads all of botocore's data again, and every task would wait for it."""
    from botocore.session import Session  # noqa: PLC0415

    return Session()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:  # noqa: S310 - our own loopback URL
            return bool(response.status == 200)
    except OSError:
        return False
