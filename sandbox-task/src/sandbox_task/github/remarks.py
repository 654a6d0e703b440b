"""One finding as a remark on GitHub: its words, the change that it suggests, and how it is known again."""

from __future__ import annotations

import difflib
import hashlib
import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandpiper import limits
from sandpiper.logic.github.markdown import block, prose, visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandpiper.adapters.github.reviews import Thread
    from sandpiper.models.run import Finding, Severity

SHOWN: dict[Severity, str] = {
    "critical": "🔴 **Critical**",
    "major": "🟠 **Major**",
    "minor": "🟡 **Minor**",
    "info": "🔵 **Info**",
}
_MARKER = re.compile(r"<!-- sandpiper:remark ([0-9a-f]{16}) -->")
_FENCED = re.compile(r"```[\w+-]*\n(.*?)\n?```", re.DOTALL)
_WORD = re.compile(r"\w{3,}")
_ALIKE = 0.6  # share of a remark's words that an earlier one has, too
_SAME_CODE = 0.5  # how much a replacement has in common with its line, else it is prose


@dataclass(frozen=True)
class Remark:
    """`code` is the line that the finding is about, as far as the diff shows it."""

    finding: Finding
    code: str | None = None

    @property
    def fingerprint(self) -> str:
        words = " ".join(_words(self.finding.message))
        told = "\0".join((self.finding.file, (self.code or "").strip(), words))
        return hashlib.sha256(told.encode(errors="surrogateescape")).hexdigest()[:16]

    @property
    def body(self) -> str:
        """At its line."""
        marker = f"<!-- sandpiper:remark {self.fingerprint} -->"
        return "\n\n".join(filter(None, (self.words, _suggested(self.finding.suggestion, self.code), marker)))

    @property
    def words(self) -> str:
        message = prose(self.finding.message, limits.STATUS_PROSE_CHARS)
        return f"{SHOWN[self.finding.severity]}: {message}"

    @property
    def listed(self) -> str:
        """In the text of a review, where it has no line to stand at."""
        place = f"{self.finding.file}:{self.finding.line}" if self.finding.line else self.finding.file
        flat = " ".join(visible(place).split()).replace("`", "'")  # code ends where a paragraph does
        shown = f"`{flat}` {self.words}"
        more = _suggested(self.finding.suggestion, None)
        return "- " + textwrap.indent("\n\n".join(filter(None, (shown, more))), "  ").lstrip()


def fingerprint_of(body: str) -> str | None:
    found = _MARKER.search(body)
    return found[1] if found else None


def is_ours(thread: Thread) -> bool:
    """The mark alone is no proof: anybody can write one."""
    return thread.is_ours and fingerprint_of(thread.body) is not None


def repeats(remark: Remark, open_threads: Iterable[Thread]) -> bool:
    """Whether the same was said before, there, in the same words or in others."""
    for thread in open_threads:
        if thread.path != remark.finding.file:
            continue
        if fingerprint_of(thread.body) == remark.fingerprint:
            return True
        if thread.line == remark.finding.line and _is_alike(remark.finding.message, thread.body):
            return True
    return False


def _is_alike(message: str, body: str) -> bool:
    said, before = set(_words(message)), set(_words(body))
    return bool(said) and len(said & before) / len(said) >= _ALIKE


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _suggested(suggestion: str | None, code: str | None) -> str:
    if not suggestion or not suggestion.strip():
        return ""
    if code is not None and (replacement := replacing(code, suggestion)) is not None:
        return block(replacement, limits.STATUS_PROSE_CHARS, language="suggestion")
    if fenced := _FENCED.fullmatch(suggestion.strip()):
        return f"Suggestion:\n{block(fenced[1], limits.STATUS_PROSE_CHARS)}"
    return f"Suggestion: {prose(suggestion, limits.STATUS_PROSE_CHARS)}"


def replacing(line: str, suggestion: str) -> str | None:
    """The code that can stand in the place of this one line, indented as it is; None: it is no such code."""
    text = suggestion.strip("\n")
    if fenced := _FENCED.fullmatch(text.strip()):
        text = fenced[1]
    elif (inline := text.strip()).startswith("`") and inline.endswith("`") and "`" not in inline[1:-1]:
        text = inline[1:-1]
    if "```" in text or visible(text) != text or len(text) > limits.STATUS_PROSE_CHARS:
        return None
    plain = textwrap.dedent(text)
    if plain.strip() == line.strip() or not _shares_code(line, plain):
        return None
    return textwrap.indent(plain, line[: len(line) - len(line.lstrip())])


def _shares_code(line: str, text: str) -> bool:
    """Prose about a line shares words with it, but seldom half of its characters in order."""
    alike = (difflib.SequenceMatcher(None, line.strip(), part.strip()).ratio() for part in text.splitlines())
    return bool(line.strip()) and max(alike, default=0.0) >= _SAME_CODE
