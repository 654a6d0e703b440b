"""`NamedTuple` for what runs behind the wall: reading `typing` would be a tenth of the time that it takes to go up."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as Record
else:

    class Record:
        def __init__(self, *values, **named):
            self.__dict__.update(zip(type(self).__annotations__, values), **named)  # noqa: B905 - not in Python 3.9

        def __iter__(self):
            return (self.__dict__[name] for name in type(self).__annotations__)


__all__ = ["Record"]
