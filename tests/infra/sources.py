"""The template and the state machine as data, read once."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from samtranslator.yaml_helper import yaml_parse

ROOT = Path(__file__).parents[2]
FUNCTIONS = ROOT / "functions"
CORE = ROOT / "layers/core/python"
SANDBOX_TASK = ROOT / "sandbox-task/src"
DEFINITION = ROOT / "statemachine/run.asl.json"
ROLES = ("api", "authorizer", "websocket", "broadcast", "workflow", "task_stopped", "reconcile", "webhook", "github")


@functools.cache
def template() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml_parse((ROOT / "template.yaml").read_text())
    return parsed


@functools.cache
def states() -> dict[str, dict[str, Any]]:
    parsed: dict[str, dict[str, Any]] = json.loads(DEFINITION.read_text())["States"]
    return parsed


def resources(kind: str) -> dict[str, dict[str, Any]]:
    found = template()["Resources"].items()
    return {name: resource for name, resource in found if resource["Type"] == kind}


def properties(name: str) -> dict[str, Any]:
    found: dict[str, Any] = template()["Resources"][name]["Properties"]
    return found


def function(role: str) -> dict[str, Any]:
    handler = f"{role}.handler.handler"
    functions = resources("AWS::Serverless::Function").values()
    return next(found["Properties"] for found in functions if found["Properties"]["Handler"] == handler)
