"""A host that commands can't reach: a person is asked for it, and their word opens it, within the operator's bound."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from sandpiper.models.spec import RunSpec
from tests.unit.sandbox.world import RUN_ID, World, done, plan, run

if TYPE_CHECKING:
    from pathlib import Path

ASK = [("request_network", {"host": "api.example", "reason": "the fixtures are there"})]
REACH = run("curl -sS --max-time 5 https://api.example 2>&1")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(socket, "getaddrinfo", _no_such_name)
    return World(tmp_path)


def _no_such_name(*_: object, **__: object) -> None:
    raise OSError("unknown")


def perform(world: World, turns: list[Any], **options: Any) -> None:
    world.perform(RunSpec(task="t", commit=False, **options), turns)


def reasons(world: World) -> list[str]:
    return [warning["reason"] for warning in world.told("warning") if warning.get("host") == "api.example"]


def approve(world: World) -> None:
    asked = world.told("approval_requested")[-1]
    data = {"approval_id": asked["approval_id"], "decision": "approve", "scope": "call", "kind": asked["kind"]}
    world.runs.put_control(RUN_ID, {"action": "approve", "by": "user", "data": data})


def test_a_person_is_asked_and_the_host_is_reached_when_they_have_agreed(world: World) -> None:
    perform(world, [plan(), REACH, ASK])
    assert world.result.suspend_reason == "awaiting_approval"
    assert world.told("approval_requested")[0]["host"] == "api.example"
    approve(world)
    world.go_on([REACH, done()])
    assert reasons(world)[-1] == "its name is not known"  # it was looked up, which is more than a refusal


def test_nobody_is_asked_about_what_the_operator_forbids(world: World) -> None:
    world.egress_allowed = ("other.example",)
    perform(world, [plan(), ASK, REACH, done()])
    assert world.told("approval_requested") == []
    assert "the operator does not allow" in world.told("tool_failed")[0]["error"]
    assert len(reasons(world)) == 1


def test_nobody_is_asked_about_what_the_request_has_named(world: World) -> None:
    perform(world, [plan(), ASK, REACH, done()], egress=("*.example",))
    assert world.told("approval_requested") == []
    assert reasons(world) == ["its name is not known"]


@pytest.mark.parametrize("host", ["169.254.169.254", "*", "*.example", "a b", "https://api.example"])
def test_what_is_no_host_is_refused_without_a_question(world: World, host: str) -> None:
    perform(world, [plan(), [("request_network", {"host": host, "reason": "r"})], done()])
    assert world.told("approval_requested") == []
    assert "Wrong arguments" in world.told("tool_failed")[0]["error"]


def test_a_run_that_asks_nobody_opens_nothing(world: World) -> None:
    perform(world, [plan(), ASK, REACH, done()], trust_level="trusted")
    assert "There is no tool 'request_network'" in world.told("tool_failed")[0]["error"]
    assert "not among what this run may reach" in reasons(world)[0]
