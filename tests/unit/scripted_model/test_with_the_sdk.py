"""The real SDK against the real server, on the loopback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anthropic
import pytest

if TYPE_CHECKING:
    from sandpiper_local.scripted_model.runner import ScriptedModel

PLAN_TOOL: Any = {
    "name": "update_plan",
    "description": "Say what you will do.",
    "input_schema": {"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]},
}
LOOK_TOOL: Any = {"name": "list_files", "input_schema": {"type": "object", "properties": {}}}
FINISH_TOOL: Any = {
    "name": "finish",
    "input_schema": {"type": "object", "properties": {"status": {"enum": ["done", "blocked"]}}},
}
GREETING = {
    "name": "greeting",
    "match": {"words": ["hello"]},
    "replies": [
        {"text": "I plan first.", "tools": [{"name": "update_plan", "input": {"summary": "é" * 200}}]},
        {"text": "All done.", "expect": {"contains": ["noted"]}},
    ],
}


def ask(sdk: anthropic.Anthropic, messages: list[Any], **options: Any) -> anthropic.types.Message:
    reply: anthropic.types.Message = sdk.messages.create(
        model="claude-sonnet-5-5", max_tokens=1000, messages=messages, **options
    )
    return reply


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answered(reply: anthropic.types.Message, text: str) -> list[dict[str, Any]]:
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": text}
        for block in reply.content
        if block.type == "tool_use"
    ]
    return [{"role": "assistant", "content": reply.to_dict()["content"]}, {"role": "user", "content": results}]


def test_a_script_is_played_turn_by_turn(sdk: anthropic.Anthropic, model: ScriptedModel) -> None:
    model.add(GREETING)
    messages = [user("Hello there")]
    first = ask(sdk, messages, tools=[PLAN_TOOL])
    second = ask(sdk, [*messages, *answered(first, "noted")], tools=[PLAN_TOOL])
    assert [block.type for block in first.content] == ["text", "tool_use"]
    assert first.stop_reason == "tool_use"
    assert (second.content[0].to_dict()["text"], second.stop_reason) == ("All done.", "end_turn")


def test_a_stream_says_the_same_as_a_single_answer(sdk: anthropic.Anthropic, model: ScriptedModel) -> None:
    model.add(GREETING)
    whole = ask(sdk, [user("hello")])
    with sdk.messages.stream(model="claude-sonnet-5-5", max_tokens=1000, messages=[user("hello")]) as stream:  # type: ignore[list-item]
        kinds = {event.type for event in stream}
        streamed = stream.get_final_message()
    assert {"message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop"} <= kinds
    assert streamed.model_dump(exclude_none=True) == whole.model_dump(exclude_none=True)


def test_runs_at_the_same_time_each_have_their_own_place_in_the_script(
    sdk: anthropic.Anthropic, model: ScriptedModel
) -> None:
    model.add(GREETING)
    one = ask(sdk, [user("hello, I am one")])
    two = ask(sdk, [user("hello, I am two")])
    again = ask(sdk, [user("hello, I am one")])
    assert one.to_dict() == again.to_dict()
    assert one.content[1].to_dict()["id"] != two.content[1].to_dict()["id"]


def test_a_tool_result_that_is_not_as_expected_fails_loudly(sdk: anthropic.Anthropic, model: ScriptedModel) -> None:
    model.add(GREETING)
    first = ask(sdk, [user("hello")])
    with pytest.raises(anthropic.BadRequestError, match=r"'greeting', reply 2: the last tool result lacks \['noted'\]"):
        ask(sdk, [user("hello"), *answered(first, "lost")])


def test_a_conversation_past_the_end_of_its_script_fails_loudly(sdk: anthropic.Anthropic, model: ScriptedModel) -> None:
    model.add({"name": "short", "replies": [{"text": "Only this."}]})
    with pytest.raises(anthropic.BadRequestError, match="'short' has 1 replies"):
        ask(sdk, [user("hi"), {"role": "assistant", "content": "Only this."}, user("more")])


def test_a_script_that_repeats_its_end_never_runs_out(sdk: anthropic.Anthropic, model: ScriptedModel) -> None:
    model.add({"name": "loop", "replies": [{"text": "again"}], "after_end": "repeat"})
    messages = [user("hi"), {"role": "assistant", "content": "again"}, user("more")]
    assert ask(sdk, messages).content[0].to_dict()["text"] == "again"


def test_an_overloaded_model_answers_the_retry(sdk: anthropic.Anthropic, model: ScriptedModel) -> None:
    fault = {"status": 529, "times": 2, "retry_after": 0}
    model.add({"name": "busy", "replies": [{"text": "now", "fault": fault}]})
    reply = ask(sdk.with_options(max_retries=2), [user("hi")])
    assert reply.content[0].to_dict()["text"] == "now"
    assert [request["status"] for request in model.requests] == [529, 529, 200]


def test_a_cut_stream_breaks_in_the_clients_hand(sdk: anthropic.Anthropic, model: ScriptedModel) -> None:
    model.add({"name": "cut", "replies": [{"text": "x" * 500, "fault": {"cut_after_bytes": 700}}]})
    stream = sdk.messages.create(model="m", max_tokens=10, messages=[user("hi")], stream=True)  # type: ignore[list-item]
    with pytest.raises(Exception, match=r"incomplete|closed|peer"):
        list(stream)


@pytest.mark.parametrize("first", [{"type": "tool", "name": "update_plan"}, {"type": "auto"}])
def test_any_task_without_a_script_ends_honestly(sdk: anthropic.Anthropic, first: dict[str, str]) -> None:
    tools = [PLAN_TOOL, LOOK_TOOL, FINISH_TOOL]
    messages: list[Any] = [user("Rewrite everything in Rust")]
    called = []
    for choice in (first, {"type": "auto"}, {"type": "auto"}):
        reply = ask(sdk, messages, tools=tools, tool_choice=choice)
        called.append(reply.content[-1].to_dict())
        messages += answered(reply, "ok")
    assert [call["name"] for call in called] == ["update_plan", "list_files", "finish"]
    assert called[-1]["input"]["status"] == "blocked"  # type: ignore[index]
    assert "scripted model" in json.dumps(called[-1]["input"])


def test_tokens_are_counted_by_length(sdk: anthropic.Anthropic) -> None:
    short = sdk.messages.count_tokens(model="m", messages=[user("hi")])  # type: ignore[list-item]
    long = sdk.messages.count_tokens(model="m", messages=[user("hi" * 400)])  # type: ignore[list-item]
    assert long.input_tokens - short.input_tokens == pytest.approx(200, abs=1)


def test_cached_turns_are_counted_as_read_from_the_cache(sdk: anthropic.Anthropic, model: ScriptedModel) -> None:
    model.add({"name": "loop", "replies": [{"text": "again"}], "after_end": "repeat"})
    system = [{"type": "text", "text": "rules " * 1000, "cache_control": {"type": "ephemeral"}}]
    first = ask(sdk, [user("hi")], system=system).usage
    messages = [user("hi"), {"role": "assistant", "content": "again"}, user("more")]
    second = ask(sdk, messages, system=system).usage
    assert first.cache_read_input_tokens == 0
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens
    assert second.cache_creation_input_tokens == 0
    assert 0 < second.input_tokens < 100


def test_keys_are_not_in_the_record(sdk: anthropic.Anthropic, model: ScriptedModel) -> None:
    ask(sdk, [user("hi")])
    assert "sk-test-secret" not in json.dumps(model.requests)
    assert model.requests[0]["body"]["messages"] == [user("hi")]
