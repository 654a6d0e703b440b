"""Sandboxes that die at a chosen moment, as a killed process does: what they would do afterwards has no effect."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sandbox_task.isolation.launch import open_rooms
from sandbox_task.model.port import Hear, Reply, Request, TurnUsage, nobody
from sandbox_task.stopping import Stop
from sandbox_task.supervisor import Services, Supervisor
from sandpiper.errors import Fenced
from tests.unit.sandbox.world import RUN_ID, Call, ScriptedModel, World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Killed(BaseException):
    """No code of ours may catch it."""


@dataclass
class Life:
    """`ends_at` is the number of the event with which it ends; None: it lives on."""

    ends_at: int | None = None
    events: list[str] = field(default_factory=list)
    is_over: bool = False

    def emit(self, emit: Callable[..., None]) -> Callable[..., None]:
        def emit_or_die(type_: str, **data: Any) -> None:
            self.check()
            self.events.append(type_)
            if len(self.events) == self.ends_at:
                self.is_over = True
            self.check()
            emit(type_, **data)

        return emit_or_die

    def check(self) -> None:
        if self.is_over:
            raise Killed


class Mortal:
    """A service as a sandbox sees it: after its death, threads that are left get nothing done."""

    def __init__(self, service: Any, life: Life) -> None:
        self._service, self._life = service, life

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._service, name)
        if not callable(member):
            return member

        def call(*args: Any, **kwargs: Any) -> Any:
            if self._life.is_over and name == "put":
                return None  # a log that could not be stored would be tried again, and nobody is left to do that
            if self._life.is_over:
                raise Fenced("This sandbox is dead.")
            return member(*args, **kwargs)

        return call


class ModelByPlace(ScriptedModel):
    """Says what its script has for this place of the conversation, whoever asks."""

    def __init__(self, turns: Sequence[list[Call]], life: Life, asked: list[Request]) -> None:
        super().__init__(())
        self._script, self._life, self._asked = turns, life, asked

    def complete(self, request: Request, hear: Hear = nobody) -> Reply:
        self._life.check()
        self._asked.append(request)
        place = sum(message.role == "assistant" for message in request.messages)
        self._turns = iter([self._script[place]])
        self.requests = [request] * place  # its calls are named by their place
        return super().complete(request, hear).model_copy(update={"usage": TurnUsage(input_tokens=100, cost_usd=0.01)})


@dataclass
class MortalWorld(World):
    asked: list[Request] = field(default_factory=list)

    def live(self, turns: Sequence[list[Call]], *, ends_at: int | None = None) -> Life:
        """One attempt. The run must have been stored, or its last attempt must have been replaced."""
        life = Life(ends_at)
        rooms = open_rooms(self.root / f"sandbox-{self.attempt}", 10002)
        services = [Mortal(each, life) for each in (self.runs, self.blobs, self.secrets, self.workflow, self.clock)]
        supervisor = Supervisor(
            self._settings(),
            Services(*services),
            rooms,
            self.stop,
            make_models=lambda _name: (ModelByPlace(turns, life, self.asked),),
        )
        supervisor._reporter.emit = life.emit(supervisor._reporter.emit)  # type: ignore[method-assign]
        try:
            self.exit_code = supervisor.run()
        except Killed:
            self.exit_code = -9
        finally:
            life.is_over = True
        return life

    def replace(self) -> None:
        """What the workflow does when a sandbox is lost."""
        self.workflow.expire(self.task_token)
        self.attempt, self.stop = self.attempt + 1, Stop()
        changes = {"status": "provisioning", "attempt": self.attempt}
        self.runs.change(RUN_ID, allowed=("provisioning", "running"), changes=changes)
        self.workflow.wait_on(self.task_token)
