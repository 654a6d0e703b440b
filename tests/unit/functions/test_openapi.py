"""The description of the API: made from the routes, stored in docs, and true."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema  # type: ignore[import-untyped]  # ships no types
import pytest

from scripts.openapi import DOCUMENT, rendered
from tests.unit.logic.test_requests import SEED_000, SEED_001, SEED_001_WITHOUT_REPO, SEED_002

if TYPE_CHECKING:
    from tests.unit.functions.support import Api


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(rendered())
    return made


def check(document: dict[str, Any], body: Any, schema: dict[str, Any]) -> None:
    jsonschema.validate(body, {**schema, "components": document["components"]})


def answer_schema(document: dict[str, Any], method: str, path: str, status: int) -> dict[str, Any]:
    operation = document["paths"][path][method.lower()]
    schema: dict[str, Any] = operation["responses"][str(status)]["content"]["application/json"]["schema"]
    return schema


def test_docs_hold_what_the_routes_say() -> None:
    assert DOCUMENT.read_text() == rendered(), "run: python scripts/openapi.py"


def test_everything_but_health_needs_a_token(document: dict[str, Any]) -> None:
    assert document["security"] == [{"bearer": []}]
    opened = [
        path for path, operations in document["paths"].items() for op in operations.values() if op.get("security") == []
    ]
    assert opened == ["/health"]


def test_every_error_has_the_one_shape(document: dict[str, Any]) -> None:
    shapes = {
        answer["content"]["application/json"]["schema"]["$ref"]
        for operations in document["paths"].values()
        for operation in operations.values()
        for status, answer in operation["responses"].items()
        if status >= "400"
    }
    assert shapes == {"#/components/schemas/ErrorAnswer"}


def test_no_reference_leads_nowhere(document: dict[str, Any]) -> None:
    text = json.dumps(document)
    names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names <= document["components"]["schemas"].keys()


@pytest.mark.parametrize("body", [SEED_000, SEED_001, SEED_001_WITHOUT_REPO, SEED_002])
def test_the_bodies_of_the_seeds_are_described(document: dict[str, Any], body: dict[str, Any]) -> None:
    check(document, body, {"$ref": "#/components/schemas/ExecuteRequest"})


@pytest.mark.parametrize(
    "body",
    [{}, {"task": ""}, {"task": "x", "nope": 1}, {"task": "x", "repo": "../x"}, [], {"task": "x", "branch": "-x"}],
)
def test_what_the_routes_refuse_the_description_refuses(document: dict[str, Any], api: Api, body: Any) -> None:
    assert api.call("POST", "/execute", body).status == 422
    with pytest.raises(jsonschema.ValidationError):
        check(document, body, {"$ref": "#/components/schemas/ExecuteRequest"})


def test_answers_are_what_the_description_says(document: dict[str, Any], api: Api) -> None:
    started = api.call("POST", "/execute", SEED_002)
    run_id = started.body["run_id"]
    check(document, started.body, answer_schema(document, "POST", "/execute", 202))
    for method, path, status, *body in [
        ("POST", "/runs/{run_id}/budget", 200, {"max_turns": 60}),
        ("POST", "/runs/{run_id}/budget", 409, {}),
        ("POST", "/runs/{run_id}/budget", 422, {"max_turns": 1}),
        ("POST", "/runs/{run_id}/messages", 200, {"text": "Hello"}),
        ("POST", "/runs/{run_id}/messages", 422, {}),
        ("POST", "/runs/{run_id}/resume", 200),
        ("GET", "/usage", 200),
        ("GET", "/runs", 200),
        ("GET", "/runs/{run_id}", 200),
        ("GET", "/runs/{run_id}/events", 200),
        ("GET", "/runs/{run_id}/logs", 404),
        ("POST", "/runs/{run_id}/cancel", 202),
        ("POST", "/tickets", 200),
        ("GET", "/health", 200),
    ]:
        answer = api.call(method, path.format(run_id=run_id), *body)
        assert answer.status == status
        check(document, answer.body, answer_schema(document, method, path, status))
