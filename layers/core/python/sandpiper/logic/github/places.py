"""What a repository is known by: its number, which a rename does not change, or its name where there is no number."""

from __future__ import annotations

from typing import Protocol


class Place(Protocol):
    """A repository that the App is installed on, as it was called when a run was asked for."""

    @property
    def installation_id(self) -> int: ...

    @property
    def repository(self) -> str: ...

    @property
    def repository_id(self) -> int | None: ...


def place_name(place: Place) -> str:
    """Names are the same in capitals, and never a number: they have a slash."""
    return str(place.repository_id or place.repository.lower())
