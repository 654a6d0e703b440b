"""Bedrock's wires, read by botocore itself; the rules that a client can break."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from botocore.config import Config
from botocore.eventstream import ChecksumMismatch, EventStreamBuffer
from botocore.exceptions import ClientError, EventStreamError
from botocore.session import get_session

from sandpiper_local.scripted_model import event_stream
from sandpiper_local.scripted_model.converse_protocol import check
from sandpiper_local.scripted_model.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandpiper_local.scripted_model.runner import ScriptedModel

MODEL = "mistral.mistral-large-3-675b-instruct"
HI: dict[str, Any] = {"role": "user", "content": [{"text": "hi"}]}
SAID: dict[str, Any] = {"role": "assistant", "content": [{"text": "hello"}]}
TOOLS: dict[str, Any] = {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}}]}
USE: dict[str, Any] = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": "look", "input": {}}}]}
RESULT: dict[str, Any] = {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{"text": "ok"}]}}]}


@pytest.fixture
def client(model: ScriptedModel) -> Iterator[Any]:
    session = get_session()
    session.set_credentials("AKIDEXAMPLE", "secret")
    config = Config(retries={"total_max_attempts": 1})
    made = session.create_client("bedrock-runtime", region_name="eu-west-1", endpoint_url=model.url, config=config)
    with closing(made) as client:
        yield client


def test_a_frame_is_what_botocore_takes_for_one() -> None:
    buffer = EventStreamBuffer()
    buffer.add_data(event_stream.event("chunk", {"ü": 1}))
    (message,) = list(buffer)
    assert message.headers == {
        ":event-type": "chunk", ":content-type": "application/json", ":message-type": "event",
    }  # fmt: skip
    assert message.payload == b'{"\\u00fc": 1}'


def test_a_frame_that_was_tampered_with_is_seen() -> None:
    buffer = EventStreamBuffer()
    buffer.add_data(event_stream.event("chunk", {})[:-1] + b"\0")
    with pytest.raises(ChecksumMismatch):
        list(buffer)


def test_converse_streams_a_scripted_reply(client: Any, model: ScriptedModel) -> None:
    tools = [{"name": "look", "input": {"path": "x"}}]
    model.add({"name": "s", "replies": [{"thinking": "Hm.", "text": "I look.", "tools": tools}]})
    events = list(client.converse_stream(modelId=MODEL, messages=[HI], toolConfig=TOOLS)["stream"])
    kinds = [next(iter(event)) for event in events]
    assert kinds[0] == "messageStart"
    assert kinds[-2:] == ["messageStop", "metadata"]
    assert events[-2]["messageStop"]["stopReason"] == "tool_use"
    assert set(events[-1]["metadata"]["usage"]) >= {"inputTokens", "outputTokens", "totalTokens"}
    assert [event for event in events if "contentBlockStart" in event] != []


def test_an_arn_is_a_model_too(client: Any, model: ScriptedModel) -> None:
    model.add({"name": "s", "match": {"model": "arn:*/prof"}, "replies": [{"text": "hi"}]})
    arn = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/prof"
    assert list(client.converse_stream(modelId=arn, messages=[HI])["stream"])


def test_a_fault_has_the_name_that_aws_gives_it(client: Any, model: ScriptedModel) -> None:
    model.add({"name": "s", "replies": [{"text": "hi", "fault": {"status": 429}}]})
    with pytest.raises(ClientError) as caught:
        client.converse_stream(modelId=MODEL, messages=[HI])
    assert caught.value.response["Error"]["Code"] == "ThrottlingException"


def test_a_fault_in_mid_stream_is_an_exception_of_the_stream(client: Any, model: ScriptedModel) -> None:
    model.add({"name": "s", "replies": [{"text": "hi", "fault": {"stream_error": "modelStreamErrorException"}}]})
    with (
        closing(client.converse_stream(modelId=MODEL, messages=[HI])["stream"]) as events,
        pytest.raises(EventStreamError, match="modelStreamErrorException"),
    ):
        list(events)


@pytest.mark.parametrize("path", ["converse-stream", "invoke-with-response-stream"])
@pytest.mark.parametrize("signature", ["", "Bearer x", "AWS4-HMAC-SHA256 Credential=a/eu-west-1/s3/aws4_request"])
def test_a_request_that_is_not_signed_for_bedrock_is_refused(model: ScriptedModel, path: str, signature: str) -> None:
    answer = httpx.post(f"{model.url}/model/m/{path}", json={"messages": [HI]}, headers={"authorization": signature})
    assert (answer.status_code, answer.headers["x-amzn-errortype"]) == (403, "AccessDeniedException")


@pytest.mark.parametrize("body", [{}, {"anthropic_version": "2026-10-21"}, {"model": "m"}, {"stream": True}])
def test_invoke_takes_its_version_and_no_model_and_no_stream(model: ScriptedModel, body: dict[str, Any]) -> None:
    signed = {"authorization": "AWS4-HMAC-SHA256 Credential=a/20260101/eu-west-1/bedrock/aws4_request"}
    base = {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    version = {"anthropic_version": "bedrock-2023-05-31"} if body else {}
    answer = httpx.post(f"{model.url}/model/m/invoke-with-response-stream", json=base | version | body, headers=signed)
    assert answer.status_code == 400


def test_a_conversation_with_tools_and_thoughts_is_in_order() -> None:
    thought = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}
    use = USE | {"content": [thought, *USE["content"]]}
    check({"messages": [HI, use, RESULT, SAID, HI], "toolConfig": TOOLS, "system": [{"text": "rules"}]})


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"messages": []}, "at least one message"),
        ({"messages": [SAID, HI]}, "start and end with a user message"),
        ({"messages": [HI, SAID]}, "start and end with a user message"),
        ({"messages": [HI, HI]}, "alternate"),
        ({"messages": [HI | {"content": []}]}, "must not be empty"),
        ({"messages": [HI | {"content": [{"text": " "}]}]}, "must not be blank"),
        ({"messages": [HI | {"content": [{"text": "a", "toolUse": {}}]}]}, "not one kind of block"),
        ({"messages": [HI | {"role": "system"}]}, "role"),
        ({"messages": [HI, USE, HI], "toolConfig": TOOLS}, "answer exactly"),
        ({"messages": [HI, SAID, RESULT], "toolConfig": TOOLS}, "answer exactly"),
        ({"messages": [HI, USE, RESULT, USE, RESULT], "toolConfig": TOOLS}, "unique"),
        ({"messages": [HI, USE, RESULT]}, "toolConfig field must be defined"),
        ({"messages": [HI], "toolConfig": {"tools": []}}, "at least one tool"),
        ({"messages": [HI], "system": "rules"}, "must be a list"),
        ({"messages": [HI], "system": [{"text": ""}]}, "must not be blank"),
        ({"messages": [HI], "inferenceConfig": {"temperature": 1}}, "sampling"),
        ({"messages": [HI], "tools": []}, "unknown field"),
        ({"messages": [HI | {"content": [{"text": "a"}, *[{"cachePoint": {"type": "default"}}] * 5]}]}, "cache points"),
    ],
)
def test_a_rule_that_is_broken_is_named(body: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ProtocolError, match=complaint):
        check(body)


@pytest.mark.parametrize(
    "use",
    [{"toolUseId": "", "name": "look", "input": {}}, {"toolUseId": "a", "name": "lo.ok", "input": {}},
     {"toolUseId": "a", "name": "look", "input": []}],
)  # fmt: skip
def test_a_tool_use_that_is_out_of_shape_is_refused(use: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError, match="toolUse"):
        check({"messages": [HI, USE | {"content": [{"toolUse": use}]}, RESULT], "toolConfig": TOOLS})


def test_a_tool_whose_name_is_too_long_is_refused() -> None:
    tools = {"tools": [{"toolSpec": {"name": "x" * 65, "inputSchema": {"json": {"type": "object"}}}}]}
    with pytest.raises(ProtocolError, match="name"):
        check({"messages": [HI], "toolConfig": tools})
