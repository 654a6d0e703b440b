"""The agent: ask the model, do what it asks for, tell it what came of it, until it says that it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox_task.agent.tools.planning import Finish
from sandbox_task.model.port import Block, Message, Model, Reply, Request, Text, Thought, ToolCall, ToolResult
from sandpiper.errors import RunError
from sandpiper.models.run import Usage

if TYPE_CHECKING:
    from sandbox_task.agent.budget import Budget
    from sandbox_task.agent.ports import Sink
    from sandbox_task.agent.tools.toolbox import Toolbox
    from sandbox_task.stopping import Stop

_MAX_NUDGES = 2
_NUDGE = "Go on with the task by calling tools. When it is done, or if you can't go on, call `finish`."
_CUT_OFF = "This call was cut off because the reply got too long. Make it again, in smaller parts."


class Agent:
    """`usage` is the sum over all turns; the conversation goes on from one piece of `work` to the next."""

    def __init__(
        self,
        model: Model,
        toolbox: Toolbox,
        sink: Sink,
        *,
        system: str,
        budget: Budget,
        stop: Stop,
        reply_tokens: int,
    ) -> None:
        self.usage = Usage()
        self._model, self._toolbox, self._sink = model, toolbox, sink
        self._system, self._budget, self._stop = system, budget, stop
        self._reply_tokens = reply_tokens
        self._messages: list[Message] = []

    def work(self, request: str) -> Finish:
        """Until the agent finishes. Raises RunError at a limit and Stopped when the run has to stop."""
        self._say(Text(text=request))
        nudges = 0
        while True:
            reply = self._turn()
            calls = [block for block in reply.blocks if isinstance(block, ToolCall)]
            if calls:
                self._say(*self._results(reply, calls))
            elif nudges < _MAX_NUDGES:
                nudges += 1
                self._say(Text(text=_NUDGE))
            else:
                self._toolbox.finish = Finish(status="done", summary=_words(reply) or "The agent said no more.")
            if finish := self._toolbox.take_finish():
                self._sink.emit("agent_finished", **finish.model_dump(), turns=self.usage.turns)
                return finish

    def _turn(self) -> Reply:
        self._check_limits()
        turn = self.usage.turns + 1
        self._sink.emit("agent_turn_started", turn=turn)
        if turn == 1:
            self._sink.emit("planning_started")
        try:
            reply = self._model.complete(self._request())
        except RunError as error:
            self._sink.emit("agent_turn_failed", turn=turn, error=error.message, retryable=error.retryable)
            raise
        self._count(reply)
        self._tell(reply, turn)
        self._messages.append(Message(role="assistant", blocks=reply.blocks or (Text(text="(no answer)"),)))
        return reply

    def _check_limits(self) -> None:
        self._stop.check()
        if reason := self._budget.exceeded(self.usage):
            self._sink.emit("agent_budget_exhausted", reason=reason, usage=self.usage.model_dump())
            raise RunError("budget_exhausted", f"{reason} What was done by then is in the diff.")

    def _request(self) -> Request:
        return Request(
            system=self._system,
            messages=tuple(self._messages),
            tools=self._toolbox.specs,
            max_tokens=self._reply_tokens,
        )

    def _count(self, reply: Reply) -> None:
        turn = reply.usage
        self.usage = Usage(
            turns=self.usage.turns + 1,
            input_tokens=self.usage.input_tokens + turn.input_tokens,
            output_tokens=self.usage.output_tokens + turn.output_tokens,
            cache_read_tokens=self.usage.cache_read_tokens + turn.cache_read_tokens,
            cache_write_tokens=self.usage.cache_write_tokens + turn.cache_write_tokens,
            cost_usd=round(self.usage.cost_usd + turn.cost_usd, 6),
        )

    def _tell(self, reply: Reply, turn: int) -> None:
        for block in reply.blocks:
            if isinstance(block, Thought) and block.summary.strip():
                self._sink.emit("agent_message", turn=turn, kind="thinking", text=block.summary)
            elif isinstance(block, Text) and block.text.strip():
                self._sink.emit("agent_message", turn=turn, kind="text", text=block.text)
        usage = reply.usage.model_dump()
        self._sink.emit("agent_turn_completed", turn=turn, stop=reply.stop, usage=usage, cost_usd=usage["cost_usd"])
        if reply.stop == "refused":
            raise RunError("model_response_error", "The model refused to go on with this task.")
        if reply.stop == "too_long":
            raise RunError("model_response_error", "The conversation has grown longer than the model can take.")

    def _results(self, reply: Reply, calls: list[ToolCall]) -> list[ToolResult]:
        """One result for each call, in order; the last call of a reply that was cut off is not to be trusted."""
        cut = calls[-1] if reply.stop == "cut_off" else None
        return [
            ToolResult(call_id=call.id, content=_CUT_OFF, is_error=True) if call is cut else self._toolbox.call(call)
            for call in calls
        ]

    def _say(self, *blocks: Block) -> None:
        """To the model, in one message with what it has not answered yet."""
        if self._messages and self._messages[-1].role == "user":
            blocks = (*self._messages.pop().blocks, *blocks)
        self._messages.append(Message(role="user", blocks=blocks))


def _words(reply: Reply) -> str:
    return "\n".join(block.text for block in reply.blocks if isinstance(block, Text)).strip()
