"""Foreign text inside of a prompt: it can say anything, but it can't end the block that marks it as data."""

from __future__ import annotations

import re

from sandpiper import limits

_INVISIBLE = "[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]{0,4}"
_OPENING = "[<\u2039\ufe64\uff1c]"


def _word(word: str) -> str:
    return _INVISIBLE.join(word)


# `<repository` in any form, and the end of a file in ours; what stands between bracket and word may be anything short
_TAG = re.compile(
    rf"{_OPENING}(?=[\W_]{{0,16}}{_word('repository')}|[\W_]{{0,16}}/[\W_]{{0,16}}{_word('file')})",
    re.IGNORECASE,
)


def as_data(text: str) -> str:
    return _TAG.sub("&lt;", text)


def estimate_tokens(text: str) -> int:
    return -(-len(text) // limits.CHARS_PER_TOKEN)


def file_block(path: str, body: str, *, part: str = "") -> str:
    """`path` is printable; `part` is ours."""
    name = as_data(path).replace('"', "&quot;")
    return f'<file path="{name}"{f" {part}" if part else ""}>\n{as_data(body)}\n</file>'
