"""The one place where pydantic's behaviour is chosen for all our models."""

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """Immutable, and refuses fields that it does not know.

    Its validator is built when it is first used: a function that imports all models uses a few of them. For the
    same reason models are written without `from __future__ import annotations`, which pydantic would have to undo.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)


def build_all(parent: type[Model] = Model) -> None:
    """For programs with threads, before they start any: two that use a model for the first time get into each other's
    way, says pydantic."""
    for model in parent.__subclasses__():
        model.model_rebuild()
        build_all(model)
