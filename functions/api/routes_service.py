"""What is about the service itself: its health, its description, and tickets for its socket."""

from api.health import is_healthy
from api.requests import Caller, CurrentWorld
from api.resolver import new_router
from sandpiper.logic import tickets
from sandpiper.models.responses import HealthAnswer, TicketAnswer

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
