"""The one place where pydantic's behaviour is chosen for all our models."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """Immutable, and refuses fields that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
