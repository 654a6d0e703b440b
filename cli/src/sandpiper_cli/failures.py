"""What can go wrong on the way to the API, in words and with its exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sandpiper_cli import exits
from sandpiper_cli.addresses import is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping


class ApiError(exits.CliError):
    """The API said no, in its own words."""

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        super().__init__(str(error.get("message") or f"the API answered {status}"), exits.API_ERROR)
        self.status = status
        self.type = str(error.get("type", "internal_error"))
        self.retryable = bool(error.get("retryable", status >= 500))
        self.request_id = error.get("request_id")
        self.details: list[Mapping[str, str]] = list(error.get("details") or [])

    @property
    def lines(self) -> list[str]:
        lines = [f"{self} ({self.type})"]
        lines += [f"  {detail.get('field')}: {detail.get('message')}" for detail in self.details]
        return [*lines, f"  request {self.request_id}"] if self.request_id else lines


class Unreachable(exits.CliError):
    """Nobody answers at the URL."""

    def __init__(self, url: str, reason: object) -> None:
        parts = urlsplit(url)
        exit_code = exits.NOT_RUNNING if is_loopback(url) else exits.API_ERROR
        super().__init__(f"nobody answers at {parts.scheme}://{parts.netloc} ({reason})", exit_code)
