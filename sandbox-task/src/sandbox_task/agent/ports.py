"""What the agent needs of the world besides a model and a wall."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from sandpiper.models.events import EventType


class Output(Protocol):
    @property
    def shown(self) -> object:
        """What the model is told: str() of it."""

    def feed(self, data: bytes) -> None: ...


class Sink(Protocol):
    """Where everything that happens is told."""

    def emit(self, type_: EventType, **data: Any) -> None: ...

    def output(self, **data: Any) -> AbstractContextManager[Output]: ...
