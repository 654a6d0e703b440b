"""What a repository is known by: its number, which a rename does not change, or its name where there is no number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sandpiper.models.run import Run


class Place(Protocol):
    """A repository that the App is installed on, as it was called when a run was asked for."""

    @property
    def installation_id(self) -> int: ...

    @property
    def repository(self) -> str: ...

    @property
    def repository_id(self) -> int | None: ...


def numbers_of(run: Run) -> list[int]:
    """Where on GitHub people speak of it: the issue or pull request it was asked for on, and the one it has opened."""
    asked = [run.spec.github.number] if run.spec.github else []
    opened = run.result.pull_request if run.result and asked else None
    return asked + ([opened.number] if opened else [])


def place_name(place: Place) -> str:
    """Names are the same in capitals, and never a number: they have a slash."""
    return str(place.repository_id or place.repository.lower())
