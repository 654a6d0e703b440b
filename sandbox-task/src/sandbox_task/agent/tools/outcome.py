"""What a tool takes and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True)
class Outcome:
    """What the model is told, and what the event says beside it."""

    content: str
    data: dict[str, Any] = field(default_factory=dict)


class ToolError(Exception):
    """The tool could not do it; the message is for the model."""
