"""A shell text as the simple commands in it, as far as that can be told without running it.

`shlex` alone does not do: it takes newlines for spaces and knows neither comments behind a command, here-documents nor
substitutions. What is in a substitution, a subshell or a here-document that a shell reads is looked at as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

UNKNOWN = "\0"  # stands in a word for what only running it would tell

_OPERATORS = re.compile(r"&&|\|\||\|&|;;|[;|\n()]|&(?!>)")
_HERE_DOC = re.compile(r"<<(-?)[ \t]*(?:'([^'\n]+)'|\"([^\"\n]+)\"|([^\s;&|<>()]+))")
_REDIRECTION = re.compile(r"[0-9]*(?:<<<|<>|>>|>\||[<>]&|&>>?|[<>])")
_PLAIN = re.compile(r"[^\s'\"`\\$<>|&;()#]+")
_SUBSTITUTION = re.compile(r"[$<>]\((?!\()")
_ESCAPED_IN_DOUBLE = '"\\$`\n'
_MAX_DEPTH = 8


@dataclass
class Command:
    """`substituted` are texts whose output becomes part of it, `stdin` is what it is given to read, if that is here."""

    words: list[str] = field(default_factory=list)
    substituted: list[str] = field(default_factory=list)
    stdin: str = ""
    after_pipe: Command | None = None


def simple_commands(text: str, depth: int = 0) -> Iterator[Command]:
    """Those of the text itself, then those inside of its substitutions."""
    commands = _Reader(text).commands()
    yield from commands
    if depth < _MAX_DEPTH:
        for command in commands:
            for inner in command.substituted:
                yield from simple_commands(inner, depth + 1)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text.replace("\\\n", "")
        self._at = 0
        self._command = Command()
        self._done: list[Command] = []
        self._word: list[str] | None = None
        self._redirects: str | None = None
        self._awaited: list[tuple[Command, str, bool]] = []

    def commands(self) -> list[Command]:
        while self._at < len(self._text):
            self._step()
        self._end_command()
        return self._done

    def _step(self) -> None:
        text, at = self._text, self._at
        char = text[at]
        if char in " \t\r":
            self._end_word()
            self._at += 1
        elif char == "#" and self._word is None:
            self._at = _until(text, "\n", at)
        elif found := _HERE_DOC.match(text, at):
            self._here_document(found)
        elif found := _SUBSTITUTION.match(text, at):
            self._substitute(_closing(text, found.end()), found.end())
        elif (found := _REDIRECTION.match(text, at)) and (self._word is None or not char.isdigit()):
            self._end_word()
            self._redirects, self._at = found[0], found.end()
        elif found := _OPERATORS.match(text, at):
            self._operator(found[0])
        else:
            self._character(char)

    def _character(self, char: str) -> None:
        text, at = self._text, self._at
        if char == "'":
            end = _until(text, "'", at + 1)
            self._add(text[at + 1 : end])
            self._at = end + 1
        elif char == '"':
            self._double_quoted()
        elif char == "`":
            self._substitute(_until(text, "`", at + 1), at + 1)
        elif char == "\\":
            self._add(text[at + 1 : at + 2])
            self._at += 2
        else:
            run = _PLAIN.match(text, at)
            self._add(run[0] if run else char)
            self._at = run.end() if run else at + 1

    def _double_quoted(self) -> None:
        self._add("")
        self._at += 1
        while self._at < len(self._text) and (char := self._text[self._at]) != '"':
            if found := _SUBSTITUTION.match(self._text, self._at) if char == "$" else None:
                self._substitute(_closing(self._text, found.end()), found.end())
            elif char == "`":
                self._substitute(_until(self._text, "`", self._at + 1), self._at + 1)
            else:
                escaped = char == "\\" and self._text[self._at + 1 : self._at + 2] in _ESCAPED_IN_DOUBLE
                self._at += escaped
                self._add(self._text[self._at : self._at + 1])
                self._at += 1
        self._at += 1

    def _substitute(self, end: int, start: int) -> None:
        self._command.substituted.append(self._text[start:end])
        self._add(UNKNOWN)
        self._at = end + 1

    def _here_document(self, found: re.Match[str]) -> None:
        self._end_word()
        is_quoted = found[4] is None
        self._awaited.append((self._command, found[2] or found[3] or found[4], is_quoted))
        self._at = found.end()

    def _operator(self, operator: str) -> None:
        before = self._end_command()
        self._at += len(operator)
        if operator in {"|", "|&"}:
            self._command.after_pipe = before
        if operator == "\n":
            self._read_here_documents()

    def _read_here_documents(self) -> None:
        for command, mark, is_quoted in self._awaited:
            end = re.compile(rf"^[\t ]*{re.escape(mark)}$", re.MULTILINE).search(self._text, self._at)
            body = self._text[self._at : end.start() if end else None]
            command.stdin += body
            if not is_quoted:
                command.substituted += _substitutions(body)
            self._at = end.end() if end else len(self._text)
        self._awaited = []

    def _add(self, text: str) -> None:
        self._word = self._word or []
        self._word.append(text)

    def _end_word(self) -> None:
        if self._word is None:
            return
        if self._redirects is None:
            self._command.words.append("".join(self._word))
        elif self._redirects == "<<<":
            self._command.stdin += "".join(self._word)
        self._word = self._redirects = None

    def _end_command(self) -> Command:
        self._end_word()
        command, self._command, self._redirects = self._command, Command(), None
        if command.words or command.substituted or command.after_pipe:
            self._done.append(command)
        return command


def _substitutions(text: str) -> list[str]:
    reader = _Reader(f'"{text.replace(chr(34), chr(92) + chr(34))}"')
    return [inner for command in reader.commands() for inner in command.substituted]


def _until(text: str, end: str, at: int) -> int:
    found = text.find(end, at)
    return found if found >= 0 else len(text)


def _closing(text: str, at: int) -> int:
    """Where the bracket closes that was opened before `at`; quotes are passed over."""
    depth = 1
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif char in "'\"":
            at = _until(text, char, at + 1)
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth == 0:
            return at
        at += 1
    return at
