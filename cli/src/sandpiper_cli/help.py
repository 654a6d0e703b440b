"""Help as plain text, in groups. What draws boxes around it would take longer to load than most commands take."""

from __future__ import annotations

import inspect
import os
import shutil
from collections import defaultdict
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

_WIDEST, _NARROWEST = 100, 30


def context_settings() -> dict[str, Any]:
    columns = shutil.get_terminal_size().columns
    return {
        "help_option_names": ["-h", "--help"],
        "terminal_width": max(_NARROWEST, min(columns, _WIDEST) - 2),
    }


class Command(TyperCommand):
    def format_help_text(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - what is overridden has it
        _write_text(self.help, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_parameters(self, ctx, formatter)


class Group(TyperGroup):
    command_class = Command

    def format_help_text(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - what is overridden has it
        _write_text(self.help, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        rows = [(_panel(found, "Commands"), (name, _summary(found))) for name, found in self.commands.items()]
        _write_groups(rows, formatter)
        _write_parameters(self, ctx, formatter)


def _write_text(text: str | None, formatter: Any) -> None:
    """Paragraphs are wrapped; what is indented stays as it was written."""
    paragraphs = inspect.cleandoc(text or "").split("\n\n")
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text("\n\n".join(f"\b\n{found}" if found.startswith(" ") else found for found in paragraphs))


def _write_parameters(command: Any, ctx: Any, formatter: Any) -> None:
    found = [(parameter, parameter.get_help_record(ctx)) for parameter in command.get_params(ctx)]
    titles = {"argument": "Arguments", "option": "Options"}
    _write_groups([(_panel(it, titles[it.param_type_name]), row) for it, row in found if row is not None], formatter)


def _write_groups(rows: list[tuple[str, tuple[str, str]]], formatter: Any) -> None:
    groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for title, row in rows:
        groups[title].append(row)
    for title, found in groups.items():
        with formatter.section(title if os.environ.get("NO_COLOR") else typer.style(title, bold=True)):
            formatter.write_dl(found, col_max=formatter.width // 3)


def _panel(found: Any, otherwise: str) -> str:
    panel = found.rich_help_panel
    return panel if isinstance(panel, str) else otherwise


def _summary(command: Any) -> str:
    return " ".join(inspect.cleandoc(command.help or "").split("\n\n")[0].split())
