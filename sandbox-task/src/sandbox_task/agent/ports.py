"""What the agent needs of the world besides a model and a wall."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from sandbox_task.agent.journal import Journal
    from sandbox_task.model.port import Hear
    from sandbox_task.output import HeadAndTail
    from sandpiper.models.events import EventType


class Output(Protocol):
    @property
    def shown(self) -> HeadAndTail:
        """What the model is told."""

    def feed(self, data: bytes) -> None: ...

    def copy_to(self, take: Callable[[str], None]) -> None:
        """Hand on all of it from now on, redacted."""


class Teller(Protocol):
    def emit(self, type_: EventType, **data: Any) -> None: ...


class Sink(Teller, Protocol):
    """Where everything that happens is told."""

    def output(self, **data: Any) -> AbstractContextManager[Output]: ...

    def words(self) -> AbstractContextManager[Hear]:
        """For one reply of the model, as long as it is being said."""


class Keeping(Protocol):
    """Keeps where the work stands, step by step, so that another sandbox can go on."""

    def asking(self, journal: Journal) -> None:
        """The model is about to be asked."""

    def replied(self, journal: Journal, seconds: float) -> None:
        """It took so long to answer; what it asks for is about to be done."""

    def stepped(self, *, touched: bool) -> None:
        """That is done. `touched`: files may have changed by it."""
