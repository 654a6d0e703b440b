"""Which story of the repository's PRD a run is about, and the record of how it went, in the tree to be committed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sandbox_task.stories.json_prd import read_json
from sandbox_task.stories.markdown_prd import read_markdown
from sandbox_task.stories.progress import FILE, appended, progress_line
from sandbox_task.stories.story import BrokenPrd, Choice, Story, best_choice, mark_done, take_back
from sandpiper import limits
from sandpiper.models.run import GateStatus, StoryOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from sandbox_task.agent.ports import Teller
    from sandbox_task.workspace.repository import Repository
    from sandpiper.models.run import GateReport

_PLACES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (r"prd\.json", r"prd\.md", r"docs/prd\.md", r"tasks/prd-[^/]+\.md")
)
_VERDICTS: dict[GateStatus, Literal["PASSED", "FAILED", "UNVERIFIED"]] = {
    "passed": "PASSED",
    "failed": "FAILED",
    "skipped": "UNVERIFIED",
}


@dataclass(frozen=True)
class Found:
    """`problems`: files that can't be used, and why. `stories`: how many the others have, open or not."""

    choice: Choice | None
    problems: tuple[str, ...]
    stories: int


def choose(repository: Repository, words: str) -> Found:
    """From the base commit, before any work: what the work writes into a PRD is not what it was asked to do."""
    problems: list[str] = []
    stories: list[tuple[str, int, Story]] = []
    for file in prd_files(repository.paths(repository.base_tree)):
        try:
            stories += (
                (file, nth, story) for nth, story in _numbered(_read(repository, repository.base_tree, file)[1])
            )
        except BrokenPrd as error:
            problems.append(f"{file} can't be used: {error}.")
    return Found(best_choice(stories, words), tuple(problems), len(stories))


def record(
    repository: Repository, tree: str, words: str, gate: GateReport, *, task: str, now: datetime, sink: Teller
) -> tuple[str, StoryOutcome | None]:
    """The tree with the story's record in it. Only a gate that passed makes a story pass."""
    found = choose(repository, words)
    for problem in found.problems:
        sink.emit("story_skipped", reason=problem)
    if found.choice is None:
        if found.stories:
            sink.emit("story_skipped", reason="Every story passes already.")
        return tree, None
    tell_choice(found.choice, sink)
    try:
        marked = _marked(repository, tree, found.choice, gate)
    except BrokenPrd as error:
        sink.emit("story_skipped", reason=f"{found.choice.file} can't be used after the work: {error}.")
        return tree, None
    return _noted(repository, marked, found.choice, gate, task=task, now=now, sink=sink)


def tell_choice(choice: Choice, sink: Teller) -> None:
    story = choice.story
    sink.emit(
        "story_selected", file=choice.file, id=story.id, title=story.title, score=choice.score, reason=choice.reason
    )


def described(choice: Choice) -> str:
    """The story in the words of its file, for the model."""
    text = choice.story.text
    cut = "" if len(text) <= limits.STORY_CHARS else f"\n… {len(text) - limits.STORY_CHARS} more characters"
    return f"{choice.story.name} in {choice.file}:\n{text[: limits.STORY_CHARS]}{cut}"


def prd_files(paths: Iterable[str]) -> list[str]:
    """The more specific place first."""
    ranked = [(rank, path) for path in paths for rank, place in enumerate(_PLACES) if place.fullmatch(path)]
    return [path for _, path in sorted(ranked)][: limits.MAX_PRD_FILES]


def _marked(repository: Repository, tree: str, choice: Choice, gate: GateReport) -> str:
    """Raises BrokenPrd."""
    text, stories = _read(repository, tree, choice.file)
    same = [story for story in stories if story.name == choice.story.name]
    if len(same) <= choice.nth:
        raise BrokenPrd(f"it has no story {choice.story.name} any more")
    story = same[choice.nth]
    new = mark_done(text, story) if gate.status == "passed" else take_back(text, story, choice.story)
    return tree if new == text else repository.replace_file(tree, choice.file, new.encode())


def _noted(
    repository: Repository, tree: str, choice: Choice, gate: GateReport, *, task: str, now: datetime, sink: Teller
) -> tuple[str, StoryOutcome]:
    verdict = _VERDICTS[gate.status]
    outcome = StoryOutcome(file=choice.file, id=choice.story.id, title=choice.story.title, verdict=verdict)
    before = repository.show(tree, FILE) or b""
    line = progress_line(outcome, gate, task, now)
    sink.emit("story_updated", **outcome.model_dump(), passes=gate.status == "passed")
    return repository.replace_file(tree, FILE, appended(before, line)), outcome


def _read(repository: Repository, tree: str, file: str) -> tuple[str, list[Story]]:
    """Raises BrokenPrd."""
    data = repository.show(tree, file)
    if data is None:
        raise BrokenPrd("it is gone")
    if len(data) > limits.MAX_PRD_BYTES:
        raise BrokenPrd(f"it has {len(data):,} bytes, more than {limits.MAX_PRD_BYTES:,}")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise BrokenPrd(f"it is not UTF-8 (byte {error.start + 1})") from error
    return text, read_json(text) if file.lower().endswith(".json") else read_markdown(text)


def _numbered(stories: Iterable[Story]) -> Iterator[tuple[int, Story]]:
    seen: dict[str, int] = {}
    for story in stories:
        yield seen.get(story.name, 0), story
        seen[story.name] = seen.get(story.name, 0) + 1
