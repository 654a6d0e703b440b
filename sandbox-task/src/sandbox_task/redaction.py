"""The one redactor: everything that leaves the sandbox (events, log, diff, result) goes through it."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

MARK = "[redacted]"
_SHORTEST_SECRET = 8  # hiding a shorter one would blank out ordinary words
_START = 24  # many forms of one secret begin alike, and the longer a text, the quicker it is not found
_LONGEST_TOKEN = 4096  # a run of token characters beyond this is data, not a credential
_STARTS = ("sk-ant-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "AKIA", "ASIA")
_SHAPES = re.compile(
    r"sk-ant-[A-Za-z0-9_-]{8,}"
    r"|gh[pousr]_[A-Za-z0-9_.-]{16,}"
    r"|github_pat_[A-Za-z0-9_]{16,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
)
_OPEN_SHAPE = re.compile(r"(?:sk-ant-|gh[pousr]_|github_pat_|AKIA|ASIA)[A-Za-z0-9_.-]*\Z")


class Redactor:
    """Knows the actual secrets of the run, in the forms they are written in, and the usual shapes."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._forms: tuple[str, ...] = ()
        self._pattern = _SHAPES
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        known = {form for secret in secrets if len(secret) >= _SHORTEST_SECRET for form in _forms(secret)}
        self._forms = tuple(sorted(known | set(self._forms), key=len, reverse=True))
        self._starts = {form[:_START] for form in self._forms} | set(_STARTS)
        self._beginnings = {form[:end] for form in (*self._forms, *_STARTS) for end in range(1, len(form))}
        self._longest = max(map(len, self._beginnings))
        literal = "|".join(re.escape(form) for form in self._forms)
        self._pattern = re.compile(f"{literal}|{_SHAPES.pattern}") if literal else _SHAPES

    def text(self, text: str) -> str:
        return self._pattern.sub(MARK, text) if self.may_hide(text) else text

    def data[T](self, value: T) -> T:
        """The same structure with every string redacted, keys included."""
        return cast("T", self._walk(value))

    def stream(self) -> StreamRedactor:
        return StreamRedactor(self)

    def may_hide(self, text: str) -> bool:
        """Everything that is hidden begins with one of these; looking for them first is many times as fast."""
        return any(start in text for start in self._starts)

    def releasable(self, text: str) -> int:
        """How much of `text` can go out: the rest may be the first part of a secret that is still arriving."""
        cut = self.complete(text)
        return next((match.start() for match in self._pattern.finditer(text) if match.start() < cut < match.end()), cut)

    def complete(self, text: str) -> int:
        """The same for a text that hides nothing yet."""
        shape = _OPEN_SHAPE.search(text, max(0, len(text) - _LONGEST_TOKEN))
        return min(shape.start() if shape else len(text), len(text) - self._overlap(text))

    def _overlap(self, text: str) -> int:
        """How many characters at the end of `text` are a proper beginning of something that is hidden."""
        lengths = range(min(len(text), self._longest), 0, -1)
        return next((length for length in lengths if text[-length:] in self._beginnings), 0)

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self._walk(key): self._walk(item) for key, item in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, bytes):
            return [self._walk(item) for item in value]
        return value


class StreamRedactor:
    """Redacts text that arrives in pieces: a secret cut in two by the pieces is hidden all the same."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, piece: str) -> str:
        text = self._held + piece
        hides = self._redactor.may_hide(text)
        cut = self._redactor.releasable(text) if hides else self._redactor.complete(text)
        self._held = text[cut:]
        return self._redactor.text(text[:cut]) if hides else text[:cut]

    def close(self) -> str:
        rest, self._held = self._redactor.text(self._held), ""
        return rest


def _forms(secret: str) -> set[str]:
    basic = [secret, f"x-access-token:{secret}", f"{secret}:", f":{secret}", f"{secret}:x-oauth-basic"]
    encoded = {base64.b64encode(form.encode()).decode().rstrip("=") for form in basic}
    return {secret, quote(secret, safe=""), *encoded}
