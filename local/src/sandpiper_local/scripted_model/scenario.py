"""What the scripted model says, as data: scenarios are files, and a file is checked when it is loaded."""

from __future__ import annotations

import json
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from sandpiper_local.scripted_model.conversation import ToolResult, first_user_text, last_tool_results, replies_so_far

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

StopReason = Literal[
    "end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal", "model_context_window_exceeded"
]


class ScenarioError(Exception):
    """A scenario can't be read, or the conversation left its script."""


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ToolCall(_Data):
    """What a model gets wrong can be said, too: input that is no object or no JSON, an id that is empty or used."""

    name: str
    input: Any = Field(default_factory=dict)
    raw_input: str | None = Field(default=None, description="sent instead of the input's JSON")
    id: str | None = Field(default=None, description="instead of one of our own")


class Expectation(_Data):
    """What has to be true of the last tool results before this reply is given."""

    contains: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    is_error: bool | None = None

    def check(self, results: list[ToolResult]) -> None:
        text = "\n".join(result.text for result in results)
        missing = [words for words in self.contains if words not in text]
        unwanted = [words for words in self.excludes if words in text]
        if missing or unwanted:
            raise ScenarioError(f"the last tool result lacks {missing} or has {unwanted}; it was: {text[:2000]!r}")
        if self.is_error is not None and any(result.is_error != self.is_error for result in results):
            raise ScenarioError(f"a tool result should have is_error={self.is_error}; it was: {text[:2000]!r}")


class Fault(_Data):
    """A failure on the wire. It is over after `times` requests with the same messages, so that a retry gets through."""

    status: int | None = Field(default=None, ge=400, le=599)
    retry_after: float | None = Field(default=None, ge=0)
    message: str = Field(default="", description="what the refusal says")
    cut_after_bytes: int | None = Field(default=None, ge=0)
    end_after_events: int | None = Field(default=None, ge=0, description="then the stream ends as if all had been said")
    stream_error: str | None = Field(default=None, description="sent in mid-stream under this name")
    garbled: bool = Field(default=False, description="in mid-stream comes what nobody can read")
    delay_seconds: float = Field(default=0, ge=0, le=3600)
    times: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _is_one_failure(self) -> Self:
        kinds = (self.status, self.cut_after_bytes, self.end_after_events, self.stream_error, self.garbled or None)
        if sum(kind is not None for kind in kinds) > 1:
            raise ValueError("a fault is one failure: a status, or one thing that is wrong with the stream")
        return self


class Reply(_Data):
    text: str | None = None
    thinking: str | None = None
    blocks: tuple[dict[str, Any], ...] = Field(default=(), description="more blocks, as the Messages API has them")
    empty: bool = False
    tools: tuple[ToolCall, ...] = ()
    expect: Expectation | None = None
    fault: Fault | None = None
    stop_reason: StopReason | None = None
    usage: dict[str, int] = Field(default_factory=dict, description="replaces single figures of the estimated usage")
    pace_seconds: float = Field(
        default=0, ge=0, le=60, description="between two events of the stream, as a model speaks"
    )
    repeat: int = Field(default=1, ge=1, description="give this reply so many times in a row")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not (self.text or self.tools or self.thinking or self.blocks or self.empty):
            raise ValueError("a reply needs text or tools, or says that it is empty")
        return self


class Match(_Data):
    """All that is given has to fit. Words are looked for in the first user message, whatever their case."""

    words: tuple[str, ...] = ()
    not_words: tuple[str, ...] = ()
    model: str | None = Field(default=None, description="a shell pattern, such as claude-opus-*")

    def fits(self, request: Mapping[str, Any]) -> bool:
        text = first_user_text(request["messages"]).casefold()
        return (
            all(words.casefold() in text for words in self.words)
            and not any(words.casefold() in text for words in self.not_words)
            and (self.model is None or fnmatch(request["model"], self.model))
        )


class Scenario(_Data):
    name: str
    match: Match = Field(default_factory=Match)
    replies: tuple[Reply, ...] = Field(min_length=1)
    after_end: Literal["fail", "repeat"] = "fail"

    def reply_to(self, request: Mapping[str, Any]) -> Reply:
        """The place in the script follows from the conversation alone: any number of runs can play it at once."""
        messages = request["messages"]
        script = [reply for reply in self.replies for _ in range(reply.repeat)]
        place = replies_so_far(messages)
        if place >= len(script) and self.after_end == "fail":
            raise ScenarioError(f"scenario {self.name!r} has {len(script)} replies, and one more was asked for")
        reply = script[min(place, len(script) - 1)]
        if reply.expect is not None:
            self._check(reply.expect, messages, place)
        return reply

    def _check(self, expect: Expectation, messages: list[dict[str, Any]], place: int) -> None:
        try:
            expect.check(last_tool_results(messages))
        except ScenarioError as error:
            raise ScenarioError(f"scenario {self.name!r}, reply {place + 1}: {error}") from None


def parse_scenario(data: object, *, origin: str) -> Scenario:
    try:
        return Scenario.model_validate(data)
    except ValidationError as error:
        raise ScenarioError(f"{origin} is not a scenario: {error}") from None


def load_scenarios(paths: Iterable[Path]) -> list[Scenario]:
    """Files in the given order; of a directory, its .yaml, .yml and .json files by name."""
    return [_load_file(file) for path in paths for file in _files_of(path)]


def _files_of(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.iterdir() if file.suffix in {".yaml", ".yml", ".json"})


def _load_file(path: Path) -> Scenario:
    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ScenarioError(f"{path} can't be read: {error}") from None
    return parse_scenario(data, origin=str(path))
