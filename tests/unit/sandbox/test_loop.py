from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from sandbox_task.agent.budget import Budget
from sandbox_task.agent.loop import Agent
from sandbox_task.agent.tools.outcome import Arguments, Outcome, ToolError
from sandbox_task.agent.tools.planning import FinishTool, UpdatePlan
from sandbox_task.agent.tools.toolbox import Toolbox
from sandbox_task.model.port import Message, Reply, Request, StopReason, Text, Thought, ToolCall, ToolResult, TurnUsage
from sandbox_task.stopping import Stop, Stopped
from sandpiper.errors import RunError

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

    def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        return next(self._replies)


def reply(*blocks: Text | Thought | ToolCall, stop: StopReason = "tool_calls") -> Reply:
    return Reply(blocks=blocks, stop=stop, usage=TurnUsage(input_tokens=10, output_tokens=2, cost_usd=0.5))


def call(name: str, number: int = 1, **arguments: Any) -> ToolCall:
    return ToolCall(id=f"c{number}", name=name, arguments=arguments)


FINISH = call("finish", 9, status="done", summary="Done.")


def agent(model: Model, sink: Sink | None = None, budget: Budget | None = None, stop: Stop | None = None) -> Agent:
    sink, stop = sink or Sink(), stop or Stop()
    toolbox = Toolbox([Echo(), UpdatePlan(sink), FinishTool()], sink, stop)
    return Agent(model, toolbox, sink, system="s", budget=budget or Budget(10), stop=stop, reply_tokens=100)


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
        (call("shout", words="a"), "There is no tool 'shout'. There are: echo, update_plan, finish."),
        (call("echo"), "Wrong arguments for echo: words: Field required"),
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
        agent(Model(reply(stop=stop))).work("go")
    assert caught.value.type == "model_response_error"


def test_the_turns_are_limited() -> None:
    model = Model(*[reply(call("echo", words="again"))] * 5)
    with pytest.raises(RunError, match="all of its 3 turns") as caught:
        agent(model, budget=Budget(3)).work("go")
    assert caught.value.type == "budget_exhausted"
    assert len(model.requests) == 3


def test_the_dollars_are_limited() -> None:
    model = Model(*[reply(call("echo", words="again"))] * 5)
    with pytest.raises(RunError, match=r"has cost \$1.00"):
        agent(model, budget=Budget(10, max_cost_usd=1.0)).work("go")
    assert len(model.requests) == 2


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
    assert (worker.usage.turns, worker.usage.input_tokens, worker.usage.cost_usd) == (2, 20, 1.0)


def test_more_work_goes_on_in_the_same_conversation() -> None:
    model = Model(reply(FINISH), reply(FINISH))
    worker = agent(model)
    worker.work("go")
    worker.work("repair it")
    last = model.requests[1].messages[-1]
    assert isinstance(last.blocks[0], ToolResult)
    assert last.blocks[1] == Text(text="repair it")
