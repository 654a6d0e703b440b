"""Lines in their styles, on a terminal or wherever the output goes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sandpiper_cli.text import neutralise

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

    from rich.console import Console

    from sandpiper_cli.narrate import Line

STYLES: Mapping[str, str] = {
    "status": "bold",
    "dim": "dim",
    "output": "dim",
    "words": "default",
    "plan": "bold cyan",
    "step": "cyan",
    "command": "bold yellow",
    "tool": "yellow",
    "file": "magenta",
    "good": "green",
    "bad": "bold red",
    "warn": "yellow",
    "added": "green",
    "removed": "red",
    "hunk": "cyan",
    "plain": "default",
    "title": "bold",
    "link": "blue underline",
}


def terminal_console(file: TextIO | None = None) -> Console:
    from rich.console import Console  # noqa: PLC0415 - help and JSON need no terminal

    return Console(file=file, highlight=False, markup=False, emoji=False)


def is_animated(console: Console) -> bool:
    return console.is_terminal and not console.is_dumb_terminal and not os.environ.get("NO_COLOR")


def print_lines(console: Console, lines: list[Line]) -> None:
    from rich.text import Text  # noqa: PLC0415

    for line in lines:
        console.print(Text(neutralise(line.text), style=STYLES[line.style]), soft_wrap=True)
