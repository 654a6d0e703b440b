"""Single-use tickets that open a socket: a browser can't send an Authorization header there."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sandpiper import limits

if TYPE_CHECKING:
    from sandpiper.models.identity import Identity
    from sandpiper.ports import Clock, Connections


@dataclass(frozen=True)
class Ticket:
    ticket: str
    expires_at: datetime


def issue(identity: Identity, connections: Connections, clock: Clock) -> Ticket:
    """Raises QuotaExceeded."""
    now = clock.now().replace(microsecond=0)
    ticket = Ticket(secrets.token_urlsafe(32), now + timedelta(seconds=limits.TICKET_SECONDS))
    holder, seconds = {"user": identity.user, "org": identity.org}, int(now.timestamp())
    connections.issue_ticket(ticket.ticket, holder, expires_at=seconds + limits.TICKET_SECONDS, now=seconds)
    return ticket
