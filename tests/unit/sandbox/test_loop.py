from __future__ import annotations

import re
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from sandbox_task.agent.compaction import estimate_tokens
from sandbox_task.agent.journal import Journal
from sandbox_task.agent.loop import Agent
from sandbox_task.agent.tools.outcome import Arguments, Outcome, ToolError
from sandbox_task.agent.tools.planning import AskUser, FinishTool, UpdatePlan
from sandbox_task.agent.tools.toolbox import Toolbox
from sandbox_task.allowance import Allowance
from sandbox_task.inbox import Inbox
from sandbox_task.model.port import (
    MALFORMED,
    Hear,
    Message,
    ModelUnavailable,
    Reply,
    Request,
    StopReason,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    TurnUsage,
    nobody,
)
from sandbox_task.stopping import Stop, Stopped
from sandbox_task.suspension import Suspended
from sandpiper.errors import RunError
from sandpiper.models.run import ControlRequest, Plan, Usage
from sandpiper.models.spec import RunSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Sink:
    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def emit(self, type_: str, **data: Any) -> None:
        self.events.append((type_, data))

    @contextmanager
    def output(self, **_data: Any) -> Iterator[Any]:
        yield None

    def of(self, type_: str) -> list[dict[str, Any]]:
        return [data for type__, data in self.events if type__ == type_]


class EchoArguments(Arguments):
    words: str


class Echo:
    name: ClassVar = "echo"
    description: ClassVar = "Says it again."
    writes: ClassVar = False
    parallel: ClassVar = False
    arguments = EchoArguments

    def shown(self, arguments: EchoArguments) -> Mapping[str, Any]:
        return arguments.model_dump()

    def run(self, arguments: EchoArguments, _call_id: str) -> Outcome:
        if arguments.words == "fail":
            raise ToolError("It can't be said.")
        return Outcome(arguments.words)


class Model:
    name = "test"
    context_tokens = 200_000

    def __init__(self, *replies: Reply) -> None:
        self.requests: list[Request] = []
        self._replies = iter(replies)

    def complete(self, request: Request, _hear: Hear = nobody) -> Reply:
        self.requests.append(request)
        return next(self._replies)


def reply(*blocks: Text | Thought | ToolCall, stop: StopReason = "tool_calls") -> Reply:
    return Reply(blocks=blocks, stop=stop, usage=TurnUsage(input_tokens=10, output_tokens=2, cost_usd=0.5))


def call(name: str, number: int = 1, **arguments: Any) -> ToolCall:
    return ToolCall(id=f"c{number}", name=name, arguments=arguments)


FINISH = call("finish", 9, status="done", summary="Done.")


def agent(
    model: Model,
    sink: Sink | None = None,
    *,
    stop: Stop | None = None,
    inbox: Inbox | None = None,
    journal: Journal | None = None,
    **limits: Any,
) -> Agent:
    sink, stop, inbox = sink or Sink(), stop or Stop(), inbox or Inbox()
    planning = UpdatePlan(sink, journal.plan if journal else None)
    toolbox = Toolbox([Echo(), planning, AskUser(inbox), FinishTool()], sink, stop)
    return Agent(
        model,
        toolbox,
        planning,
        sink,
        system="s",
        allowance=Allowance(RunSpec(task="t", **{"max_turns": 40, **limits})),
        inbox=inbox,
        stop=stop,
        reply_tokens=100,
        journal=journal,
    )


def message(n: int, text: str) -> ControlRequest:
    return ControlRequest(n=n, action="message", by="ann", at=datetime(2026, 1, 1, tzinfo=UTC), data={"text": text})


def results(message: Message) -> list[tuple[str, str, bool]]:
    return [(b.call_id, b.content, b.is_error) for b in message.blocks if isinstance(b, ToolResult)]


def test_every_call_of_a_turn_gets_its_result_in_order() -> None:
    model = Model(
        reply(call("echo", 1, words="a"), call("echo", 2, words="fail"), call("echo", 3, words="c")), reply(FINISH)
    )
    assert agent(model).work("go").summary == "Done."
    assert results(model.requests[1].messages[-1]) == [
        ("c1", "a", False), ("c2", "It can't be said.", True), ("c3", "c", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (call("shout", words="a"), "There is no tool 'shout'. There are: echo, update_plan, ask_user, finish."),
        (call("echo"), "Wrong arguments for echo: words: Field required"),
        (call("echo", **{MALFORMED: '{"words": "a'}), "Wrong arguments for echo: they are no JSON object."),
        (call("echo", words=1), "Wrong arguments for echo: words: Input should be a valid string"),
        (call("echo", words="a", volume=3), "Wrong arguments for echo: volume: Extra inputs are not permitted"),
    ],
)
def test_a_malformed_call_is_answered_as_a_tool_error(wrong: ToolCall, told: str) -> None:
    model, sink = Model(reply(wrong), reply(FINISH)), Sink()
    agent(model, sink).work("go")
    assert results(model.requests[1].messages[-1]) == [("c1", told, True)]
    assert sink.of("tool_failed")[0]["error"] == told


def test_a_reply_without_calls_is_nudged_twice_and_then_taken_as_the_end() -> None:
    model = Model(*[reply(Text(text=f"word {n}"), stop="end") for n in range(3)])
    finish = agent(model).work("go")
    assert (finish.status, finish.summary) == ("done", "word 2")
    assert len(model.requests) == 3
    assert "call `finish`" in str(model.requests[1].messages[-1])


def test_an_empty_reply_keeps_the_conversation_valid() -> None:
    model = Model(reply(stop="end"), reply(FINISH))
    agent(model).work("go")
    assert [message.role for message in model.requests[1].messages] == ["user", "assistant", "user"]
    assert model.requests[1].messages[1].blocks != ()


def test_the_last_call_of_a_reply_that_was_cut_off_is_not_run() -> None:
    model, sink = Model(reply(call("echo", words="half"), stop="cut_off"), reply(FINISH)), Sink()
    agent(model, sink).work("go")
    assert results(model.requests[1].messages[-1])[0][2]
    assert [data["tool"] for data in sink.of("tool_started")] == ["finish"]


@pytest.mark.parametrize(("stop", "words"), [("refused", "refused"), ("too_long", "longer than the model")])
def test_a_reply_that_can_not_be_used_ends_the_run_in_words(stop: StopReason, words: str) -> None:
    with pytest.raises(RunError, match=words) as caught:
        agent(Model(reply(stop=stop), reply(stop=stop))).work("go")
    assert caught.value.type == "model_response_error"


@pytest.mark.parametrize(
    ("limit", "words", "turns"),
    [
        ({"max_turns": 3}, "all of its 3 turns", 3),
        ({"max_cost_usd": 1.0}, r"has cost \$1.00", 2),
        ({"max_total_tokens": 30}, "has used 36 tokens, and its budget is 30", 3),
        ({"timeout_seconds": 1}, "1 seconds are used up", 0),
    ],
)
def test_every_limit_is_checked_before_a_call_and_makes_the_run_wait(
    limit: dict[str, Any], words: str, turns: int
) -> None:
    model, sink = Model(*[reply(call("echo", words="again"))] * 5), Sink()
    with pytest.raises(Suspended, match=words) as caught:
        agent(model, sink, **limit).work("go")
    assert caught.value.reason == "budget_exhausted"
    assert len(model.requests) == turns
    told = sink.of("agent_budget_exhausted")[0]
    assert re.search(words, told["reason"])
    assert (told["limit"], caught.value.exhausted) == (next(iter(limit)),) * 2


def test_a_stop_is_seen_before_the_next_call() -> None:
    stop = Stop()
    stop.request("cancelled")
    model = Model()
    with pytest.raises(Stopped):
        agent(model, stop=stop).work("go")
    assert model.requests == []


def test_the_first_plan_completes_planning_and_later_ones_update_it() -> None:
    sink = Sink()
    plans = [reply(call("update_plan", summary=summary, validation_commands=["t"])) for summary in ("one", "two")]
    agent(Model(*plans, reply(FINISH)), sink).work("go")
    assert sink.of("planning_completed")[0]["plan"]["summary"] == "one"
    assert sink.of("plan_updated")[0]["plan"]["summary"] == "two"


def test_reasoning_is_shown_to_people_and_handed_back_as_it_was() -> None:
    thought = Thought(summary="Let me see.", raw={"type": "thinking", "thinking": "Let me see.", "signature": "x"})
    model, sink = Model(reply(thought, call("echo", words="a")), reply(FINISH)), Sink()
    agent(model, sink).work("go")
    assert sink.of("agent_message") == [{"turn": 1, "kind": "thinking", "text": "Let me see."}]
    assert model.requests[1].messages[1].blocks[0] == thought


def test_usage_is_told_per_turn_and_summed() -> None:
    sink = Sink()
    worker = agent(Model(reply(call("echo", words="a")), reply(FINISH)), sink)
    worker.work("go")
    assert [data["cost_usd"] for data in sink.of("agent_turn_completed")] == [0.5, 0.5]
    assert worker.journal.usage == Usage(turns=2, input_tokens=20, output_tokens=4, cost_usd=1.0)


def test_more_work_goes_on_in_the_same_conversation() -> None:
    model = Model(reply(FINISH), reply(FINISH))
    worker = agent(model)
    worker.work("go")
    worker.work("repair it")
    last = model.requests[1].messages[-1]
    assert isinstance(last.blocks[0], ToolResult)
    assert last.blocks[1] == Text(text="repair it")


def test_a_run_that_was_suspended_goes_on_where_its_journal_ends() -> None:
    first = agent(Model(reply(call("update_plan", summary="one")), reply(call("echo", words="a"))), max_turns=2)
    with pytest.raises(Suspended):
        first.work("go")
    model = Model(reply(FINISH))
    stored = Journal.model_validate_json(first.journal.model_dump_json())
    second = agent(model, journal=stored)
    second.work("You were interrupted.")
    sent = model.requests[0].messages
    assert sent[:-1] == first.journal.messages[:-1]
    assert sent[-1].blocks == (*first.journal.messages[-1].blocks, Text(text="You were interrupted."))
    assert second.journal.usage.turns == 3
    assert second.journal.plan == Plan(summary="one")


def test_a_question_makes_the_run_wait_and_the_answer_is_its_result() -> None:
    question = reply(
        call("echo", 1, words="a"), call("ask_user", 2, question="Red or blue?"), call("echo", 3, words="b")
    )
    sink = Sink()
    first = agent(Model(question), sink)
    with pytest.raises(Suspended) as caught:
        first.work("go")
    assert (caught.value.reason, caught.value.question) == ("awaiting_input", "Red or blue?")
    model, inbox = Model(reply(FINISH)), Inbox()
    inbox.receive([message(1, "Blue.")])
    agent(model, sink, inbox=inbox, journal=first.journal).work("You were interrupted.")
    assert results(model.requests[0].messages[-1]) == [("c1", "a", False), ("c2", "Blue.", False), ("c3", "b", False)]
    assert [data["tool_id"] for data in sink.of("tool_started")] == ["c1", "c3", "c2", "c2", "c9"]


def test_each_of_several_questions_waits_for_its_own_answer_and_keeps_it() -> None:
    asked = reply(call("ask_user", 1, question="Red or blue?"), call("ask_user", 2, question="Large or small?"))
    first, inbox = agent(Model(asked)), Inbox()
    with pytest.raises(Suspended):
        first.work("go")
    inbox.receive([message(1, "Blue.")])
    second = agent(Model(), inbox=inbox, journal=first.journal)
    with pytest.raises(Suspended) as caught:
        second.work("You were interrupted.")
    assert caught.value.question == "Large or small?"
    model = Model(reply(FINISH))
    inbox.receive([message(2, "Small.")])
    agent(model, inbox=inbox, journal=second.journal).work("You were interrupted.")
    assert results(model.requests[0].messages[-1]) == [("c1", "Blue.", False), ("c2", "Small.", False)]


def test_a_finish_beside_a_question_is_not_accepted_before_the_answer_is_read() -> None:
    first, inbox = agent(Model(reply(FINISH, call("ask_user", 2, question="Red or blue?")))), Inbox()
    with pytest.raises(Suspended):
        first.work("go")
    inbox.receive([message(1, "Blue.")])
    sink, model = Sink(), Model(reply(call("finish", 3, status="done", summary="In blue.")))
    finish = agent(model, sink, inbox=inbox, journal=first.journal).work("You were interrupted.")
    assert finish.summary == "In blue."
    (_, refusal, is_error), answer = results(model.requests[0].messages[-1])
    assert (is_error, answer) == (True, ("c2", "Blue.", False))
    assert "asked a question" in refusal
    assert len(sink.of("agent_finish_rejected")) == 1


def test_what_was_asked_for_when_a_limit_was_reached_is_said_when_the_run_goes_on() -> None:
    first = agent(Model(reply(call("echo", words="a")), reply(FINISH)), max_turns=2)
    first.work("go")
    with pytest.raises(Suspended):
        first.work("Repair it: the test of doubling fails.")
    model = Model(reply(call("finish", 3, status="done", summary="Repaired.")))
    agent(model, journal=first.journal).work("You were interrupted.")
    assert [block.text for block in model.requests[0].messages[-1].blocks if isinstance(block, Text)] == [
        "Repair it: the test of doubling fails.",
        "You were interrupted.",
    ]


def test_a_message_reaches_the_model_before_its_next_turn() -> None:
    inbox = Inbox()
    inbox.receive([message(1, "Use tabs.")])
    model = Model(reply(FINISH))
    agent(model, inbox=inbox).work("go")
    assert "Use tabs." in str(model.requests[0].messages[-1])
    assert inbox.seen == 1


def test_a_model_that_is_away_makes_the_run_wait_instead_of_losing_it() -> None:
    class Away(Model):
        def complete(self, request: Request, _hear: Hear = nobody) -> Reply:
            raise ModelUnavailable("Nobody answers.", usage=TurnUsage(input_tokens=7))

    worker = agent(Away())
    with pytest.raises(Suspended, match="Nobody answers") as caught:
        worker.work("go")
    assert caught.value.reason == "paused"
    assert worker.journal.usage == Usage(input_tokens=7)


def test_a_finish_beside_a_call_that_failed_is_not_accepted() -> None:
    sink = Sink()
    model = Model(reply(call("echo", 1, words="fail"), FINISH), reply(FINISH))
    agent(model, sink).work("go")
    assert len(model.requests) == 2
    assert [is_error for *_, is_error in results(model.requests[1].messages[-1])] == [True, True]
    assert sink.of("agent_finish_rejected")[0]["failed"] == ["c1"]


def test_replies_that_are_empty_again_and_again_end_the_run_as_an_error_of_the_model() -> None:
    with pytest.raises(RunError, match="replies are empty") as caught:
        agent(Model(*[reply(stop="end")] * 3)).work("go")
    assert caught.value.type == "model_response_error"


def test_words_that_were_cut_off_are_asked_to_go_on() -> None:
    model = Model(reply(Text(text="I will"), stop="cut_off"), reply(FINISH))
    agent(model).work("go")
    assert "cut off" in str(model.requests[1].messages[-1])


def test_the_same_call_with_the_same_outcome_three_times_is_no_progress() -> None:
    sink = Sink()
    model = Model(*[reply(call("echo", words="again"))] * 3, reply(FINISH))
    agent(model, sink).work("go")
    assert sink.of("agent_no_progress") == [{"reason": "same_call_same_outcome", "times": 3, "tool": "echo"}]
    assert "same outcome" not in str(model.requests[2].messages[-1])
    assert "same outcome" in str(model.requests[3].messages[-1])


def test_three_failures_in_a_row_ask_for_a_new_plan_and_a_fourth_demands_it() -> None:
    sink = Sink()
    failing = [reply(call("echo", words="fail")) for _ in range(4)]
    model = Model(*failing, reply(call("echo", words="fine")), reply(call("update_plan", summary="new")),
                  reply(call("echo", words="fine")), reply(FINISH))  # fmt: skip
    agent(model, sink).work("go")
    assert "update_plan" in str(model.requests[3].messages[-1])
    assert results(model.requests[5].messages[-1])[0][1].startswith("Nothing was done.")
    assert results(model.requests[7].messages[-1]) == [("c1", "fine", False)]


def test_a_conversation_that_grows_too_large_is_shortened_and_keeps_task_plan_and_open_problems() -> None:
    sink = Sink()
    model = Model(
        reply(call("update_plan", summary="The grand plan")),
        reply(call("echo", 2, words="fail")),
        *[reply(call("echo", n, words=f"{n}" * 4000)) for n in range(10, 30)],
        reply(FINISH),
    )
    model.context_tokens = 20_000
    agent(model, sink).work("The task itself")
    last = model.requests[-1].messages
    text = "\n".join(block.text for block in last[0].blocks if isinstance(block, Text))
    assert estimate_tokens(last) < 12_000
    assert all(words in text for words in ("The task itself", "The grand plan", "It can't be said."))
    assert [message.role for message in last] == ["user", "assistant"] * (len(last) // 2) + ["user"] * (len(last) % 2)
    assert text.count("# What happened so far") == 1
    assert len(sink.of("warning")) > 1


def test_a_conversation_that_the_model_calls_too_long_is_shortened_and_asked_again() -> None:
    talk = [reply(call("echo", n, words="word " * 500)) for n in range(10, 20)]
    model = Model(*talk, reply(stop="too_long"), reply(FINISH))
    worker = agent(model)
    worker.work("go")
    assert estimate_tokens(model.requests[-1].messages) < estimate_tokens(model.requests[-2].messages) / 2
    assert worker.journal.usage.turns == 11, "a request that was refused is no turn"


def test_a_request_that_the_model_counts_as_large_is_shortened_whatever_we_estimate() -> None:
    big = TurnUsage(input_tokens=150_000)
    talk = [reply(call("echo", n, words="word " * 200)) for n in range(10, 22)]
    model = Model(*talk[:-1], talk[-1].model_copy(update={"usage": big}), reply(FINISH))
    model.context_tokens = 1_000_000
    agent(model).work("go")
    assert estimate_tokens(model.requests[-1].messages) < estimate_tokens(model.requests[-2].messages)
    assert "What happened so far" in str(model.requests[-1].messages[0])
