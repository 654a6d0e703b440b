"""A conversation that has grown too large, made smaller: the task, the plan and what is still open stay.

No model is asked: what is kept is what was really said. Old results go first; if that is not enough, old turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox_task.model.port import Block, Message, Text, ToolCall, ToolResult
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sandbox_task.agent.journal import Journal

_CLEARED = "(left out to make room: make the call again if you need it)"
_DIGEST = "# What happened so far"
_SAID = "# What you said and did"
_CHARS_PER_TOKEN = 3.5  # of code and logs; an estimate only decides when to make room


def estimate_tokens(messages: Iterable[Message]) -> int:
    return round(sum(_chars(block) for message in messages for block in message.blocks) / _CHARS_PER_TOKEN)


def compact(journal: Journal, room: int) -> Journal:
    """At most about `room` tokens, if the first message and the last turn allow it."""
    messages = _without_old_results(journal.messages)
    dropped: Sequence[Message] = ()
    if estimate_tokens(messages) > room:
        tail = _tail(messages, room - estimate_tokens(messages[:1]) - round(limits.DIGEST_CHARS / _CHARS_PER_TOKEN))
        dropped, messages = messages[1 : len(messages) - len(tail)], (messages[0], *tail)
    return journal.model_copy(update={"messages": (_opening(journal, messages[0], dropped), *messages[1:])})


def _opening(journal: Journal, first: Message, dropped: Sequence[Message]) -> Message:
    """What was asked, and a digest of what is left out, an earlier digest included."""
    asked = [block for block in first.blocks if not _is_digest(block)]
    earlier = [block.text.partition(_SAID)[2] for block in first.blocks if isinstance(block, Text)]
    said = "\n".join(filter(None, (*earlier, *_said(dropped))))
    return first.model_copy(update={"blocks": (*asked, Text(text=_digest(journal, said)))})


def _without_old_results(messages: Sequence[Message]) -> tuple[Message, ...]:
    recent = max(1, len(messages) - limits.KEPT_MESSAGES)
    return tuple(_cleared(message) if 0 < place < recent else message for place, message in enumerate(messages))


def _cleared(message: Message) -> Message:
    return message.model_copy(update={"blocks": tuple(map(_without_bulk, message.blocks))})


def _without_bulk(block: Block) -> Block:
    if isinstance(block, ToolResult) and len(block.content) > len(_CLEARED):
        return block.model_copy(update={"content": _CLEARED})
    if isinstance(block, ToolCall):
        return block.model_copy(
            update={"arguments": {key: _shortened(value) for key, value in block.arguments.items()}}
        )
    return block


def _shortened(value: object) -> object:
    return f"{value[:200]}… {_CLEARED}" if isinstance(value, str) and len(value) > 400 else value


def _is_digest(block: Block) -> bool:
    return isinstance(block, Text) and block.text.startswith(_DIGEST)


def _tail(messages: Sequence[Message], room: int) -> Sequence[Message]:
    """As many of the last turns as fit, one at least. A turn begins with the model's reply, so that roles alternate."""
    starts = [place for place, message in enumerate(messages) if place and message.role == "assistant"]
    fitting = [place for place in starts if estimate_tokens(messages[place:]) <= room]
    return messages[(fitting or starts[-1:] or [len(messages)])[0] :]


def _digest(journal: Journal, said: str) -> str:
    problems = "\n".join(f"- {problem.call}: {problem.told}" for problem in journal.problems)
    sections = {
        _DIGEST: "The conversation grew too large, so older parts are left out. The files are as you left them.",
        "# Your plan": journal.plan.as_text() if journal.plan else "",
        "# Open problems": problems,
        _SAID: said[-limits.DIGEST_CHARS :].lstrip("\n"),
    }
    return "\n\n".join(f"{title}\n{text}" for title, text in sections.items() if text)


def _said(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        for block in message.blocks:
            if isinstance(block, Text):
                yield f"- {'You' if message.role == 'assistant' else 'They'}: {block.text[:600]}"
            elif isinstance(block, ToolCall):
                yield f"- You called {block.name} {str(block.arguments)[:160]}"


def _chars(block: Block) -> int:
    match block.kind:
        case "text":
            return len(block.text)
        case "tool_call":
            return len(block.name) + len(str(block.arguments))
        case "tool_result":
            return len(block.content)
    return len(str(block.raw))
