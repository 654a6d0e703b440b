"""As much of GraphQL as is asked of GitHub here: fields, arguments, variables, aliases, fragments."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOKEN = re.compile(r'#[^\n]*|[\s,]+|(\.\.\.|[{}()\[\]:!=$@]|"(?:\\.|[^"\\])*"|-?\d+|[A-Za-z_]\w*)')
_WORDS = {"true": True, "false": False, "null": None}


class QueryError(Exception):
    """Told in `errors`, with status 200, as GraphQL does."""


@dataclass
class Variable:
    name: str


@dataclass
class Field:
    name: str
    alias: str
    arguments: dict[str, Any]
    selection: list[Field | Spread] = field(default_factory=list)


@dataclass
class Spread:
    """`... on Type {…}` or `...Name`"""

    type: str | None
    selection: list[Field | Spread] = field(default_factory=list)
    fragment: str | None = None


@dataclass
class Document:
    operation: str
    selection: list[Field | Spread]
    fragments: dict[str, list[Field | Spread]]


def parse(text: str) -> Document:
    tokens = _tokens(text)
    return _Parser(tokens).document()


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise QueryError(f"Unexpected character {text[at]!r}")
        if found[1]:
            tokens.append(found[1])
        at = found.end()
    return tokens


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens, self._at = tokens, 0

    def document(self) -> Document:
        operation, selection = "query", None
        fragments: dict[str, list[Field | Spread]] = {}
        while self._at < len(self._tokens):
            if self._peek() == "fragment":
                self._take()
                name = self._take()
                self._take("on")
                self._take()
                fragments[name] = self._selection()
                continue
            if self._peek() != "{":
                operation = self._take()
                self._skip_to_selection()
            selection = self._selection()
        if selection is None:
            raise QueryError("There is no operation")
        return Document(operation, selection, fragments)

    def _skip_to_selection(self) -> None:
        """Over the operation's name and the types of its variables, which nobody checks here."""
        depth = 0
        while depth or self._peek() != "{":
            depth += {"(": 1, ")": -1}.get(self._take(), 0)

    def _selection(self) -> list[Field | Spread]:
        self._take("{")
        found: list[Field | Spread] = []
        while self._peek() != "}":
            found.append(self._spread() if self._peek() == "..." else self._field())
        self._take("}")
        return found

    def _spread(self) -> Spread:
        self._take("...")
        if self._peek() == "on":
            self._take()
            return Spread(self._take(), self._selection())
        return Spread(None, fragment=self._take())

    def _field(self) -> Field:
        name = alias = self._take()
        if self._peek() == ":":
            self._take()
            name = self._take()
        arguments = self._arguments() if self._peek() == "(" else {}
        return Field(name, alias, arguments, self._selection() if self._peek() == "{" else [])

    def _arguments(self) -> dict[str, Any]:
        self._take("(")
        found = self._pairs(")")
        self._take(")")
        return found

    def _pairs(self, end: str) -> dict[str, Any]:
        found = {}
        while self._peek() != end:
            name = self._take()
            self._take(":")
            found[name] = self._value()
        return found

    def _value(self) -> Any:
        token = self._take()
        if token == "$":
            return Variable(self._take())
        if token == "{":
            pairs = self._pairs("}")
            self._take("}")
            return pairs
        if token == "[":
            items = []
            while self._peek() != "]":
                items.append(self._value())
            self._take("]")
            return items
        if token[0] == '"' or token.lstrip("-").isdigit():
            return json.loads(token)
        return _WORDS.get(token, token)

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, expected: str | None = None) -> str:
        token = self._peek()
        if not token or expected not in {None, token}:
            raise QueryError(f"Expected {expected or 'more'}, found {token or 'the end'}")
        self._at += 1
        return token


@dataclass(frozen=True)
class Execution:
    """Picks what was asked for out of plain values; a callable is a field with arguments."""

    fragments: Mapping[str, list[Field | Spread]]
    variables: Mapping[str, Any]

    def pick(self, value: Any, selection: list[Field | Spread]) -> Any:
        if value is None or not selection:
            return value
        if isinstance(value, list):
            return [self.pick(item, selection) for item in value]
        picked: dict[str, Any] = {}
        for wanted in selection:
            picked |= self._spread(value, wanted) if isinstance(wanted, Spread) else self._one(value, wanted)
        return picked

    def _spread(self, value: Any, spread: Spread) -> dict[str, Any]:
        if spread.type not in {None, value["__typename"]}:
            return {}
        picked: dict[str, Any] = self.pick(
            value, self.fragments[spread.fragment] if spread.fragment else spread.selection
        )
        return picked

    def _one(self, value: Any, wanted: Field) -> dict[str, Any]:
        if wanted.name not in value:
            raise QueryError(f"Field '{wanted.name}' doesn't exist on type '{value['__typename']}'")
        found = value[wanted.name]
        if callable(found):
            found = found(**{name: self._given(given) for name, given in wanted.arguments.items()})
        return {wanted.alias: self.pick(found, wanted.selection)}

    def _given(self, value: Any) -> Any:
        if isinstance(value, Variable):
            return self.variables.get(value.name)
        if isinstance(value, dict):
            return {name: self._given(item) for name, item in value.items()}
        return value
