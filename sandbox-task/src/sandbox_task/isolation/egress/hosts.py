"""Names of hosts: what counts as one, and patterns of them (`host`, `*.host`, `*`, each with an optional `:port`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

HTTPS = 443
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
# What resolvers read as an address: a last label that is a number, in decimal, octal or hexadecimal.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


@dataclass(frozen=True)
class Pattern:
    """`below` stands for the names below `name`; without a name, for every name."""

    name: str
    port: int
    below: bool

    def matches(self, host: str, port: int) -> bool:
        if port != self.port:
            return False
        if not self.below:
            return host == self.name
        return not self.name or host.endswith(f".{self.name}")


def is_name(host: str) -> bool:
    """An ordinary name in small letters: no address in any notation, no trailing dot, nothing that needs encoding."""
    return bool(_NAME.fullmatch(host)) and not is_number(host)


def is_number(host: str) -> bool:
    return ":" in host or bool(_NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]))


def parse_pattern(text: str) -> Pattern:
    """Raises ValueError in words."""
    rest, _, port = text.strip().lower().partition(":")
    below = rest == "*" or rest.startswith("*.")
    name = rest[2:] if below else rest
    is_port = _PORT.fullmatch(port or str(HTTPS)) and int(port or HTTPS) < 65536
    if (rest != "*" and not is_name(name)) or not is_port:
        raise ValueError(f"{text!r} is no name of a host: give `host`, `*.host` or `*`, with `:port` if it is not 443")
    return Pattern(name, int(port or HTTPS), below=below)


def parse_host(text: str) -> tuple[str, int]:
    """Exactly one. Raises ValueError in words."""
    pattern = parse_pattern(text)
    if pattern.below:
        raise ValueError(f"{text!r} is no host but a pattern of them")
    return pattern.name, pattern.port


def parse_patterns(texts: Iterable[str]) -> tuple[Pattern, ...]:
    return tuple(parse_pattern(text) for text in texts)
