"""`sandpiper`: a client of the public API, plus the commands that keep a stack on your own machine."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path  # noqa: TC003 - typer reads it at run time
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sandpiper_cli import (
    control_commands,
    exits,
    github_commands,
    quota_commands,
    read_commands,
    run_commands,
    stack_commands,
)
from sandpiper_cli.client import ApiError, Unreachable
from sandpiper_cli.session import Connection
from sandpiper_cli.text import neutralise


class SandpiperGroup(TyperGroup):
    """The one place where failures become a sentence and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except exits.CliError as error:
            _fail([str(error)], error.exit_code)
        except Unreachable as error:
            _fail([str(error)], exits.NOT_RUNNING if error.is_local else exits.API_ERROR)
        except ApiError as error:
            _fail(_words_of(error), exits.API_ERROR)


app = typer.Typer(
    name="sandpiper",
    cls=SandpiperGroup,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""AI coding tasks on Git repositories, in isolated sandboxes, on AWS or on your own machine.

    Examples:

        sandpiper demo                                        see it work, from start to end

        sandpiper up                                          keep it running on http://127.0.0.1:8787

        sandpiper run --repo ./my-project "Fix the bug in …"  give it a task

    Exit codes: 0 completed, 1 failed, cancelled or timed out, 2 usage, 3 not running (or running already),
    4 port taken, 5 API error, 6 suspended (waits for you), 130 interrupted.""",
)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - what typer calls it with
    if asked:
        typer.echo(f"sandpiper {importlib.metadata.version('sandpiper')}")
        raise typer.Exit


@app.callback()
def settings(
    ctx: typer.Context,
    *,
    version: Annotated[  # noqa: ARG001 - its callback has answered by then
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
    endpoint: Annotated[str | None, typer.Option(envvar="SANDPIPER_ENDPOINT", help="URL of the API.")] = None,
    token: Annotated[str | None, typer.Option(envvar="SANDPIPER_TOKEN", show_envvar=True, help="JWT to send.")] = None,
    state_dir: Annotated[
        Path | None, typer.Option(envvar="SANDPIPER_STATE_DIR", help="Where the local stack keeps its state.")
    ] = None,
) -> None:
    ctx.obj = Connection(endpoint=endpoint, token=token, state_dir=state_dir)


_LOCAL = "On this machine"
_RUNS = "Runs"
app.command(rich_help_panel=_LOCAL)(stack_commands.demo)
app.command(rich_help_panel=_LOCAL)(stack_commands.up)
app.command(rich_help_panel=_LOCAL)(stack_commands.down)
app.command(rich_help_panel=_LOCAL)(stack_commands.token)
app.command(rich_help_panel=_LOCAL)(github_commands.comment)
app.add_typer(github_commands.github, rich_help_panel=_LOCAL)
app.command(rich_help_panel=_RUNS)(run_commands.run)
app.command(rich_help_panel=_RUNS)(run_commands.watch)
app.command(rich_help_panel=_RUNS)(read_commands.runs)
app.command("show", rich_help_panel=_RUNS)(read_commands.show_run)
app.command(rich_help_panel=_RUNS)(read_commands.logs)
app.command(rich_help_panel=_RUNS)(read_commands.diff)
app.command(rich_help_panel=_RUNS)(control_commands.budget)
app.command(rich_help_panel=_RUNS)(control_commands.say)
app.command(rich_help_panel=_RUNS)(control_commands.approve)
app.command(rich_help_panel=_RUNS)(control_commands.reject)
app.command(rich_help_panel=_RUNS)(control_commands.pause)
app.command(rich_help_panel=_RUNS)(control_commands.resume)
app.command(rich_help_panel=_RUNS)(control_commands.cancel)
app.command(rich_help_panel=_RUNS)(read_commands.usage)
app.command(rich_help_panel=_RUNS)(quota_commands.quota)
app.command(rich_help_panel=_RUNS)(read_commands.health)


def _words_of(error: ApiError) -> list[str]:
    lines = [f"{error} ({error.type})"]
    lines += [f"  {detail.get('field')}: {detail.get('message')}" for detail in error.details]
    if error.request_id:
        lines.append(f"  request {error.request_id}")
    return lines


def _fail(lines: list[str], exit_code: int) -> None:
    sys.stderr.write(neutralise("\n".join(lines)) + "\n")
    raise typer.Exit(exit_code)


if __name__ == "__main__":
    app()
