"""Where the conversation is marked for the prompt cache.

A request is looked up at each mark, and up to 20 blocks before it, for what an earlier request has left there. So the
marks move with the conversation: the end of what was asked last (nobody has been there: it is written) and the end of
what was asked before (written by the last request, so that a turn of any number of blocks finds it). A third one stays
at the end of the first message: it is what remains when the conversation in between is made shorter. One more is at
the system prompt, behind the tools; four are allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandbox_task.model.port import Message
    from sandbox_task.model.repair import Sent


def marked(messages: Sequence[Message | Sent]) -> frozenset[int]:
    """The messages at whose end there is a mark."""
    asked = [place for place, message in enumerate(messages) if message.role == "user"]
    return frozenset((*asked[:1], *asked[-2:]))
