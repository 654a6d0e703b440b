"""Whether a command that the model planned can prove anything: it must be able to fail because of the work."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_OPERATORS = ";&|()\n"
_SHOWS = re.compile(r"\s*\|\s*(?:tail|head|cat|tee|less|more)\b[^|;&()<>\n]*$")
_IDLE = {
    "true", ":", "echo", "printf", "pwd", "sleep", "date", "cd", "export", "set", "whoami", "clear",
    "rm", "mkdir", "touch",
}  # fmt: skip
_IDLE_GIT = {"status", "log", "show", "branch", "add", "fetch"}
_CHANGES_GIT = {"push", "commit", "reset", "clean", "checkout", "restore", "stash", "rebase", "merge", "rm", "tag"}
_DESTRUCTIVE = {"sudo", "dd", "shutdown", "reboot", "kill", "pkill", "killall"}
_EVERYTHING = {"/", "/*", ".", "./", "..", "*", "./*", "~", "~/", "$HOME", ".git", "./.git"}
_TALKS = {"--version", "-V", "--help"}


def honest(command: str) -> str:
    """Without what only shortens the output: a pipe's exit code is that of `tail`, which never fails."""
    command = command.strip()
    while (shorter := _SHOWS.sub("", command)) != command:
        command = shorter.strip()
    return command


class Proof(NamedTuple):
    """`refused` is never run; `words` say what is wrong with anything but a proof."""

    kind: Literal["proof", "idle", "refused"]
    words: str = ""


def judge_proof(command: str) -> Proof:
    try:
        parts = list(_parts(command))
    except ValueError:  # unbalanced quotes: the shell will say so, and the check fails
        return Proof("proof")
    if any(_is_destructive(words) for _, words in parts):
        return Proof("refused", "it changes more than a check may.")
    if all(_is_idle(words) for _, words in parts):
        return Proof("idle", "it exits 0 whatever the work is like.")
    operator, last = parts[-1]
    if operator in ("||", ";", "\n", "|") and _is_idle(last):
        return Proof("refused", "its exit code is always 0.")
    return Proof("proof")


def _parts(command: str) -> Iterator[tuple[str, list[str]]]:
    """Each simple command with the operator before it. Raises ValueError."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    operator, words = "", list[str]()
    for token in [*lexer, ";"]:
        if not token or token.strip(_OPERATORS):
            words.append(token)
            continue
        if words:
            yield operator, words
        operator, words = token, []


def _is_idle(words: Sequence[str]) -> bool:
    program, *rest = _without_assignments(words) or [":"]
    match program:
        case "git":
            return _is_idle_git(rest)
        case "ls":
            return not rest
        case "exit":
            return rest in ([], ["0"])
    return program in _IDLE or bool(_TALKS & set(rest[:1]))


def _is_idle_git(words: Sequence[str]) -> bool:
    if words[:1] == ["diff"]:
        return not {"--check", "--exit-code", "--quiet"} & set(words)
    return bool(_IDLE_GIT & set(words[:1]))


def _is_destructive(words: Sequence[str]) -> bool:
    match _without_assignments(words):
        case ["git", action, *_]:
            return action in _CHANGES_GIT
        case ["rm", *targets]:
            return bool(_EVERYTHING & set(targets))
        case [program, *_]:
            return program in _DESTRUCTIVE or program.startswith("mkfs")
    return False


def _without_assignments(words: Sequence[str]) -> list[str]:
    first = next((n for n, word in enumerate(words) if not re.match(r"\w+=", word)), len(words))
    return list(words[first:])
