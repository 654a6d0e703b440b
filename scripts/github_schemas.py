"""Writes what the fake GitHub is held to, out of GitHub's own descriptions.

`python scripts/github_schemas.py NODE_MODULES`, a directory in which npm has installed `@octokit/openapi` and
`@octokit/webhooks-schemas` (both MIT).
Only the answers and events in use are taken, without prose, so that the tests need neither npm nor 13 MB.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from sandpiper_local.fake_github.server import served_routes

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "tests" / "unit" / "fake_github" / "schemas.json"
EVENTS = {
    "check_suite": ("completed", "requested"),
    "installation": ("created", "deleted", "suspend", "unsuspend"),
    "installation_repositories": ("added", "removed"),
    "issue_comment": ("created", "edited", "deleted"),
    "issues": ("opened", "labeled", "assigned", "closed"),
    "ping": (),
    "pull_request": ("opened", "closed", "synchronize"),
    "pull_request_review": ("submitted",),
    "pull_request_review_comment": ("created",),
    "push": (),
}
# Here the description asks of an account to be a user and an enterprise at once.
_MISTAKEN = {"GET /app/installations": {"type": "array", "items": {"$ref": "#/components/schemas/installation"}}}
_PROSE = frozenset({"description", "example", "examples", "title", "deprecated", "x-github-breaking-changes"})


def main(modules: Path) -> None:
    document = _read(modules / "openapi" / "generated" / "api.github.com.json")
    webhooks = _read(modules / "webhooks-schemas" / "schema.json")
    answers = {f"{method} {path}": _answers(document, method, path) for method, path in served_routes()}
    answers |= {operation: {"200": schema} for operation, schema in _MISTAKEN.items()}
    events = {name: f"{name.replace('.', '$')}" for name in _event_names()}
    components: dict[str, Any] = {}
    _collect(answers, document["components"], components)
    definitions: dict[str, Any] = {}
    _collect([{"$ref": f"#/definitions/{name}"} for name in events.values()], webhooks["definitions"], definitions)
    versions = [_read(modules / package / "package.json") for package in ("openapi", "webhooks-schemas")]
    schemas = {
        "source": [f"{package['name']} {package['version']} ({package['license']})" for package in versions],
        "answers": answers,
        "events": {name: {"$ref": f"#/definitions/{key}"} for name, key in events.items()},
        "components": components,
        "definitions": definitions,
    }
    TARGET.write_text(json.dumps(schemas, separators=(",", ":"), sort_keys=True) + "\n")
    print(f"wrote {TARGET.relative_to(ROOT)}: {len(answers)} operations, {len(events)} events")


def _event_names() -> list[str]:
    return [f"{event}.{action}" for event, actions in EVENTS.items() for action in actions] + [
        f"{event}.event" for event, actions in EVENTS.items() if not actions
    ]


def _answers(document: dict[str, Any], method: str, path: str) -> dict[str, Any]:
    """Schema by status; None for an answer without a JSON body."""
    operation = document["paths"][path][method.lower()]
    found = {}
    for status, response in operation["responses"].items():
        whole = _resolved(document, response)
        if status.startswith("2") or status == "302":
            content = whole.get("content", {}).get("application/json")
            found[status] = _plain(content["schema"]) if content else None
    return found


def _resolved(document: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    while reference := node.get("$ref"):
        _, _, kind, name = reference.split("/")
        node = document["components"][kind][name]
    return node


def _collect(node: Any, source: dict[str, Any], found: dict[str, Any]) -> None:
    """Everything that a schema refers to, all the way down, kept under the same name."""
    if isinstance(node, list):
        for item in node:
            _collect(item, source, found)
    elif isinstance(node, dict):
        if isinstance(reference := node.get("$ref"), str):
            keys = reference.split("/")[2:] if reference.startswith("#/components") else reference.split("/")[-1:]
            _take(keys, source, found)
        for item in node.values():
            _collect(item, source, found)


def _take(keys: list[str], source: dict[str, Any], found: dict[str, Any]) -> None:
    place, origin = found, source
    for key in keys[:-1]:
        place, origin = place.setdefault(key, {}), origin[key]
    if keys[-1] not in place:
        place[keys[-1]] = _plain(origin[keys[-1]])
        _collect(place[keys[-1]], source, found)


def _plain(node: Any) -> Any:
    """Plain JSON Schema: OpenAPI's `nullable` said in its words, no prose, and room for fields that are new."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    plain = {key: _plain(value) for key, value in node.items() if key not in _PROSE or _is_schema(value)}
    if plain.get("additionalProperties") is False:
        plain.pop("additionalProperties")
    if "oneOf" in plain:  # without closed objects several may match
        plain["anyOf"] = plain.pop("oneOf")
    if plain.pop("nullable", False) is True:
        return {"anyOf": [plain, {"type": "null"}]}
    return plain


def _is_schema(value: Any) -> bool:
    """A field may be called `title` or `description`, too."""
    return isinstance(value, dict) and not value.keys().isdisjoint({"type", "$ref", "anyOf", "oneOf", "allOf"})


def _read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) / "@octokit")
