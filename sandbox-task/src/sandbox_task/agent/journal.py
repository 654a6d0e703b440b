"""What the agent must remember to go on in another place: plain data that can be stored at any step."""

from __future__ import annotations

from sandbox_task.model.port import Block, Message, Text, ToolCall, ToolResult
from sandpiper.models.base import Model as Record
from sandpiper.models.run import Plan, Usage


class Problem(Record):
    """A call that failed and has not succeeded since."""

    call: str
    told: str


class Journal(Record):
    """`results` are of calls of the last reply that are done while others of the same reply are not."""

    messages: tuple[Message, ...] = ()
    results: tuple[ToolResult, ...] = ()
    problems: tuple[Problem, ...] = ()
    plan: Plan | None = None
    usage: Usage = Usage()

    def with_words(self, *blocks: Block) -> Journal:
        """Said to the model, in one message with what it has not answered yet."""
        messages = self.messages
        if messages and messages[-1].role == "user":
            blocks, messages = (*messages[-1].blocks, *blocks), messages[:-1]
        return self.model_copy(update={"messages": (*messages, Message(role="user", blocks=blocks)), "results": ()})

    def with_reply(self, blocks: tuple[Block, ...]) -> Journal:
        """A reply must have content, or the next request is refused."""
        reply = Message(role="assistant", blocks=blocks or (Text(text="(no answer)"),))
        return self.model_copy(update={"messages": (*self.messages, reply)})

    def unanswered(self) -> list[ToolCall] | None:
        """The calls of a reply that has not been acted upon; None: it is the model's turn."""
        if not self.messages or self.messages[-1].role == "user":
            return None
        return [block for block in self.messages[-1].blocks if isinstance(block, ToolCall)]

    def with_problems(self, call: str, told: str | None) -> Journal:
        """`told` is what went wrong with the call, None that it works now."""
        others = tuple(problem for problem in self.problems if problem.call != call)
        return self.model_copy(
            update={"problems": others if told is None else (*others, Problem(call=call, told=told))}
        )
