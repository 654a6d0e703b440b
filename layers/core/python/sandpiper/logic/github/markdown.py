"""Text of models and of people, made harmless in a comment that we sign.

It can ping nobody, link to no other issue, load no image, end no block of ours, and show nothing that is not there.
"""

from __future__ import annotations

import re

_BREAK = "\u200b"  # no width; stands between a sign and the word that would make it mean something
_INVISIBLE = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_TELLING = re.compile(r"@(?=[\w-])|#(?=\d)|!(?=\[)|(?<=\bGH)-(?=\d)", re.IGNORECASE)
_URL_OF_ISSUE = re.compile(r"(?<=://)(?=[^\s/]+/[^\s/]+/[^\s/]+/(?:issues|pull|commit|discussions)/)")


def visible(text: str) -> str:
    """Without what is read otherwise than it is seen: bidirectional overrides, zero-width and control characters."""
    return _CONTROL.sub("", _INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def prose(text: str, limit: int) -> str:
    """Markdown of somebody else's, to stand as paragraphs of ours."""
    short = cut(visible(text).strip(), limit)
    escaped = short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _untelling(escaped)


def plain(text: str) -> str:
    """The same where nothing is markdown: the message of a commit pings people and closes issues all the same."""
    return _untelling(visible(text))


def line(text: str, limit: int) -> str:
    """The same on one line, in a list or a cell of a table."""
    return prose(" ".join(visible(text).split()), limit).replace("|", "\\|").replace("`", "'")


def block(text: str, limit: int, *, language: str = "") -> str:
    """A block of code that its content can't end. Nothing in it is a mention."""
    body = cut(visible(text).rstrip(), limit)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", body)), default=0))
    return f"{fence}{language}\n{body}\n{fence}"


def details(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _untelling(text: str) -> str:
    return _URL_OF_ISSUE.sub(_BREAK, _TELLING.sub(lambda found: found[0] + _BREAK, text))
