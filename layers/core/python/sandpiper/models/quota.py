"""How much one user, or all of an organization together, may start and spend."""

from datetime import datetime
from typing import Literal, NamedTuple

from pydantic import Field

from sandpiper.models.base import Model

ScopeKind = Literal["user", "org"]
QuotaName = Literal["starts_per_minute", "starts_per_day", "monthly_usd", "concurrency"]


class Scope(NamedTuple):
    """Whom a quota is about."""

    kind: ScopeKind
    name: str


class Quota(Model):
    """Limits; None is none."""

    starts_per_minute: int | None = None
    starts_per_day: int | None = None
    monthly_usd: float | None = None
    concurrency: int | None = None


class Account(Model):
    """What the store knows of a scope: the limits that an admin has set, the starts that count, the month's dollars."""

    scope: Scope
    limits: Quota = Field(default_factory=Quota)
    starts: tuple[datetime, ...] = ()  # newest first
    spent_usd: float = 0.0


class LimitUse(Model):
    """One limit, what of it is used, and when there is some of it again."""

    name: QuotaName
    limit: float | None
    used: float
    left: float | None
    opens_at: datetime | None = None
