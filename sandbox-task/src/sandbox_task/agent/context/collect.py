"""What the model is told about the repository at the start: bounded, best first, and what is left out is said.

Everything is read from the base commit in A's own objects, so no file of the workspace is touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandbox_task.agent.context import excerpts
from sandbox_task.agent.context.base_files import BaseFiles
from sandbox_task.agent.context.kinds import general_paths, instruction_paths, requirement_paths
from sandbox_task.agent.context.marking import as_data, estimate_tokens, file_block
from sandbox_task.agent.context.outline import outline
from sandbox_task.agent.context.search import Found, search
from sandbox_task.agent.context.words import Term, named_paths, search_terms
from sandbox_task.workspace.names import printable
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sandbox_task.workspace.objects import Entry
    from sandbox_task.workspace.repository import Repository

_LEAST_TOKENS = 60  # with less room than this a file is better left out
_NAMED_AS_OMITTED = 20


@dataclass(frozen=True)
class Context:
    """`text` may stand in the prompt's repository block as it is. Paths are printable."""

    text: str
    files: int
    included: tuple[str, ...]
    omitted: tuple[str, ...]
    tokens: int

    def told(self) -> dict[str, Any]:
        """The data of the event."""
        most = limits.CONTEXT_TOLD_PATHS
        shown = {"included": self.included[:most], "omitted": self.omitted[:most]}
        return {"files": self.files, **shown, "tokens": self.tokens}


@dataclass(frozen=True)
class _Candidate:
    path: str
    tokens: int
    terms: tuple[Term, ...] = ()  # to be shown around these


def collect(repository: Repository, task: str) -> Context:
    """After `deliver`, when the contents of the base are there."""
    files = BaseFiles(repository)
    if not files.entries:
        return Context("The repository is empty.", 0, (), (), estimate_tokens("The repository is empty."))
    terms = search_terms(task)
    found = search(repository, files.entries, terms)
    head = _head(repository, files, found)
    chosen = _resolved(files, _candidates(files, task, repository.narrowing.paths, tuple(terms), found))
    blocks, included, omitted = _fill(files, chosen, limits.CONTEXT_TOKENS - estimate_tokens(head))
    left_out = f"Left out, read them if you need them: {_named(omitted)}" if omitted else ""
    text = "\n\n".join(filter(None, (head, *blocks, left_out)))
    return Context(text, len(repository.base_entries), tuple(included), tuple(omitted), estimate_tokens(text))


def _candidates(
    files: BaseFiles, task: str, narrowed: Sequence[str], terms: tuple[Term, ...], found: Found
) -> Iterator[_Candidate]:
    """Best first: how to work here, what is wanted, what the task is about, then what the project is."""
    paths = files.paths
    named = named_paths(task, paths)
    for path in instruction_paths(paths, towards=(*narrowed, *named)):
        yield _Candidate(path, limits.CONTEXT_INSTRUCTION_TOKENS)
    for path in requirement_paths(paths):
        yield _Candidate(path, limits.CONTEXT_PRD_TOKENS)
    for path in named:
        yield _Candidate(path, limits.CONTEXT_NAMED_TOKENS, terms)
    for path in found.paths:
        yield _Candidate(path, limits.CONTEXT_FOUND_TOKENS, terms)
    for path, tokens in general_paths(paths):
        yield _Candidate(path, tokens)


def _resolved(files: BaseFiles, candidates: Iterator[_Candidate]) -> list[tuple[_Candidate, Entry]]:
    """Each content once, however many files or links have it."""
    chosen: dict[str, tuple[_Candidate, Entry]] = {}
    for candidate in candidates:
        if entry := files.resolve(candidate.path):
            chosen.setdefault(entry.oid, (candidate, entry))
    return list(chosen.values())


def _fill(
    files: BaseFiles, chosen: Sequence[tuple[_Candidate, Entry]], room: int
) -> tuple[list[str], list[str], list[str]]:
    texts = files.texts(entry for _, entry in chosen)
    blocks: list[str] = []
    included: list[str] = []
    omitted: list[str] = []
    for candidate, entry in chosen:
        block = _block(candidate, entry, texts.get(entry.oid), room)
        if block is None:
            omitted.append(printable(entry.path))
            continue
        room -= estimate_tokens(block)
        blocks.append(block)
        included.append(printable(entry.path))
    return blocks, included, omitted


def _block(candidate: _Candidate, entry: Entry, text: str | None, room: int) -> str | None:
    tokens = min(candidate.tokens, room - _LEAST_TOKENS // 2)  # the frame needs some too
    if text is None or (tokens < _LEAST_TOKENS and estimate_tokens(text) > tokens):
        return None
    excerpt = excerpts.around(text, candidate.terms, tokens=tokens)
    return file_block(printable(entry.path), excerpt.text, part=excerpt.part) if excerpt.text.strip() else None


def _head(repository: Repository, files: BaseFiles, found: Found) -> str:
    total, here = len(repository.base_entries), len(files.entries)
    notes = [f"{total} files."]
    if here < total:
        within = ", ".join(printable(path) for path in repository.narrowing.paths)
        notes.append(
            f"Only {here} of them are checked out: those at the root and in {within}. The others stay as they are."
        )
    if submodules := [printable(entry.path) for entry in files.entries if entry.is_submodule]:
        notes.append(f"Submodules, empty here: {_named(submodules)}.")
    if not repository.has_whole_history:
        notes.append(
            "`git log` is complete, but contents older than the last commits are not here (`git blame` may fail)."
        )
    if found.searched < found.searchable:
        notes.append(f"{found.searched} of {found.searchable} text files were searched for the task's words.")
    tree = excerpts.beginning(outline(files.paths), tokens=limits.CONTEXT_TREE_TOKENS)
    return as_data("\n".join((" ".join(notes), tree.text, *(["…"] if tree.part else []))))


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED_AS_OMITTED} more" if len(paths) > _NAMED_AS_OMITTED else ""
    return as_data(", ".join(paths[:_NAMED_AS_OMITTED]) + more)
