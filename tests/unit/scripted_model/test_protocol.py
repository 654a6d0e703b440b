from __future__ import annotations

from typing import Any

import pytest

from sandpiper_local.scripted_model.errors import ProtocolError
from sandpiper_local.scripted_model.protocol import check_count, check_create

TOOL = {"name": "look", "input_schema": {"type": "object", "properties": {}}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
MARK = {"cache_control": {"type": "ephemeral"}}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def use(identifier: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": identifier, "name": "look", "input": {}}


def calls(*identifiers: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [use(identifier) for identifier in identifiers]}


def result(identifier: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identifier, "content": "fine"}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def request(**changes: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 10, "messages": [user("hi")], **changes}


@pytest.mark.parametrize(
    "sound",
    [
        request(),
        request(tools=[TOOL], tool_choice={"type": "tool", "name": "look"}),
        request(messages=[user("hi"), calls("a", "b"), user([result("b"), result("a"), text("go on")])]),
        request(messages=[user("hi"), calls("a"), user([result("a")]), user("and this")]),
        request(messages=[user("hi"), calls("a"), user([{"type": "tool_result", "tool_use_id": "a", "content": ""}])]),
        request(system=[text("rules", **MARK)], tools=[TOOL | MARK], messages=[user([text("hi", **MARK)])]),
        request(tools=[{"type": "web_search_20260209", "name": "web_search", "max_uses": 2}]),
    ],
)
def test_a_sound_request_passes(sound: dict[str, Any]) -> None:
    check_create(sound, beta=False)


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (request(messages=[user("hi"), calls("a"), user("no result")]), "without `tool_result`"),
        (request(messages=[user("hi"), calls("a", "b"), user([result("a")])]), "without `tool_result`.*: b"),
        (request(messages=[user([result("a")])]), "unexpected `tool_use_id`"),
        (request(messages=[user("hi"), calls("a"), user([result("a"), result("a")])]), "single result"),
        (request(messages=[user("hi"), calls("a"), user([text("first"), result("a")])]), "must come first"),
        (request(messages=[user("hi"), calls("a", "a"), user([result("a")])]), "must be unique"),
        (request(messages=[user([use("a")])]), "only be in `assistant`"),
        (request(messages=[user("hi"), {"role": "assistant", "content": [result("a")]}]), "only be in `user`"),
        (request(surprise=1), "surprise: Extra inputs"),
        (request(context_management={}), "context_management: Extra inputs"),
        (request(temperature=0.2), "temperature: .*not supported"),
        (request(max_tokens=None), "max_tokens"),
        (request(max_tokens=True), "max_tokens"),
        (request(model=""), "model"),
        (request(messages=[]), "at least one message"),
        (request(messages=[user("")]), "non-whitespace"),
        (request(messages=[user([])]), "must not be empty"),
        (request(messages=[user([text(" \n")])]), "non-whitespace"),
        (request(messages=[user([{"type": "surprise"}])]), "surprise"),
        (request(messages=[user([text("hi", extra=1)])]), "text.extra: Extra inputs"),
        (request(messages=[{"role": "user"}]), "must not be empty"),
        (request(messages=[user("hi") | {"id": 1}]), "messages.0.id: Extra inputs"),
        (request(messages=[{"role": "assistant", "content": "hi"}]), 'first message must use the "user" role'),
        (request(messages=[user("hi"), {"role": "assistant", "content": "I"}]), "end with a user message"),
        (request(messages=[user("hi"), {"role": "assistant", "content": [THOUGHT]}, user("so?")]), "final block"),
        (request(tools=[{"name": "look"}]), "tools.0.input_schema"),
        (request(tools=[{"name": "l o o k", "input_schema": {"type": "object"}}]), "tools.0.name"),
        (request(tools=[TOOL, TOOL]), "unique"),
        (request(tools=[TOOL | {"parameters": {}}]), "tools.0.parameters"),
        (request(tools={"look": TOOL}), "valid list"),
        (request(tools=["look"]), "tools.0"),
        (request(tools=[TOOL], tool_choice={"type": "tool", "name": "jump"}), "'jump' not found"),
        (request(tools=[TOOL], tool_choice="auto"), "tool_choice"),
        (request(tool_choice={"type": "auto"}), "while providing tools"),
        (request(tools=[TOOL], tool_choice={"type": "any"}, thinking={"type": "adaptive"}), "Thinking may not"),
        (request(messages=[user([text("hi", **MARK)] * 5)]), "maximum of 4 .* Found 5"),
        (request(messages=[user([text("hi", cache_control={"type": "for ever"})])]), "ephemeral"),
        (request(system=[{"type": "image", "source": {}}]), "system"),
    ],
)  # fmt: skip
def test_a_request_that_breaks_the_protocol_is_refused_by_name(broken: dict[str, Any], reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        check_create(broken, beta=False)


def test_fields_in_beta_pass_when_the_beta_is_asked_for() -> None:
    check_create(request(context_management={"edits": []}), beta=True)


def test_counting_tokens_takes_no_max_tokens() -> None:
    with pytest.raises(ProtocolError, match="max_tokens: Extra inputs"):
        check_count(request(), beta=False)


def test_what_a_tool_was_called_with_is_not_taken_for_a_breakpoint() -> None:
    call = use("a") | {"input": {"content": [MARK] * 9}}
    messages = [user("hi"), {"role": "assistant", "content": [call]}, user([result("a")])]
    check_create(request(messages=messages), beta=False)
