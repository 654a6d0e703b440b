"""Text from elsewhere, made fit for a terminal."""

from __future__ import annotations

import re

# C0 but tab and newline, DEL, C1, and the marks that turn the direction of text around
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_PICTURES = 0x2400  # ␀, ␁, … ␛: a picture for each C0 character


def neutralise(text: str) -> str:
    """Nothing in the result makes a terminal do anything but show characters and start new lines."""
    return _CONTROL.sub(_picture, text.replace("\r\n", "\n"))


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(_PICTURES + code)
    return "␡" if code == 0x7F else f"<U+{code:04X}>"


def one_line(text: str, limit: int) -> str:
    flat = " ".join(neutralise(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def seconds(value: float) -> str:
    if value < 60:
        return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
    minutes, rest = divmod(int(value), 60)
    return f"{minutes} min {rest:02d} s"


def byte_size(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KB", "MB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GB"


def limit_words(name: str, limit: float) -> str:
    """One limit of a run, as people say it."""
    if name == "max_cost_usd":
        return f"${limit:.2f}"
    if name == "timeout_seconds":
        return f"{seconds(limit)} of work"
    return f"{limit:,.0f} {name.removeprefix('max_').replace('_', ' ')}"


def about(seconds: object) -> str:
    """How long a wait may be, in words to follow others; nothing if nobody knows."""
    if not isinstance(seconds, int):
        return ""
    return f", about {max(1, round(seconds / 60))} min" if seconds >= 60 else f", about {seconds} s"
