"""The same risks in code: the commands that it starts, and the trees that it deletes, as far as they are written out.

Strings are looked at rather than syntax, so that Python and JavaScript, whole programs and fragments are judged alike.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandbox_task.agent.policy import risks
from sandbox_task.agent.policy.commands import CommandRules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox_task.agent.policy.places import Place
    from sandbox_task.agent.policy.risks import Risk

_STARTS_PROCESSES = re.compile(
    r"\b(?:subprocess|child_process|popen|pexpect|os\.(?:system|exec\w+|spawn\w+|posix_spawn\w*)|execSync|spawnSync"
    r"|create_subprocess_\w+|execa|zx|sh\.|plumbum|system|exec|spawn)\b",
    re.IGNORECASE,
)
_DELETES_TREES = re.compile(r"\b(?:rmtree|rimraf|rmSync|rmdirSync|remove_tree|removeSync|rm)\s*\(\s*([^\n]*)")
_WHERE_IT_IS = re.compile(r"(?:os\.getcwd|Path\.cwd|process\.cwd|os\.homedir|Path\.home)\(\)\s*[,)]")
_TOKEN = re.compile(
    r"(?P<string>\"\"\"(?:\\.|[^\\\"]|\"(?!\"\"))*(?:\"\"\"|$)|'''(?:\\.|[^\\']|'(?!''))*(?:'''|$)"
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)"
    r"|(?P<comment>\#[^\n]*|//[^\n]*|/\*(?:[^*]|\*(?!/))*)|(?P<joint>[\s,\[\]]+)|(?P<other>\w+|.)",
    re.DOTALL,
)
_PREFIX = re.compile(r"[rRbBfFuU]{1,2}$")


def risk_of_code(code: str, place: Place) -> Risk | None:
    for argument in _DELETES_TREES.findall(code):
        if _WHERE_IT_IS.match(argument) or any(map(place.is_whole_work, next(_sequences(argument), [])[:1])):
            return risks.DELETES_WORK
    if not _STARTS_PROCESSES.search(code):
        return None
    for words in _sequences(code):
        risk = RULES.of_words([word.strip() for word in words], place) if len(words) > 1 else None
        for text in () if risk else words:
            risk = risk or RULES.of_text(text, place, 1)
        if risk:
            return risk
    return None


def _sequences(code: str) -> Iterator[list[str]]:
    """Strings that stand beside each other: the words of one command, or one text."""
    words: list[str] = []
    for token in _TOKEN.finditer(code):
        if token["string"]:
            words.append(_content(token["string"]))
        elif token["other"] and not _PREFIX.match(token["other"]):
            if words:
                yield words
            words = []
    if words:
        yield words


def _content(literal: str) -> str:
    quotes = 3 if literal[:3] in {'"""', "'''"} else 1
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), literal[quotes:-quotes])


RULES = CommandRules(risk_of_code)
