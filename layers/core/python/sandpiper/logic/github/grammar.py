"""What a comment asks for: a line that starts with a command, outside quotes, code and what nobody sees.

Read as GitHub renders it: block quotes go on until a blank line, fences until they are closed, HTML comments are not
there at all. Invisible characters are taken out first, so that the model gets what the people in the thread saw.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from sandpiper import limits
from sandpiper.logic.github.markdown import cut, visible
from sandpiper.logic.ids import RUN_ID

if TYPE_CHECKING:
    from collections.abc import Iterator

Verb = Literal["implement", "review", "test", "fix", "cancel", "status", "approve", "reject", "say"]

# A long s is no s here. A space that does not break, or is a wide one, is no indentation either.
_COMMAND = re.compile(rf"[^\S\t]{{0,3}}/((?ai:{'|'.join(get_args(Verb))}))(?=\s|$|[.:,;!](?:\s|$))[.:,;!]?[^\S\n]*(.*)")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_QUOTE = re.compile(r" {0,3}>")
_APART = re.compile(r"<(/?)(?:pre|code|blockquote|script|style|textarea)\b", re.IGNORECASE)
_TICKS = re.compile("`+")
_SIGN = re.compile("`+|<!--|-->")


@dataclass(frozen=True)
class Order:
    """A command and all else that the comment says."""

    verb: Verb
    text: str


@dataclass(frozen=True)
class Reply:
    """What a comment says besides what it quotes. `run_id`: that the quote names, if it does."""

    run_id: str
    quoted: str
    text: str


@dataclass(frozen=True)
class _Line:
    text: str
    is_plain: bool  # neither quoted nor code
    is_quote: bool = False  # marked as one, not only carried on


def order_of(comment: str) -> Order | None:
    lines = list(_lines(_without_html_comments(visible(comment))))
    for number, line in enumerate(lines):
        if line.is_plain and (found := _COMMAND.fullmatch(line.text)):
            texts = [each.text for each in lines]
            rest = "\n".join([*texts[:number], found[2], *texts[number + 1 :]]).strip()
            verb: Verb = found[1].lower()  # type: ignore[assignment]  # the pattern knows no other
            return Order(verb, _bounded(rest))
    return None


def reply_of(comment: str) -> Reply | None:
    """A comment that quotes, as GitHub's "Quote reply" makes it, of a whole comment or of what was marked in it."""
    lines = list(_lines(_without_html_comments(visible(comment))))
    quoted = "\n".join(line.text.lstrip("> ") for line in lines if line.is_quote).strip()
    said = "\n".join(line.text for line in lines if not line.is_quote).strip()
    named = RUN_ID.search(quoted)
    return Reply(named[0] if named else "", cut(quoted, limits.GITHUB_ENTRY_CHARS), _bounded(said)) if quoted else None


def is_quote_of(quoted: str, comment: str) -> bool:
    """By the words: what GitHub quotes has lost the markdown that it was written in."""
    words = _words(quoted)
    return len(words) >= limits.GITHUB_QUOTE_CHARS and words in _words(_without_html_comments(visible(comment)))


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", html.unescape(text).casefold()))


def as_seen(text: str) -> str:
    """What people see of it: no HTML comments, no invisible characters."""
    lines = _lines(_without_html_comments(visible(text)))
    return "\n".join(line.text for line in lines).strip()


def _lines(text: str) -> Iterator[_Line]:
    fence, depth, in_quote = "", 0, False
    for line in text.split("\n"):
        opening = _FENCE.match(line)
        if fence:
            yield _Line(line, is_plain=False)
            fence = "" if _closes(line, fence) else fence
            continue
        in_quote = bool(line.strip()) and (in_quote or bool(_QUOTE.match(line)))
        if opening and not in_quote:
            fence = opening[1]
        was_apart, depth = depth > 0, _depth(line, depth)
        plain = not (fence or in_quote or was_apart or depth or line.startswith(("    ", "\t")))
        yield _Line(line, is_plain=plain, is_quote=in_quote and bool(_QUOTE.match(line)))


def _closes(line: str, fence: str) -> bool:
    closing = _FENCE.match(line)
    return closing is not None and closing[1].startswith(fence) and not line[closing.end() :].strip()


def _depth(line: str, depth: int) -> int:
    """How many tags that set text apart are open behind this line."""
    for closes in _APART.findall(_without_code(line)):
        depth = max(0, depth - 1) if closes else depth + 1
    return depth


def _without_code(line: str) -> str:
    kept, here = "", 0
    for start, end in _code_ends(line).items():
        if start >= here:
            kept, here = kept + line[here:start], end
    return kept + line[here:]


def _code_ends(line: str) -> dict[int, int]:
    """Where backticks may begin code, and where the code ends then: at as many of them."""
    ends, last = dict[int, int](), dict[int, int]()
    for start, end in reversed([ticks.span() for ticks in _TICKS.finditer(line)]):
        if closing := last.get(end - start):
            ends[start] = closing
        last[end - start] = end
    return dict(reversed(ends.items()))


def _without_html_comments(text: str) -> str:
    """Inside a fence they are shown, so they stay; one that is never closed hides the rest."""
    kept, fence, hidden = [], "", False
    for line in text.split("\n"):
        if fence:
            fence = "" if _closes(line, fence) else fence
            kept.append(line)
            continue
        shown, hidden = _shown(line, hidden=hidden)
        if opening := _FENCE.match(shown):
            fence = opening[1]
        kept.append(shown)
    return "\n".join(kept)


def _shown(line: str, *, hidden: bool) -> tuple[str, bool]:
    shown, here, ends = "", 0, _code_ends(line)
    for sign in _SIGN.finditer(line):
        if sign.start() < here:
            continue
        if hidden:
            hidden, here = sign[0] != "-->", sign.end()
        elif sign[0] == "<!--":
            shown, hidden, here = shown + line[here : sign.start()], True, sign.end()
        elif end := ends.get(sign.start()):
            shown, here = shown + line[here:end], end
    return shown + ("" if hidden else line[here:]), hidden


def _bounded(text: str) -> str:
    if len(text) <= limits.MAX_TASK_CHARS:
        return text
    note = "\n(The comment was longer; the rest is left out.)"
    return text[: limits.MAX_TASK_CHARS - len(note)].rstrip() + note
