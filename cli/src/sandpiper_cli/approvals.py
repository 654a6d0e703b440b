"""What a run asks for before it does something: the call, why it asks, and the commands that answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandpiper_cli.text import neutralise, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

_CALL = ("command", "code", "text", "path", "preview")  # what of a call there is to see, the first that is given
_STYLE_OF_RISK = {"low": "status", "medium": "warn", "high": "bad"}


def approval_lines(run_id: str, approval_id: str, asked: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Style and text of each line. All of the call is shown: who approves must see what."""
    risk = str(asked.get("risk"))
    lines = [(_STYLE_OF_RISK.get(risk, "warn"), f"Approval wanted ({one_line(risk, 20)} risk): {_reason(asked)}")]
    lines += [("command", f"    {text}") for text in _texts(_call(asked))]
    if content := asked.get("content"):
        lines += [("command", f"    | {text}") for text in _texts(str(content))]
    where = one_line(str(asked.get("cwd") or "."), 200)
    lines += [("dim", f"    in {where}")] if where != "." else []
    answer = one_line(f"{run_id} {approval_id}", 200)
    return [
        *lines,
        ("plain", f"Approve sandpiper approve {answer}   (--for-run: do not ask about this kind again)"),
        ("plain", f'Reject  sandpiper reject {answer} --note "why"'),
    ]


def _call(asked: Mapping[str, Any]) -> str:
    """With the keys that are pressed after what is typed."""
    call = next((str(asked[name]) for name in _CALL if asked.get(name)), str(asked.get("tool")))
    return " ".join([call, *(f"<{key}>" for key in asked.get("keys") or ())])


def _texts(text: str) -> list[str]:
    return neutralise(text).rstrip("\n").split("\n")


def _reason(asked: Mapping[str, Any]) -> str:
    return one_line(str(asked.get("reason") or "no reason given"), 500)
