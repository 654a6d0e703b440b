"""The agent: ask the model, do what it asks for, tell it what came of it, until it says that it is done."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from sandbox_task.agent.compaction import compact, estimate_tokens
from sandbox_task.agent.journal import Journal
from sandbox_task.agent.tools.planning import AskUser, Finish, FinishTool
from sandbox_task.agent.watch import Watch
from sandbox_task.model.port import (
    Block,
    Model,
    ModelUnavailable,
    Reply,
    Request,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    TryFailed,
)
from sandbox_task.stopping import Stopped
from sandbox_task.suspension import Suspended
from sandpiper import limits
from sandpiper.errors import RunError
from sandpiper.models.run import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox_task.agent.ports import Keeping, Sink
    from sandbox_task.agent.tools.planning import UpdatePlan
    from sandbox_task.agent.tools.toolbox import Toolbox
    from sandbox_task.allowance import Allowance
    from sandbox_task.inbox import Inbox
    from sandbox_task.model.port import TurnUsage
    from sandbox_task.stopping import Stop

_NUDGE = "Go on with the task by calling tools. When it is done, or if you can't go on, call `finish`."
_CUT_OFF = "This call was cut off because the reply got too long. Make it again, in smaller parts."
_CUT_OFF_WORDS = "Your reply was cut off because it got too long. Go on, in smaller parts."
_BROKEN_OFF = "The run was paused while this was done, so it may be done in part. Look before you do it again."
_NOT_DONE = "Not accepted: another call of this turn failed. Look at it, and finish when all is well."
_ASKED = "Not accepted: you asked a question in the same turn. Read the answer, and finish when all is well."


class Agent:
    """The journal is all that it knows; the conversation goes on from one piece of `work` to the next."""

    def __init__(
        self,
        model: Model,
        toolbox: Toolbox,
        planning: UpdatePlan,
        sink: Sink,
        *,
        system: str,
        allowance: Allowance,
        inbox: Inbox,
        stop: Stop,
        reply_tokens: int,
        journal: Journal | None = None,
        keeping: Keeping | None = None,
    ) -> None:
        self.journal = journal or Journal()
        self._keeping = keeping
        self._model, self._toolbox, self._planning, self._sink = model, toolbox, planning, sink
        self._system, self._reply_tokens = system, reply_tokens
        self._allowance, self._inbox, self._stop = allowance, inbox, stop
        self._watch = Watch(sink)
        self._requests: list[str] = []
        self._prompt_tokens = 0
        self._silent = 0

    def work(self, request: str) -> Finish:
        """Until the agent finishes, from where the journal ends. Raises RunError, Stopped, Suspended."""
        self._requests.append(request)
        while True:
            calls = self.journal.unanswered()
            if calls is None:
                calls = self._turn()
            finish = self._act(calls) if calls else self._without_calls()
            if finish:
                self._sink.emit("agent_finished", **finish.told(), turns=self.journal.usage.turns)
                return finish

    def _turn(self) -> list[ToolCall]:
        """One reply of the model, within every limit. What it calls for."""
        self._stop.check()
        self._hear()  # before a limit makes the run wait: what the journal does not have is lost
        self._rest_if_paused()
        self._check_limits()
        self._make_room()
        if self._keeping:
            self._keeping.asking(self.journal)
        turn = self.journal.usage.turns + 1
        self._sink.emit("agent_turn_started", turn=turn)
        if turn == 1:
            self._sink.emit("planning_started")
        asked_at = time.monotonic()
        reply = self._ask()
        self._tell(reply, turn)
        calls = self._take(reply)
        if self._keeping:
            self._keeping.replied(self.journal, time.monotonic() - asked_at)
        return calls

    def _rest_if_paused(self) -> None:
        if self._inbox.is_paused:
            raise Suspended("paused", "The run was paused.")

    def _check_limits(self) -> None:
        if exceeded := self._allowance.exceeded(self.journal.usage):
            usage = self.journal.usage.model_dump()
            self._sink.emit("agent_budget_exhausted", reason=exceeded.words, limit=exceeded.limit, usage=usage)
            message = f"{exceeded.words} What was done by then is kept."
            raise Suspended("budget_exhausted", message, exhausted=exceeded.limit)

    def _hear(self) -> None:
        """What the model is told besides results: when it is its turn, never between a call and its result."""
        messages = [f"A message from the person who gave you the task:\n{words}" for words in self._inbox.take()]
        said, self._requests = [*self._requests, *messages], []
        if said:
            self._say(*(Text(text=words) for words in said))

    def _make_room(self) -> None:
        """By what the last request really was, or by an estimate where that is more."""
        room = min(limits.COMPACT_TOKENS, round(self._model.context_tokens * limits.COMPACT_AT))
        if max(self._prompt_tokens, estimate_tokens(self.journal.messages)) > room:
            self._compact(room // 2)

    def _compact(self, room: int) -> None:
        before = estimate_tokens(self.journal.messages)
        self.journal, self._prompt_tokens = compact(self.journal, room), 0
        after = estimate_tokens(self.journal.messages)
        message = f"The conversation was shortened from about {before:,} to {after:,} tokens."
        self._sink.emit("warning", message=message, tokens_before=before, tokens_after=after)

    def _ask(self) -> Reply:
        """A conversation that is too long for the model is shortened once more."""
        reply = self._complete()
        if reply.stop == "too_long":
            self._compact(min(self._model.context_tokens, estimate_tokens(self.journal.messages)) // 4)
            reply = self._complete()
        if reply.stop == "too_long":
            raise RunError("model_response_error", "The task alone is longer than the model can take.")
        return reply

    def _complete(self) -> Reply:
        try:
            reply = self._model.complete(self._request())
        except ModelUnavailable as error:
            self._spend(error.usage)
            raise Suspended("paused", f"{error.message} Resume the run when the model is back.") from error
        except TryFailed as error:
            self._spend(error.usage)
            self._sink.emit("agent_turn_failed", error=error.message, retryable=error.retryable)
            raise
        self._spend(reply.usage, turns=0 if reply.stop == "too_long" else 1)
        self._prompt_tokens = reply.usage.prompt_tokens
        return reply

    def _request(self) -> Request:
        return Request(
            system=self._system,
            messages=self.journal.messages,
            tools=self._toolbox.specs,
            max_tokens=self._reply_tokens,
        )

    def _spend(self, usage: TurnUsage, *, turns: int = 0) -> None:
        self._update(usage=self.journal.usage.plus(Usage(turns=turns, **usage.model_dump())))

    def _tell(self, reply: Reply, turn: int) -> None:
        for block in reply.blocks:
            if isinstance(block, Thought) and block.summary.strip():
                self._sink.emit("agent_message", turn=turn, kind="thinking", text=block.summary)
            elif isinstance(block, Text) and block.text.strip():
                self._sink.emit("agent_message", turn=turn, kind="text", text=block.text)
        usage = reply.usage.model_dump()
        self._sink.emit("agent_turn_completed", turn=turn, stop=reply.stop, usage=usage, cost_usd=usage["cost_usd"])

    def _take(self, reply: Reply) -> list[ToolCall]:
        """The reply becomes part of the journal; the last call of one that was cut off is answered, not made."""
        if reply.stop == "refused":
            raise RunError("model_response_error", "The model refused to go on with this task.")
        self.journal = self.journal.with_reply(reply.blocks)
        calls = self.journal.unanswered() or []
        if reply.stop == "cut_off" and calls:
            self._update(results=(ToolResult(call_id=calls[-1].id, content=_CUT_OFF, is_error=True),))
        elif reply.stop == "cut_off":
            self._say(Text(text=_CUT_OFF_WORDS))
        return calls

    def _without_calls(self) -> Finish | None:
        """Words alone: remind it of its tools, and if it has no more to say take them as its last."""
        if self.journal.unanswered() is None:  # it was cut off, and has been told so
            return None
        said = _words(self.journal.messages[-1].blocks)
        self._silent += 1
        if self._silent <= limits.MAX_NUDGES:
            self._say(Text(text=_NUDGE))
            return None
        if said in ("", "(no answer)"):
            raise RunError(
                "model_response_error", "The model stopped answering: its replies are empty.", retryable=True
            )
        return Finish(status="done", summary=said)

    def _act(self, calls: list[ToolCall]) -> Finish | None:
        """Make the calls and say what came of them. What is done is noted at once: the next may have to wait."""
        self._silent = 0
        for step in self._toolbox.steps(calls):
            self._perform(step)
        by_call = {result.call_id: result for result in self.journal.results}
        finish = self._toolbox.take_finish()
        failed = [result.call_id for result in by_call.values() if result.is_error]
        if finish and (why := _why_not_done(calls, failed)):
            self._sink.emit("agent_finish_rejected", reason=why, failed=failed)
            by_call |= {call.id: _refuse(call, why) for call in calls if call.name == FinishTool.name}
            finish = None
        self._say(*(by_call[call.id] for call in calls), *self._notes(calls, by_call))
        if self._keeping and not finish:
            self._keeping.stepped(touched=self._toolbox.may_touch_files(calls))
        return finish

    def _perform(self, calls: list[ToolCall]) -> None:
        done = {result.call_id for result in self.journal.results}
        refused = {call.id: why for call in calls if (why := self._watch.refusal(call))}
        made = [call for call in calls if call.id not in done | refused.keys()]
        results = [*self._make(made), *(_refuse(c, refused[c.id]) for c in calls if c.id in refused)]
        self._update(results=(*self.journal.results, *results), plan=self._planning.plan)

    def _make(self, calls: list[ToolCall]) -> list[ToolResult]:
        """A pause comes between two calls, or breaks off the one in hand, which is not made again of itself."""
        if calls:
            self._rest_if_paused()
        try:
            return self._toolbox.call_all(calls)
        except Stopped as stopped:
            if stopped.reason == "paused":
                self._update(results=(*self.journal.results, *(_refuse(call, _BROKEN_OFF) for call in calls)))
            raise

    def _notes(self, calls: Iterable[ToolCall], results: dict[str, ToolResult]) -> list[Text]:
        """What the agent should know beside the results: that it goes in circles, that it should plan anew."""
        notes = []
        for call in calls:
            result = results[call.id]
            failed = result.is_error or result.failed
            told = result.content[-limits.PROBLEM_CHARS :] if failed else None
            self.journal = self.journal.with_problems(_named(call), told)
            if note := self._watch.note(call, result, failed=failed):
                notes.append(Text(text=note))
        return notes

    def _say(self, *blocks: Block) -> None:
        self.journal = self.journal.with_words(*blocks)

    def _update(self, **changes: object) -> None:
        self.journal = self.journal.model_copy(update=changes)


def _named(call: ToolCall) -> str:
    """By what it is about: the same command, or another edit of the same file, settles what went wrong before."""
    subject = call.arguments.get("command") or call.arguments.get("path") or json.dumps(call.arguments, default=str)
    return f"{call.name} {subject}"[: limits.PROBLEM_CHARS]


def _why_not_done(calls: Iterable[ToolCall], failed: list[str]) -> str | None:
    """Why a finish is not accepted beside the other calls of its turn."""
    asked = any(call.name == AskUser.name for call in calls)
    return _NOT_DONE if failed else _ASKED if asked else None


def _refuse(call: ToolCall, why: str) -> ToolResult:
    return ToolResult(call_id=call.id, content=why, is_error=True)


def _words(blocks: Iterable[Block]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, Text)).strip()
