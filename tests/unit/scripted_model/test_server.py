"""The parts of the server that no SDK reaches."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from sandpiper_local.scripted_model.scenario import ScenarioError, load_scenarios

if TYPE_CHECKING:
    from pathlib import Path

    from sandpiper_local.scripted_model.runner import ScriptedModel

HEADERS = {"x-api-key": "sk-test-secret", "anthropic-version": "2023-06-01"}
BODY: dict[str, Any] = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}


def test_a_request_without_a_key_is_refused(model: ScriptedModel) -> None:
    answer = httpx.post(f"{model.url}/v1/messages", json=BODY, headers={"anthropic-version": "2023-06-01"})
    assert (answer.status_code, answer.json()["error"]["type"]) == (401, "authentication_error")


@pytest.mark.parametrize("headers", [{"x-api-key": "k"}, {"authorization": "Bearer k"}])
def test_both_kinds_of_key_are_taken(model: ScriptedModel, headers: dict[str, str]) -> None:
    answer = httpx.post(f"{model.url}/v1/messages", json=BODY, headers={"anthropic-version": "x"} | headers)
    assert answer.status_code == 200


def test_a_body_that_is_no_json_is_refused_in_the_apis_shape_and_recorded(model: ScriptedModel) -> None:
    answer = httpx.post(f"{model.url}/v1/messages", content=b"{", headers=HEADERS)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert model.requests[0]["status"] == 400


def test_the_record_is_read_and_cleared_over_http(model: ScriptedModel) -> None:
    httpx.post(f"{model.url}/v1/messages", json=BODY, headers=HEADERS)
    (entry,) = httpx.get(f"{model.url}/_requests").json()["requests"]
    assert (entry["body"], entry["scenario"], entry["headers"]["x-api-key"]) == (BODY, "fallback", "[redacted]")
    httpx.delete(f"{model.url}/_requests")
    assert httpx.get(f"{model.url}/_requests").json() == {"requests": []}


def test_a_scenario_can_be_added_over_http_and_comes_first(model: ScriptedModel) -> None:
    for name in ("old", "new"):
        added = httpx.post(f"{model.url}/_scenarios", json={"name": name, "replies": [{"text": name}]})
        assert added.status_code == 201
    answer = httpx.post(f"{model.url}/v1/messages", json=BODY, headers=HEADERS)
    assert answer.json()["content"] == [{"type": "text", "text": "new"}]


def test_a_scenario_with_an_unknown_field_is_refused(model: ScriptedModel) -> None:
    answer = httpx.post(f"{model.url}/_scenarios", json={"name": "x", "replies": [{"txet": "hi"}]})
    assert answer.status_code == 400
    assert "txet" in answer.json()["error"]["message"]


def test_only_a_fitting_scenario_is_played(model: ScriptedModel) -> None:
    model.add({"name": "opus", "match": {"model": "claude-opus-*"}, "replies": [{"text": "opus"}]})
    model.add({"name": "not-hi", "match": {"not_words": ["HI"]}, "replies": [{"text": "no"}]})
    for name, scenario in (("claude-opus-5-5", "opus"), ("claude-haiku-5-5", "fallback")):
        httpx.post(f"{model.url}/v1/messages", json=BODY | {"model": name}, headers=HEADERS)
        assert model.requests[-1]["scenario"] == scenario


def test_the_command_says_its_url_serves_files_and_ends_on_sigterm(tmp_path: Path) -> None:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "one.yaml").write_text("name: one\nreplies: [{text: from a file}]\n")
    command = [sys.executable, "-m", "sandpiper_local.scripted_model", "--port", "0"]
    command += ["--scenario", str(tmp_path / "scenarios"), "--record", str(tmp_path / "record")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        answer = httpx.post(f"{url}/v1/messages", json=BODY, headers=HEADERS)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
    assert answer.json()["content"][0]["text"] == "from a file"
    assert json.loads((tmp_path / "record" / "00001.json").read_text())["scenario"] == "one"


def test_a_file_that_is_no_scenario_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("name: x\nreplies: []\n")
    with pytest.raises(ScenarioError, match=r"bad\.yaml is not a scenario"):
        load_scenarios([tmp_path])
