"""File names as people and models may read them: git allows any byte but NUL, and nobody's terminal does."""

from __future__ import annotations


def printable(path: str) -> str:
    """One line of valid text, whatever the path holds. Ordinary names stay as they are."""
    text = path.encode(errors="surrogateescape").decode(errors="replace")
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
