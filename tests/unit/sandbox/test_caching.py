"""Where the cache is marked, and that a conversation is then read from it, turn by turn."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from sandbox_task.model.caching import marked
from sandbox_task.model.factory import model_for
from sandbox_task.model.port import Message, Text, ToolSpec
from sandpiper_local.scripted_model.runner import ScriptedModel
from tests.unit.sandbox.models import FIRST, TOOL, answered, model_on, request, scenario, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox_task.model.port import Reply

SYSTEM = "Rules. " * 1000
SAID = Message(role="assistant", blocks=(Text(text="Hi."),))


@pytest.fixture
def server() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.mark.parametrize(
    ("messages", "places"),
    [
        ([FIRST], {0}),
        ([FIRST, SAID, FIRST], {0, 2}),
        ([FIRST, SAID, FIRST, SAID, FIRST], {0, 2, 4}),
        ([FIRST, SAID, FIRST, SAID, FIRST, SAID, FIRST], {0, 4, 6}),
    ],
)
def test_the_first_and_the_last_two_questions_are_marked(messages: list[Message], places: set[int]) -> None:
    assert marked(messages) == places


def marks(body: dict[str, Any]) -> list[tuple[int, int]]:
    return [
        (place, index)
        for place, message in enumerate(body["messages"])
        for index, block in enumerate(message["content"])
        if "cache_control" in block
    ]


def played(server: ScriptedModel, turns: int, calls: int) -> list[Reply]:
    """So many turns with so many calls each; every result is a new piece of text."""
    turn = {"text": "I look.", "tools": [{"name": "echo"}] * calls, "repeat": turns}
    server.add(scenario(turn))
    model, messages, replies = model_on("api", server.url), (), []
    for number in range(turns):
        reply = model.complete(request(*messages, system=SYSTEM))
        messages = (*messages, *answered(reply, f"result {number} " * 50))
        replies.append(reply)
    return replies


def test_the_system_prompt_and_three_questions_carry_the_marks(server: ScriptedModel) -> None:
    played(server, 4, 2)
    body = server.requests[-1]["body"]
    assert body["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert marks(body) == [(0, 0), (4, 1), (6, 1)]


@pytest.mark.parametrize("calls", [1, 9, 30])
def test_every_turn_reads_all_that_was_there_before_it(server: ScriptedModel, calls: int) -> None:
    usages = [reply.usage for reply in played(server, 6, calls)]
    for before, after in pairwise(usages):
        assert after.cache_read_tokens == before.cache_read_tokens + before.cache_write_tokens
    assert all(usage.input_tokens == 0 for usage in usages)


def test_with_a_mark_at_the_end_only_a_long_turn_is_not_found(
    server: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the second moving mark is for: the server looks back 20 blocks, not further."""
    monkeypatch.setattr("sandbox_task.model.anthropic_wire.marked", lambda messages: {len(messages) - 1})
    second = played(server, 2, 30)[1].usage
    assert second.cache_write_tokens > second.cache_read_tokens


def test_a_conversation_that_is_made_shorter_still_reads_its_beginning(server: ScriptedModel) -> None:
    server.add(scenario({"tools": [{"name": "echo"}]}, {"text": "Bye."}))
    model = model_on("api", server.url)
    first = model.complete(request(system=SYSTEM))
    shorter = request(SAID, Message(role="user", blocks=(Text(text="In short: all is well."),)), system=SYSTEM)
    assert model.complete(shorter).usage.cache_read_tokens == first.usage.cache_write_tokens


def test_on_converse_only_models_that_cache_get_cache_points(
    server: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    server.add(scenario({"text": "Hi."}))
    points = {}
    for name in ("eu.amazon.nova-pro-v1:0", "mistral-large"):
        model_for(name, settings(server.url)).complete(request(system=SYSTEM))
        points[name] = str(server.requests[-1]["body"]).count("cachePoint")
    assert points == {"eu.amazon.nova-pro-v1:0": 2, "mistral-large": 0}


def test_the_marks_never_exceed_what_the_api_takes(server: ScriptedModel) -> None:
    server.add(scenario({"text": "Hi.", "repeat": 10}))
    tools = [ToolSpec(name=f"tool{n}", description="d", parameters=TOOL.parameters) for n in range(9)]
    model_on("api", server.url).complete(request(*[SAID, FIRST] * 9, tools=tools))
    assert str(server.requests[-1]["body"]).count("cache_control") == 4
