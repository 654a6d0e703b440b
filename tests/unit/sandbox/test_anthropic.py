from __future__ import annotations

from typing import Any

import pytest

from sandbox_task.model.anthropic import AnthropicModel
from sandbox_task.model.catalogue import cost_usd, full_name
from sandbox_task.model.interruptible import InterruptibleModel
from sandbox_task.model.port import Message, Request, Text, Thought, ToolCall, ToolResult, ToolSpec, TurnUsage
from sandbox_task.stopping import Stop, Stopped
from sandpiper.errors import RunError
from sandpiper_local.scripted_model.runner import ScriptedModel

TOOL = ToolSpec(name="echo", description="d", parameters={"type": "object", "properties": {}})


def request(*messages: Message) -> Request:
    first = Message(role="user", blocks=(Text(text="Say hello"),))
    return Request(system="You are.", messages=(first, *messages), tools=(TOOL,), max_tokens=1000)


def scenario(*replies: dict[str, Any]) -> dict[str, Any]:
    return {"name": "s", "match": {"words": ["Say hello"]}, "replies": list(replies)}


def model(server: ScriptedModel, name: str = "sonnet") -> AnthropicModel:
    return AnthropicModel(name, api_key="sk-ant-test", base_url=server.url)


def test_a_reply_becomes_our_own_words() -> None:
    with ScriptedModel([scenario({"text": "Hi.", "tools": [{"name": "echo", "input": {"a": 1}}]})]) as server:
        reply = model(server).complete(request())
    text, call = reply.blocks
    assert text == Text(text="Hi.")
    assert isinstance(call, ToolCall)
    assert (call.name, call.arguments, reply.stop) == ("echo", {"a": 1}, "tool_calls")
    assert reply.usage.output_tokens > 0
    assert reply.usage.cost_usd > 0


def test_a_conversation_is_translated_both_ways() -> None:
    replies: list[dict[str, Any]] = [{"text": "Hi.", "tools": [{"name": "echo"}]}, {"text": "Bye."}]
    with ScriptedModel([scenario(*replies)]) as server:
        first = model(server).complete(request())
        call = next(block for block in first.blocks if isinstance(block, ToolCall))
        thought = Thought(raw={"type": "thinking", "thinking": "hm", "signature": "s"})
        reply = model(server).complete(
            request(
                Message(role="assistant", blocks=(thought, *first.blocks)),
                Message(role="user", blocks=(ToolResult(call_id=call.id, content="ok", is_error=True),)),
            )
        )
        sent = server.requests[-1]
    assert reply.blocks == (Text(text="Bye."),)
    assert reply.stop == "end"
    body = sent["body"]
    assert body["messages"][1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "s"}
    assert body["messages"][2]["content"][0]["is_error"] is True


def test_no_tool_is_forced_and_the_cache_is_marked_at_the_system_and_at_the_end() -> None:
    with ScriptedModel([scenario({"text": "Hi."})]) as server:
        model(server).complete(request())
        sent = server.requests[-1]
    body = sent["body"]
    assert body["model"] == "claude-sonnet-5-5"
    assert {"tool_choice", "temperature"}.isdisjoint(body)
    assert body["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert body["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}


def test_an_overloaded_server_is_asked_again() -> None:
    fault = {"status": 529, "retry_after": 0, "times": 2}
    with ScriptedModel([scenario({"text": "Hi.", "fault": fault})]) as server:
        assert model(server).complete(request()).blocks == (Text(text="Hi."),)


def test_a_refused_request_is_told_in_words() -> None:
    fault = {"status": 400, "times": 9}
    with ScriptedModel([scenario({"text": "Hi.", "fault": fault})]) as server, pytest.raises(RunError) as caught:
        model(server).complete(request())
    assert caught.value.type == "model_request_error"
    assert "refused the request (400)" in caught.value.message


def test_a_server_that_is_away_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox_task.model.anthropic._RETRIES", 0)
    with pytest.raises(RunError, match="could not be reached") as caught:
        AnthropicModel("sonnet", api_key="k", base_url="http://127.0.0.1:9").complete(request())
    assert caught.value.retryable


def test_a_missing_key_is_told_in_words() -> None:
    with pytest.raises(RunError, match="No model key is configured"):
        AnthropicModel("sonnet", api_key="", base_url=None).complete(request())


def test_aliases_stand_for_the_current_models_and_other_names_are_passed_on() -> None:
    assert [full_name(name) for name in ("opus", "sonnet", "haiku", "mistral-large")] == [
        "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "mistral-large",
    ]  # fmt: skip


def test_a_turn_is_priced_by_kind_of_token() -> None:
    usage = TurnUsage(input_tokens=1000, output_tokens=1000, cache_read_tokens=10_000, cache_write_tokens=1000)
    assert cost_usd("claude-sonnet-5-5", usage) == pytest.approx(0.002 + 0.01 + 0.001 + 0.0025)
    assert cost_usd("unknown", usage) == 0


def test_a_long_prompt_is_priced_as_one() -> None:
    short, long = TurnUsage(input_tokens=100_000), TurnUsage(input_tokens=100_001)
    assert cost_usd("claude-haiku-5-5", short) == pytest.approx(0.01)
    assert cost_usd("claude-haiku-5-5", long) == pytest.approx(0.0500005)


class Failing:
    name = "x"
    context_tokens = 200_000

    def complete(self, request: Request) -> Any:
        raise RunError("model_request_error", "no")


def test_an_interruptible_call_raises_what_the_model_raises() -> None:
    with pytest.raises(RunError, match="no"):
        InterruptibleModel(Failing(), Stop()).complete(request())


def test_an_interruptible_call_is_not_begun_when_the_run_has_to_stop() -> None:
    stop = Stop()
    stop.request("timed_out")
    with pytest.raises(Stopped):
        InterruptibleModel(Failing(), stop).complete(request())
