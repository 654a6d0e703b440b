"""Whatever a model says becomes data that the loop can answer, and whatever we send back is valid on every wire."""

from __future__ import annotations

import itertools
import json
import re
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sandbox_task.model.port import MALFORMED, Block, Message, Request, Text, Thought, ToolCall
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# What the strictest of the wires takes, for ids and for names of tools.
_WORD = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")
NOTHING = "(nothing)"


class Calls:
    """The tool calls of one reply, each with an id that is new to the conversation."""

    def __init__(self, request: Request) -> None:
        blocks = (block for message in request.messages for block in message.blocks)
        self._used = {block.id for block in blocks if block.kind == "tool_call"}

    def make(self, id_: object, name: object, arguments: object) -> ToolCall:
        return ToolCall(id=self._new_id(id_), name=_named(name), arguments=_object(arguments))

    def _new_id(self, given: object) -> str:
        usable = isinstance(given, str) and _WORD.fullmatch(given) and given not in self._used
        id_ = str(given) if usable else next(self._own_ids())
        self._used.add(id_)
        return id_

    def _own_ids(self) -> Iterator[str]:
        numbered = (f"call_{number}" for number in itertools.count(len(self._used) + 1))
        return (id_ for id_ in numbered if id_ not in self._used)


def parsed(text: str) -> object:
    """What a model wrote as JSON; the text itself if it is none, for example because it was cut off."""
    try:
        return json.loads(text) if text.strip() else {}
    except ValueError:
        return text


def _named(name: object) -> str:
    return _FOREIGN.sub("_", str(name or ""))[:64] or "unnamed"


def _object(arguments: object) -> dict[str, Any]:
    if isinstance(arguments, dict):
        return arguments
    shown = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {MALFORMED: shown[: limits.MALFORMED_CHARS]}


class Sent(NamedTuple):
    """A message as it goes out."""

    role: Literal["user", "assistant"]
    blocks: tuple[Block, ...]


def sendable(messages: Iterable[Message], *, is_own: Callable[[Thought], bool]) -> list[Sent]:
    """Roles by turns, without blank words and without thoughts that this model would refuse; each says something.

    Every turn asks this of the whole conversation, so that no record is made, and blocks are told apart by `kind`: both
    take long with pydantic's classes.
    """
    sent = []
    for role, group in itertools.groupby(messages, key=lambda message: message.role):
        blocks = [_worded(block) for message in group for block in message.blocks]
        kept = [block for block in blocks if _says_something(block, is_own)]
        if not kept or kept[-1].kind == "thought":  # a message must not end with a thought
            kept.append(Text(text=NOTHING))
        sent.append(Sent(role, tuple(kept)))
    return sent


def _worded(block: Block) -> Block:
    blank = block.kind == "tool_result" and not block.content.strip()
    return block.model_copy(update={"content": NOTHING}) if blank else block


def _says_something(block: Block, is_own: Callable[[Thought], bool]) -> bool:
    if block.kind == "text":
        return bool(block.text.strip())
    return is_own(block) if block.kind == "thought" else True
