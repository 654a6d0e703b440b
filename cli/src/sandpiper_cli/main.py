"""`sandpiper`: a client of the public API, plus the commands that keep a stack on your own machine."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - typer reads it at run time
from typing import Annotated, Any

import typer

from sandpiper_cli import (
    control_commands,
    exits,
    github_commands,
    quota_commands,
    read_commands,
    run_commands,
    stack_commands,
)
from sandpiper_cli.help import Command, Group, context_settings
from sandpiper_cli.session import Connection
from sandpiper_cli.text import neutralise


class SandpiperGroup(Group):
    """The one place where failures become a sentence and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except exits.CliError as error:
            sys.stderr.write(neutralise("\n".join(error.lines)) + "\n")
            raise typer.Exit(error.exit_code) from error


app = typer.Typer(
    name="sandpiper",
    cls=SandpiperGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=context_settings(),
    help="""AI coding tasks on Git repositories, in isolated sandboxes, on AWS or on your own machine.

    Examples:

        sandpiper demo    see it work, from start to end
        sandpiper up      keep it running on http://127.0.0.1:8787
        sandpiper run --repo ./my-project "Fix the bug in …"

    Exit codes: 0 completed, 1 failed, cancelled or timed out, 2 usage, 3 not running (or running already),
    4 port taken, 5 API error, 6 suspended (waits for you), 130 interrupted.""",
)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - what typer calls it with
    if asked:
        import importlib.metadata  # noqa: PLC0415 - slow to load

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


_COMMANDS = {
    "On this machine": [
        stack_commands.demo,
        stack_commands.up,
        stack_commands.down,
        stack_commands.token,
        github_commands.comment,
    ],
    "Runs": [
        run_commands.run,
        run_commands.watch,
        read_commands.runs,
        read_commands.show,
        read_commands.logs,
        read_commands.diff,
        control_commands.budget,
        control_commands.say,
        control_commands.approve,
        control_commands.reject,
        control_commands.pause,
        control_commands.resume,
        control_commands.cancel,
        read_commands.usage,
        quota_commands.quota,
        read_commands.health,
    ],
}
for _panel, _commands in _COMMANDS.items():
    for _command in _commands:
        app.command(cls=Command, rich_help_panel=_panel)(_command)
app.add_typer(github_commands.github, cls=Group, rich_help_panel="On this machine")


if __name__ == "__main__":
    app()
