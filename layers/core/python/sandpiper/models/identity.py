"""Who is asking."""

from __future__ import annotations

from sandpiper.models.base import Model


class Identity(Model):
    user: str
    org: str | None = None
    scopes: frozenset[str] = frozenset()
