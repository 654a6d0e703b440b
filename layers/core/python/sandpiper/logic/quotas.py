"""Quotas: how many runs a user, or an organization as a whole, may start and how many dollars they may spend.

A user has the deployment's defaults unless an admin has set something else; an organization has what an admin has set.
Starts are counted exactly: by the times of the last ones, not by calendar minutes or days. They are counted in the
write that creates the run, on what was read for it, so whoever comes at the same moment is decided on after that.
Dollars are of the calendar month in UTC. A run is started if some are left, and may use what is left when its sandbox
is started (`Budget.month_usd`): runs that work side by side can together use that much each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sandpiper.errors import PermissionDenied, QuotaExceeded
from sandpiper.models.quota import LimitUse, Quota, Scope
from sandpiper.ports import Admission

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandpiper.models.identity import Identity
    from sandpiper.models.quota import Account, QuotaName
    from sandpiper.models.run import Run
    from sandpiper.ports import Clock, QuotaBooks

ADMIN = "admin"
_WINDOWS: dict[QuotaName, timedelta] = {
    "starts_per_minute": timedelta(minutes=1),
    "starts_per_day": timedelta(days=1),
}
_WORDS: dict[QuotaName, str] = {
    "starts_per_minute": "{limit:g} runs may be started in a minute",
    "starts_per_day": "{limit:g} runs may be started in 24 hours",
    "monthly_usd": "${limit:,.2f} may be spent in a month",
}
_WHOSE = {"user": "Your quota", "org": "The quota of your organization"}


@dataclass(frozen=True)
class QuotaRules:
    books: QuotaBooks
    clock: Clock
    defaults: Quota  # of a user

    def admit(self, account: Account) -> Admission:
        """What counting one more start comes to. Raises QuotaExceeded."""
        limits, now = self.in_force(account.scope, account.limits), self.clock.now()
        full = [use for use in _of_a_start(account, limits, now) if use.left == 0]
        if full:
            raise _exceeded(account.scope, full, now)
        windows = [window for name, window in _WINDOWS.items() if getattr(limits, name) is not None]
        kept = [start for start in account.starts if windows and now - start < max(windows)]
        return Admission(starts=(now, *kept) if windows else None, spent_below=limits.monthly_usd)

    def in_force(self, scope: Scope, limits: Quota) -> Quota:
        """The limits of a scope for which an admin has set these."""
        return limits if scope.kind == "org" else self.defaults.model_copy(update=limits.model_dump(exclude_none=True))

    def concurrency(self, scope: Scope) -> int | None:
        return self.in_force(scope, self.books.limits_of(scope)).concurrency

    def account(self, scope: Scope) -> Account:
        return self.books.account(scope, month_of(self.clock.now()))

    def uses(self, account: Account, active: int) -> list[LimitUse]:
        """Every limit of a scope, with what is used of it."""
        limits = self.in_force(account.scope, account.limits)
        at_once = _use("concurrency", limits.concurrency, active)
        return [*_of_a_start(account, limits, self.clock.now()), at_once]

    def month_usd(self, run: Run) -> float | None:
        """What the months of its owner and organization leave to a run, as a total for all of it; None is no limit."""
        left = [dollars.left for _, dollars in self._dollars(run) if dollars.left is not None]
        return run.usage.cost_usd + min(left) if left else None

    def refuse_without_dollars(self, run: Run) -> None:
        """Raises QuotaExceeded if nothing is left of the month."""
        for scope, dollars in self._dollars(run):
            if dollars.left == 0:
                raise _exceeded(scope, [dollars], self.clock.now())

    def _dollars(self, run: Run) -> Iterator[tuple[Scope, LimitUse]]:
        for account in map(self.account, run.scopes):
            yield account.scope, _dollars(account, self.in_force(account.scope, account.limits), self.clock.now())


def require_admin(identity: Identity) -> None:
    if ADMIN not in identity.scopes:
        raise PermissionDenied(f"This needs a token with the scope {ADMIN}.")


def scopes_of(identity: Identity) -> tuple[Scope, ...]:
    return (Scope("user", identity.user), *([Scope("org", identity.org)] if identity.org else []))


def month_of(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m")


def _of_a_start(account: Account, limits: Quota, now: datetime) -> list[LimitUse]:
    starts = [_starts(account, name, getattr(limits, name), now) for name in _WINDOWS]
    return [*starts, _dollars(account, limits, now)]


def _starts(account: Account, name: QuotaName, limit: int | None, now: datetime) -> LimitUse:
    inside = [start for start in account.starts if now - start < _WINDOWS[name]]
    # There is room again when the last one that fills the window leaves it.
    opens_at = inside[limit - 1] + _WINDOWS[name] if limit is not None and len(inside) >= limit else None
    return _use(name, limit, len(inside), opens_at)


def _dollars(account: Account, limits: Quota, now: datetime) -> LimitUse:
    limit, spent = limits.monthly_usd, account.spent_usd
    return _use("monthly_usd", limit, spent, _next_month(now) if limit is not None and spent >= limit else None)


def _use(name: QuotaName, limit: float | None, used: float, opens_at: datetime | None = None) -> LimitUse:
    left = None if limit is None else max(limit - used, 0)
    return LimitUse(name=name, limit=limit, used=used, left=left, opens_at=opens_at)


def _next_month(now: datetime) -> datetime:
    first = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (first + timedelta(days=32)).replace(day=1)


def _exceeded(scope: Scope, full: list[LimitUse], now: datetime) -> QuotaExceeded:
    details = [_detail(scope, use) for use in full]
    opens_at = max(use.opens_at or now for use in full)
    seconds = max(1, math.ceil((opens_at - now).total_seconds()))
    message = f"{_WHOSE[scope.kind]} is used up: {details[0]['message']}."
    return QuotaExceeded(message, details=details, retry_after=seconds)


def _detail(scope: Scope, use: LimitUse) -> dict[str, Any]:
    opens_at = use.opens_at.astimezone(UTC).isoformat().replace("+00:00", "Z") if use.opens_at else None
    return {
        "field": use.name,
        "message": _WORDS[use.name].format(limit=use.limit),
        "scope": scope.kind,
        "limit": use.limit,
        "used": use.used,
        "opens_at": opens_at,
    }
