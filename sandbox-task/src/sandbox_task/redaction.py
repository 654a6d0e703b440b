"""The one redactor: everything that leaves the sandbox (events, log, diff, result) goes through it."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

MARK = "[redacted]"
_SHORTEST_SECRET = 8  # hiding a shorter one would blank out ordinary words
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
        literal = "|".join(re.escape(form) for form in self._forms)
        self._pattern = re.compile(f"{literal}|{_SHAPES.pattern}") if literal else _SHAPES

    def text(self, text: str) -> str:
        return self._pattern.sub(MARK, text) if self._may_hide(text) else text

    def data[T](self, value: T) -> T:
        """The same structure with every string redacted, keys included."""
        return cast("T", self._walk(value))

    def stream(self) -> StreamRedactor:
        return StreamRedactor(self)

    def releasable(self, text: str) -> int:
        """How much of `text` can go out: the rest may be the first part of a secret that is still arriving."""
        cut = len(text)
        if (shape := _OPEN_SHAPE.search(text)) and len(text) - shape.start() <= _LONGEST_TOKEN:
            cut = shape.start()
        for form in (*self._forms, *_STARTS):
            cut = min(cut, len(text) - _overlap(text, form))
        found = self._pattern.finditer(text) if self._may_hide(text) else ()
        return next((match.start() for match in found if match.start() < cut < match.end()), cut)

    def _may_hide(self, text: str) -> bool:
        """Everything that is hidden begins with one of these; looking for them first is several times as fast."""
        return any(start in text for start in (*self._forms, *_STARTS))

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
        cut = self._redactor.releasable(text)
        self._held = text[cut:]
        return self._redactor.text(text[:cut])

    def close(self) -> str:
        rest, self._held = self._redactor.text(self._held), ""
        return rest


def _forms(secret: str) -> set[str]:
    basic = [secret, f"x-access-token:{secret}", f"{secret}:", f":{secret}", f"{secret}:x-oauth-basic"]
    encoded = {base64.b64encode(form.encode()).decode().rstrip("=") for form in basic}
    return {secret, quote(secret, safe=""), *encoded}


def _overlap(text: str, form: str) -> int:
    """How many characters at the end of `text` are a proper beginning of `form`."""
    for length in range(min(len(text), len(form) - 1), 0, -1):
        if text.endswith(form[:length]):
            return length
    return 0
