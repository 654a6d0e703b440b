"""What every adapter of the model port does, on its own wire: one suite, real servers, real SDKs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import pytest
from pydantic import SecretStr

from sandbox_task.model.factory import model_for
from sandbox_task.model.port import MALFORMED, Message, Reply, Text, Thought, ToolCall, ToolResult, TryFailed
from sandpiper_local.scripted_model.runner import ScriptedModel
from tests.unit.sandbox.models import FIRST, NAMES, answered, model_on, request, scenario, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox_task.model.port import Model


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(params=list(NAMES))
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def running() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture
def server(running: ScriptedModel) -> ScriptedModel:
    """It has forgotten what it was asked before, and what is added is played first."""
    with urlopen(Request(f"{running.url}/_requests", method="DELETE")):  # noqa: S310 - our own
        return running


@pytest.fixture(scope="module")
def models() -> dict[str, Model]:
    """By wire. They keep nothing of a call, and making the SDKs' clients takes longer than most tests."""
    return {}


@pytest.fixture
def model(wire: str, server: ScriptedModel, models: dict[str, Model]) -> Model:
    if wire not in models:
        models[wire] = model_on(wire, server.url)
    return models[wire]


def says(server: ScriptedModel, *replies: dict[str, Any]) -> None:
    server.add(scenario(*replies))


def calls_of(reply: Reply) -> list[ToolCall]:
    return [block for block in reply.blocks if isinstance(block, ToolCall)]


def failure(model: Model) -> TryFailed:
    with pytest.raises(TryFailed) as caught:
        model.complete(request())
    return caught.value


def test_words_come_back_as_text(model: Model, server: ScriptedModel) -> None:
    says(server, {"text": "Hello, wörld. " * 30})
    reply = model.complete(request())
    assert (reply.blocks, reply.stop) == ((Text(text="Hello, wörld. " * 30),), "end")
    assert reply.model == model.name


def test_what_is_said_is_heard_piece_by_piece_before_the_reply_is_there(model: Model, server: ScriptedModel) -> None:
    says(server, {"thinking": "Hm, " * 40, "text": "Hello, wörld. " * 30, "tools": [{"name": "echo"}]})
    heard: list[tuple[str, str]] = []
    model.complete(request(), lambda voice, piece: heard.append((voice, piece)))
    pieces = {voice: [piece for said, piece in heard if said == voice] for voice in ("thinking", "text")}
    assert {voice: "".join(found) for voice, found in pieces.items()} == {
        "thinking": "Hm, " * 40,
        "text": "Hello, wörld. " * 30,
    }
    assert min(len(found) for found in pieces.values()) > 1
    assert [voice for voice, _ in heard] == sorted((voice for voice, _ in heard), reverse=True)


def test_each_wire_is_the_one_that_its_name_asks_for(wire: str, model: Model, server: ScriptedModel) -> None:
    says(server, {"text": "Hello."})
    model.complete(request())
    path = {
        "api": "/v1/messages",
        "bedrock": "/model/us.anthropic.claude-sonnet-5-5/invoke-with-response-stream",
        "converse": "/model/mistral.mistral-large-3-675b-instruct/converse-stream",
    }[wire]
    assert [sent["path"] for sent in server.requests] == [path]


def test_a_tool_call_comes_back_with_its_arguments(model: Model, server: ScriptedModel) -> None:
    says(server, {"text": "I look.", "tools": [{"name": "echo", "input": {"a": [1, "ü"]}}]})
    reply = model.complete(request())
    (call,) = calls_of(reply)
    assert (call.name, call.arguments, reply.stop) == ("echo", {"a": [1, "ü"]}, "tool_calls")
    assert reply.blocks[0] == Text(text="I look.")


def test_several_calls_keep_their_order_and_are_told_apart(model: Model, server: ScriptedModel) -> None:
    says(server, {"tools": [{"name": "echo", "input": {"n": n}} for n in range(3)]})
    calls = calls_of(model.complete(request()))
    assert [call.arguments for call in calls] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert len({call.id for call in calls}) == 3


def test_a_call_without_arguments_has_none(model: Model, server: ScriptedModel) -> None:
    says(server, {"tools": [{"name": "echo", "raw_input": ""}]})
    (call,) = calls_of(model.complete(request()))
    assert call.arguments == {}


@pytest.mark.parametrize("is_error", [False, True])
def test_results_reach_the_model_as_what_they_are(model: Model, server: ScriptedModel, *, is_error: bool) -> None:
    expected = {"contains": ["it said so"], "is_error": is_error}
    says(server, {"tools": [{"name": "echo"}, {"name": "echo"}]}, {"text": "Bye.", "expect": expected})
    first = model.complete(request())
    reply = model.complete(request(*answered(first, "it said so", is_error=is_error)))
    assert reply.blocks == (Text(text="Bye."),)


def test_thoughts_are_shown_and_go_back_exactly_as_they_were(wire: str, model: Model, server: ScriptedModel) -> None:
    says(server, {"thinking": "Hm, " * 40, "tools": [{"name": "echo"}]}, {"text": "Bye."})
    first = model.complete(request())
    thought = first.blocks[0]
    assert isinstance(thought, Thought)
    assert thought.summary == "Hm, " * 40
    stored = Reply.model_validate_json(first.model_dump_json())
    model.complete(request(*answered(stored)))
    assert sent_thoughts(server) == [thought.raw]
    assert "sig_" in str(thought.raw)


def test_a_hidden_thought_goes_back_as_it_was(wire: str, model: Model, server: ScriptedModel) -> None:
    hidden = {"type": "redacted_thinking", "data": "c2VjcmV0"}
    says(server, {"blocks": [hidden], "text": "I think."}, {"text": "Bye."})
    stored = Reply.model_validate_json(model.complete(request()).model_dump_json())
    model.complete(request(*answered(stored)))
    assert sent_thoughts(server) in ([hidden], [{"reasoningContent": {"redactedContent": "c2VjcmV0"}}])


def sent_thoughts(server: ScriptedModel) -> list[Any]:
    content = server.requests[-1]["body"]["messages"][1]["content"]
    return [block for block in content if "reasoningContent" in block or "thinking" in str(block.get("type"))]


@pytest.mark.parametrize("raw", [{"type": "thinking", "thinking": "h", "signature": "s"}, {"reasoningContent": {}}])
def test_thoughts_of_another_model_are_kept_back(model: Model, server: ScriptedModel, raw: dict[str, Any]) -> None:
    says(server, {"text": "Hi."}, {"text": "Bye."})
    said = Message(role="assistant", blocks=(Thought(raw=raw, model="another"), Text(text="Hi.")))
    model.complete(request(said, FIRST))
    assert sent_thoughts(server) == []


@pytest.mark.parametrize(
    ("said", "stop"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("max_tokens", "cut_off"),
        ("refusal", "refused"),
        ("model_context_window_exceeded", "too_long"),
    ],
)
def test_the_reason_to_stop_is_told_in_our_words(model: Model, server: ScriptedModel, said: str, stop: str) -> None:
    says(server, {"text": "Hi.", "stop_reason": said})
    assert model.complete(request()).stop == stop


def test_every_kind_of_token_is_counted_and_priced(wire: str, server: ScriptedModel) -> None:
    usage = {
        "input_tokens": 1,
        "output_tokens": 20,
        "cache_read_input_tokens": 300,
        "cache_creation_input_tokens": 4000,
    }
    says(server, {"text": "Hi.", "usage": usage})
    prices = '{"%s": {"input": 1, "output": 10, "cache_read": 100, "cache_write": 1000}}'
    name = model_on(wire, server.url).name
    got = model_on(wire, server.url, model_prices=prices % name).complete(request()).usage
    assert (got.input_tokens, got.output_tokens, got.cache_read_tokens, got.cache_write_tokens) == (1, 20, 300, 4000)
    assert got.cost_usd == pytest.approx((1 + 200 + 30_000 + 4_000_000) / 1e6)


def test_no_sampling_settings_and_no_tool_choice_are_sent(model: Model, server: ScriptedModel) -> None:
    says(server, {"text": "Hi."})
    model.complete(request())
    sent = str(server.requests[-1]["body"])
    assert not [word for word in ("temperature", "topP", "top_p", "tool_choice", "toolChoice") if word in sent]


def test_a_conversation_without_tools_and_system_prompt_is_sent_without(model: Model, server: ScriptedModel) -> None:
    says(server, {"text": "Hi."})
    assert model.complete(request(tools=(), system="")).blocks == (Text(text="Hi."),)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
def test_what_may_pass_is_told_as_such(model: Model, server: ScriptedModel, status: int) -> None:
    says(server, {"text": "Hi.", "fault": {"status": status, "retry_after": 7}})
    error = failure(model)
    assert (error.type, error.retryable, error.retry_after) == ("model_request_error", True, 7)
    assert f"({status})" in error.message


@pytest.mark.parametrize(
    ("status", "words"),
    [(400, "refused the request"), (401, "refused the key"), (403, "not let us use"), (404, "knows no model")],
)
def test_what_stays_wrong_is_told_in_words(model: Model, server: ScriptedModel, status: int, words: str) -> None:
    says(server, {"text": "Hi.", "fault": {"status": status, "message": "because of it"}})
    error = failure(model)
    assert (error.retryable, words in error.message, "because of it" in error.message) == (False, True, True)


@pytest.mark.parametrize(
    "fault",
    [{"status": 413}, {"status": 400, "message": "prompt is too long: 210000 tokens > 200000 maximum"}],
)
def test_a_prompt_that_is_too_long_is_a_reply_that_says_so(
    model: Model, server: ScriptedModel, fault: dict[str, Any]
) -> None:
    says(server, {"text": "Hi.", "fault": fault})
    reply = model.complete(request())
    assert (reply.stop, reply.blocks) == ("too_long", ())


@pytest.mark.parametrize("fault", [{"cut_after_bytes": 900}, {"end_after_events": 4}, {"garbled": True}])
def test_a_stream_that_breaks_off_is_no_reply(model: Model, server: ScriptedModel, fault: dict[str, Any]) -> None:
    says(server, {"text": "x" * 2000, "fault": fault})
    error = failure(model)
    assert (error.type, error.retryable) == ("model_response_error", True)


@pytest.mark.parametrize(
    ("names", "status"),
    [
        (("overloaded_error", "serviceUnavailableException"), "5"),
        (("rate_limit_error", "throttlingException"), "429"),
    ],
)
def test_an_error_in_mid_stream_is_told_as_what_it_is(
    wire: str, model: Model, server: ScriptedModel, names: tuple[str, str], status: str
) -> None:
    says(server, {"text": "Hi.", "fault": {"stream_error": names[wire != "api"]}})
    error = failure(model)
    assert error.retryable
    assert f"failing ({status}" in error.message


def test_a_server_that_is_away_is_told_in_words(wire: str) -> None:
    error = failure(model_on(wire, "http://127.0.0.1:9"))
    assert "could not be reached" in error.message
    assert error.retryable


@pytest.mark.parametrize("raw", ['{"a": "b', "[1, 2]", '"words"', "null", "oops"])
def test_arguments_that_are_no_object_can_be_answered(model: Model, server: ScriptedModel, raw: str) -> None:
    says(server, {"tools": [{"name": "echo", "raw_input": raw}]}, {"text": "Bye."})
    first = model.complete(request())
    (call,) = calls_of(first)
    assert set(call.arguments) == {MALFORMED}
    assert model.complete(request(*answered(first))).blocks == (Text(text="Bye."),)


@pytest.mark.parametrize("id_", ["", "same", "not an id!", "x" * 100])
def test_calls_without_an_id_of_their_own_can_be_answered(model: Model, server: ScriptedModel, id_: str) -> None:
    call = {"name": "echo", "id": id_}
    says(server, {"tools": [call, call]}, {"tools": [call]}, {"text": "Bye."})
    first = model.complete(request())
    second = model.complete(request(*answered(first)))
    assert len({call.id for reply in (first, second) for call in calls_of(reply)}) == 3
    assert model.complete(request(*answered(first), *answered(second))).blocks == (Text(text="Bye."),)


@pytest.mark.parametrize("name", ["functions.echo", "echo tool", "e" * 100])
def test_a_name_that_no_tool_can_have_can_be_answered(model: Model, server: ScriptedModel, name: str) -> None:
    says(server, {"tools": [{"name": name}]}, {"text": "Bye."})
    first = model.complete(request())
    assert model.complete(request(*answered(first))).blocks == (Text(text="Bye."),)


def test_kinds_of_blocks_that_we_do_not_know_are_passed_over(model: Model, server: ScriptedModel) -> None:
    says(server, {"text": "Hi.", "blocks": [{"type": "hologram", "data": "?"}]}, {"text": "Bye."})
    first = model.complete(request())
    assert first.blocks == (Text(text="Hi."),)
    assert model.complete(request(*answered(first))).blocks == (Text(text="Bye."),)


@pytest.mark.parametrize("reply", [{"empty": True}, {"text": " \n"}])
def test_a_reply_that_says_nothing_can_be_answered(model: Model, server: ScriptedModel, reply: dict[str, Any]) -> None:
    says(server, reply, {"text": "Bye."})
    first = model.complete(request())
    assert first.stop == "end"
    assert model.complete(request(*answered(first))).blocks == (Text(text="Bye."),)


def test_a_reply_that_was_cut_off_in_its_thoughts_can_be_answered(model: Model, server: ScriptedModel) -> None:
    says(server, {"thinking": "Hm.", "stop_reason": "max_tokens"}, {"text": "Bye."})
    first = model.complete(request())
    assert first.stop == "cut_off"
    assert model.complete(request(*answered(first))).blocks == (Text(text="Bye."),)


def test_two_messages_of_one_side_go_out_as_one(model: Model, server: ScriptedModel) -> None:
    says(server, {"text": "Hi."})
    more = Message(role="user", blocks=(Text(text="And more."),))
    assert model.complete(request(more)).blocks == (Text(text="Hi."),)
    assert len(server.requests[-1]["body"]["messages"]) == 1


def test_a_result_that_is_blank_is_taken(model: Model, server: ScriptedModel) -> None:
    says(server, {"tools": [{"name": "echo"}]}, {"text": "Bye."})
    first = model.complete(request())
    assert model.complete(request(*answered(first, " \n"))).blocks == (Text(text="Bye."),)


def test_a_conversation_can_change_the_wire(server: ScriptedModel) -> None:
    """As it does when a fallback model is on another one."""
    says(server, {"thinking": "Hm.", "tools": [{"name": "echo"}]}, {"text": "Bye."})
    for begins in NAMES:
        first = model_on(begins, server.url).complete(request())
        for goes_on in NAMES:
            assert model_on(goes_on, server.url).complete(request(*answered(first))).blocks == (Text(text="Bye."),)


def test_the_other_way_of_a_result_is_refused_by_the_server(model: Model, server: ScriptedModel) -> None:
    """The server is as strict as the real ones on each wire."""
    says(server, {"tools": [{"name": "echo"}]}, {"text": "Bye."})
    first = model.complete(request())
    stranger = Message(role="user", blocks=(ToolResult(call_id="stranger", content="x"),))
    with pytest.raises(TryFailed, match=r"refused the request \(400\)"):
        model.complete(request(Message(role="assistant", blocks=first.blocks), stranger))


def test_the_output_is_asked_for_within_what_the_model_can_write(
    wire: str, model: Model, server: ScriptedModel
) -> None:
    says(server, {"text": "Hi."})
    model.complete(request().model_copy(update={"max_tokens": 200_000}))
    body = server.requests[-1]["body"]
    assert body.get("max_tokens", body.get("inferenceConfig", {}).get("maxTokens")) in {128_000, 8_192}


def test_a_missing_region_is_told_in_words() -> None:
    with pytest.raises(TryFailed, match="Bedrock needs a region"):
        model_on("bedrock", "http://127.0.0.1:9", aws_region="")


def test_a_missing_key_is_told_in_words() -> None:
    keyless = settings().model_copy(update={"anthropic_api_key": SecretStr("")})
    with pytest.raises(TryFailed, match="No model key is configured"):
        model_for("sonnet", keyless).complete(request())
