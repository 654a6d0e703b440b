"""What a task talks about: the files that it names, and the words worth searching for. No I/O."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_QUOTED = re.compile(r"`([^`\n]{3,80})`|\"([^\"\n]{3,80})\"|(?<!\w)'([^'\n]{3,80})'(?!\w)")
_TOKEN = re.compile(r"[^\s`\"'()\[\]{}<>,;]+")
_IDENTIFIER = re.compile(r"[^\W\d]\w*(?:[.:]{1,2}[^\W\d]\w*)*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")
_MIN_CHARS = 4
_MANY = 3  # more files of one name than this: the name says little
_COMMON = frozenset(
    """about above add adds added after again also always and another any are back because been before being below
    between both but call called can change changes check code could create current does doesn done each edit every
    example file files first fix fixed from function get gets give given has have here how implement implementation
    improve into its just last like line lines list look make makes many method more most must name need needs never new
    next not nothing now old one only other our out over please print project put repository return returns run same
    should show shows since some such support sure test tests than that the their them then there these they thing this
    those through two type under until update use used user uses using value very want was well were what when where
    which while will with without work working works would write wrong you your""".split()  # noqa: SIM905 - words to read, not a list to maintain
)


@dataclass(frozen=True)
class Term:
    """`text` is in lower case; `weight` says how much a file that holds it is likely to be meant."""

    text: str
    weight: float


def named_paths(task: str, paths: Iterable[str]) -> list[str]:
    """Files that the task names by path, by the end of a path, by file name, or as a module; in the task's order."""
    ends = defaultdict(list)
    for path in paths:
        ends[posixpath.basename(path)].append(path)
    stems: dict[str, list[str]] = defaultdict(list)
    for name, same in ends.items():
        stems[posixpath.splitext(name)[0]].extend(same)
    found: dict[str, None] = {}
    for mention in _mentions(task):
        found |= dict.fromkeys(_files_called(mention, ends) or _modules_called(mention, stems))
    return list(found)[: limits.CONTEXT_NAMED_FILES]


def search_terms(task: str) -> list[Term]:
    """The most telling first: what is quoted, identifiers, then their parts and plain words."""
    weights: dict[str, float] = {}
    for text, weight in _weighted(task):
        if len(text) >= _MIN_CHARS and text.lower() not in _COMMON:
            weights.setdefault(text.lower(), weight)
    terms = [Term(text, weight) for text, weight in weights.items()]
    return sorted(terms, key=lambda term: -term.weight)[: limits.CONTEXT_TERMS]


def _mentions(task: str) -> Iterator[str]:
    for match in _QUOTED.finditer(task):
        yield match[match.lastindex or 0].removeprefix("./")
    for match in _TOKEN.finditer(task):
        yield match[0].removeprefix("./").rstrip(".:!?/")
        yield match[0].split(":")[0]  # file.py:12


def _files_called(mention: str, ends: dict[str, list[str]]) -> list[str]:
    name = posixpath.basename(mention)
    same = ends.get(name, [])
    if "/" in mention:
        return sorted((path for path in same if f"/{path}".endswith(f"/{mention}")), key=len)[:_MANY]
    is_file_name = "." in name[1:] or (name[:1].isupper() and len(name) >= _MIN_CHARS)
    return same if is_file_name and len(same) <= _MANY else []


def _modules_called(mention: str, stems: dict[str, list[str]]) -> list[str]:
    """`package.module` and `package.module.Thing`."""
    parts = [part for part in mention.split(".") if part.isidentifier()]
    for end in range(len(parts), 1, -1):
        wanted = "/".join(parts[:end])
        if found := [
            path for path in stems.get(parts[end - 1], []) if posixpath.splitext(f"/{path}")[0].endswith(f"/{wanted}")
        ]:
            return found[:_MANY]
    return []


def _weighted(task: str) -> Iterator[tuple[str, float]]:
    for match in _QUOTED.finditer(task):
        yield match[match.lastindex or 0], 3.0
    identifiers = [match[0] for match in _IDENTIFIER.finditer(task)]
    for identifier in identifiers:
        if _is_name(identifier):
            yield identifier.replace("::", ".").rpartition(".")[2], 3.0
    for identifier in identifiers:
        for part in _PART.findall(identifier) if _is_name(identifier) else [identifier]:
            yield _singular(part), 1.0


def _is_name(identifier: str) -> bool:
    """Written as no word of a language is."""
    return "_" in identifier or "." in identifier or "::" in identifier or any(map(str.isupper, identifier[1:]))


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > _MIN_CHARS else word
