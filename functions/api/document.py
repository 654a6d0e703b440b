"""The OpenAPI document, made from the routes. Only what no route can say of itself is added here: the errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from sandpiper.models.responses import ErrorAnswer, RunAnswer

if TYPE_CHECKING:
    from api.resolver import Api

OPEN_PATHS = frozenset({"/health"})
_DESCRIPTIONS = {
    400: "The request can't be read",
    401: "No token, or one that is not valid",
    403: "The token does not allow this",
    404: "No such thing, or not yours",
    409: "Not possible in the present state",
    422: "A field is wrong; `details` names it",
    429: "A quota is used up; `details` and `Retry-After` say which and until when",
    500: "Our fault",
    502: "GitHub failed",
    503: "A service did not answer; try again",
}
# Operations with more than one good answer; a signature can't say which status goes with which body.
_ANSWERS = {
    "execute": {
        "200": ("The run, which ended while the request waited", "RunAnswer"),
        "202": ("The run was started", "StartedAnswer"),
    },
    "cancelRun": {
        "200": ("The run, which had been cancelled before", "RunAnswer"),
        "202": ("The run will be cancelled", "RunAnswer"),
    },
}
_MAY_CONFLICT = frozenset(
    {*_ANSWERS, "commitFiles", "raiseBudget", "sendMessage", "resumeRun", "answerApproval", "pauseRun"}
)
_ON_GITHUB = frozenset({"commitFiles"})
_MAY_BE_TOO_MUCH = frozenset({"execute", "raiseBudget", "createTicket"})
_OF_POWERTOOLS = ("HTTPValidationError", "ValidationError", "ResponseValidationError")


def openapi_document(app: Api, version: str) -> dict[str, Any]:
    document: dict[str, Any] = app.get_openapi_schema(
        title="Sandpiper",
        version=version,
        description="AI coding tasks on GitHub repositories, in isolated sandboxes.",
    ).model_dump(by_alias=True, exclude_none=True, mode="json")
    for path, operations in document["paths"].items():
        for operation in operations.values():
            _complete(path, operation)
    _complete_components(document["components"])
    document["security"] = [{"bearer": []}]
    document.pop("servers", None)
    return document


def _complete(path: str, operation: dict[str, Any]) -> None:
    good = {code: answer for code, answer in operation["responses"].items() if code.startswith("2")}
    good |= {code: _json_answer(*answer) for code, answer in _ANSWERS.get(operation["operationId"], {}).items()}
    for parameter in operation.get("parameters", []):
        _leave_out_null(parameter["schema"])
    if path in OPEN_PATHS:
        operation["security"] = []
    errors = {str(code): _json_answer(_DESCRIPTIONS[code], "ErrorAnswer") for code in _errors(path, operation)}
    operation["responses"] = dict(sorted({**good, **errors}.items()))


def _errors(path: str, operation: dict[str, Any]) -> list[int]:
    codes = [500, 503]
    if path not in OPEN_PATHS:
        codes += [401, 403]
    if "{" in path:
        codes += [404]
    if operation.get("requestBody") or operation.get("parameters"):
        codes += [400, 422]
    if operation["operationId"] in _ON_GITHUB:
        codes += [404, 502]
    if operation["operationId"] in _MAY_CONFLICT:
        codes += [409]
    if operation["operationId"] in _MAY_BE_TOO_MUCH:
        codes += [429]
    return codes


def _leave_out_null(schema: dict[str, Any]) -> None:
    """A parameter that is not given is absent; there is no way to write null in a query or a header."""
    given = [choice for choice in schema.pop("anyOf", []) if choice.get("type") != "null"]
    for choice in given:
        schema |= choice


def _json_answer(description: str, model: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{model}"}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _complete_components(components: dict[str, Any]) -> None:
    schemas = components["schemas"]
    for name in _OF_POWERTOOLS:
        schemas.pop(name, None)
    for model in (ErrorAnswer, RunAnswer):
        schema = TypeAdapter(model).json_schema(ref_template="#/components/schemas/{model}", mode="serialization")
        schemas |= {**schema.pop("$defs", {}), model.__name__: schema}
    components["schemas"] = dict(sorted(schemas.items()))
    components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}}
