"""Events in words for the log, and text from elsewhere made harmless for whoever reads it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

# C0 but tab and line feed, DEL, C1, other ends of lines, and the marks that turn the direction of text around
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_PLAIN = bytes(range(0x20, 0x7F)) + b"\t\n"
_PICTURES = 0x2400  # ␀, ␁, … ␛: a picture for each C0 character
_LONG = 200


def harmless(text: str) -> str:
    """Nothing but characters and line feeds. What a carriage return would write over is a line of its own."""
    if text.isascii() and not text.encode().translate(None, _PLAIN):
        return text  # most of what is printed, and found out in a fraction of the time
    return _CONTROL.sub(_picture, text.replace("\r\n", "\n").replace("\r", "␍\n"))


def in_words(data: Mapping[str, Any]) -> str:
    """Short values on the line, long text below it, indented."""
    short = {key: value for key, value in data.items() if not _is_long(value)}
    line = "".join(f" {key}={_plain(value)}" for key, value in short.items())
    long = "".join(f"\n  {_flat(key)}:\n{_indented(value)}" for key, value in data.items() if _is_long(value))
    return _flat(line) + long


def _is_long(value: object) -> bool:
    return isinstance(value, str) and ("\n" in value or len(value) > _LONG)


def _indented(text: str) -> str:
    return "\n".join(f"    {_flat(line)}" for line in text.split("\n"))


def _flat(text: str) -> str:
    return _CONTROL.sub(_picture, text).replace("\n", "␊")


def _plain(value: object) -> str:
    return value if isinstance(value, str) and " " not in value else json.dumps(value, ensure_ascii=False, default=str)


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(_PICTURES + code)
    return "␡" if code == 0x7F else f"<U+{code:04X}>"
