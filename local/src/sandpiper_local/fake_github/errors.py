"""What the fake refuses, in GitHub's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DOCS = "https://docs.github.com/rest"


class Refusal(Exception):
    def __init__(
        self,
        status: int,
        message: str,
        *,
        errors: Sequence[Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})
        self.body: dict[str, Any] = {"message": message, "documentation_url": DOCS, "status": str(status)}
        if errors:
            self.body["errors"] = list(errors)


def not_found() -> Refusal:
    return Refusal(404, "Not Found")


def invalid(resource: str, field: str, *, code: str = "invalid", message: str | None = None) -> Refusal:
    error = {"resource": resource, "field": field, "code": code}
    return Refusal(422, "Validation Failed", errors=[error | ({"message": message} if message else {})])
