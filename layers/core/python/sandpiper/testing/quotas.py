"""Limits, starts and the month's figures in memory."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING

from sandpiper.adapters import keys, usage
from sandpiper.models.quota import Account, Quota

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from sandpiper.models.quota import Scope
    from sandpiper.models.run import MonthlyUsage, Run
    from sandpiper.ports import Admission


class FakeQuotas:
    def __init__(self) -> None:
        self._limits: dict[Scope, Quota] = {}
        self._starts: dict[Scope, tuple[datetime, ...]] = {}
        self._figures: defaultdict[tuple[Scope, str], dict[str, Decimal]] = defaultdict(dict)

    def account(self, scope: Scope, month: str) -> Account:
        return Account(
            scope=scope,
            limits=self.limits_of(scope),
            starts=self._starts.get(scope, ()),
            spent_usd=self.usage_of(scope, month).cost_usd,
        )

    def limits_of(self, scope: Scope) -> Quota:
        return self._limits.get(scope, Quota())

    def set_limits(self, scope: Scope, limits: Quota) -> None:
        self._limits[scope] = limits

    def usage_of(self, scope: Scope, month: str) -> MonthlyUsage:
        return usage.from_row(month, self._figures[scope, month])

    def start(self, run: Run, admit: Callable[[Account], Admission] | None) -> None:
        """What creating a run does, for all of its scopes or for none."""
        month = keys.month_of(run.created_at)
        admitted = {scope: admit(self.account(scope, month)) for scope in run.scopes} if admit else {}
        self._starts |= {scope: admission.starts for scope, admission in admitted.items() if admission.starts}
        for scope in run.scopes:
            self.book(scope, run.created_at, usage.STARTED)

    def book(self, scope: Scope, moment: datetime, figures: Mapping[str, Decimal]) -> None:
        month = self._figures[scope, keys.month_of(moment)]
        for name, figure in figures.items():
            month[name] = month.get(name, Decimal(0)) + figure
