"""What is easier to read in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from sandpiper_cli.closing import status_style
from sandpiper_cli.screen import STYLES
from sandpiper_cli.text import one_line, seconds

if TYPE_CHECKING:
    from sandpiper_cli.client import Json

_WIDE = 160
_STYLE_OF_CHECK = {"passed": "good", "failed": "bad", "known_broken": "warn"}


def gate_table(run: Json) -> Table | None:
    checks = ((run.get("result") or {}).get("gate") or {}).get("checks") or []
    if not checks:
        return None
    table = Table("check", "result", "took", title="Quality gate", title_justify="left", title_style="bold")
    for check in checks:
        style = {"good": "green", "bad": "red", "warn": "yellow"}[_STYLE_OF_CHECK[check["status"]]]
        took = seconds(check.get("duration_ms", 0) / 1000)
        table.add_row(one_line(check["command"], _WIDE), Text(check["status"].replace("_", " "), style=style), took)
    return table


def runs_table(rows: list[list[str]]) -> Table:
    table = Table("run", "status", "created", "repository", "task", box=None)
    for run_id, status, *rest in rows:
        table.add_row(run_id, Text(status, style=STYLES[status_style(status)]), *rest)
    return table
