"""What is about no single run: the health of the service, tickets for its socket, and what you have used."""

from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Query

from api.health import is_healthy
from api.requests import Caller, CurrentWorld
from api.resolver import new_router
from api.views import quota_view
from sandpiper.logic import tickets
from sandpiper.logic.quotas import month_of, scopes_of
from sandpiper.models.responses import HealthAnswer, TicketAnswer, UsageAnswer

MONTH = r"^[0-9]{4}-(0[1-9]|1[0-2])$"

router = new_router()


@router.get("/health", summary="Whether all is well", operation_id="health", tags=["service"])
def health(world: CurrentWorld) -> HealthAnswer:
    checks = world.health.checks()
    return HealthAnswer(
        status="healthy" if is_healthy(checks) else "degraded",
        timestamp=world.clock.now(),
        version=world.version,
        checks=checks,
    )


@router.post("/tickets", summary="A single-use ticket for the socket", operation_id="createTicket", tags=["service"])
def create_ticket(world: CurrentWorld, caller: Caller) -> TicketAnswer:
    ticket = tickets.issue(caller, world.connections, world.clock)
    return TicketAnswer(ticket=ticket.ticket, expires_at=ticket.expires_at, websocket_url=world.websocket_url)


@router.get(
    "/usage",
    summary="What you have used in a month, and what is left of your quotas",
    operation_id="getUsage",
    tags=["service"],
)
def get_usage(
    world: CurrentWorld,
    caller: Caller,
    month: Annotated[str | None, Query(pattern=MONTH, description="YYYY-MM in UTC; this month by default")] = None,
) -> UsageAnswer:
    used = world.runs.usage_of(caller.user, month or month_of(world.clock.now()))
    quotas = [quota_view(world, scope) for scope in scopes_of(caller)]
    return UsageAnswer(**used.model_dump(), quotas=quotas)
