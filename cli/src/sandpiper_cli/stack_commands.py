"""`up`, `down`, `demo` and `token`: the AWS on your machine. What runs it is imported when it is needed."""

from __future__ import annotations

import contextlib
import os
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sandpiper_cli import exits, session
from sandpiper_cli.options import JsonOption, connected
from sandpiper_cli.output import print_json
from sandpiper_cli.session import Connection  # noqa: TC001 - typer reads it at run time
from sandpiper_local.errors import LocalError

if TYPE_CHECKING:
    from collections.abc import Iterator


class GitHubChoice(StrEnum):
    REAL = "real"
    FAKE = "fake"


@connected
def up(
    connection: Connection,
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the API; 0 takes a free one.")] = 8787,
    github: Annotated[
        GitHubChoice, typer.Option(help="`fake` starts a GitHub of its own, with a sample repository and an issue.")
    ] = GitHubChoice.REAL,
    as_json: JsonOption = False,
) -> None:
    """Start the AWS on your machine, deploy Sandpiper on it, and stay until Ctrl-C.

    No account, no Docker and no key needed: without ANTHROPIC_API_KEY a scripted model plays the sample task.
    Exit code 3: one is running already. 4: the port is taken.

    Example: sandpiper up --github fake
    """
    from sandpiper_local.stack import UpOptions  # noqa: PLC0415 - the client alone starts without it
    from sandpiper_local.stack import up as run_stack  # noqa: PLC0415

    options = UpOptions(port=port, state_dir=connection.state.root, environment=dict(os.environ), github=github.value)
    report = _report_json if as_json else _report_words
    with _local_errors():
        run_stack(options, report)


@connected
def down(connection: Connection, *, as_json: JsonOption = False) -> None:
    """Stop the stack that `up` started, and everything in it."""
    from sandpiper_local.stack import down as stop_stack  # noqa: PLC0415 - the client alone starts without it

    with _local_errors():
        stopped = stop_stack(connection.state.root)
    if not stopped:
        raise exits.CliError(f"nothing is running in {connection.state.root}", exits.NOT_RUNNING)
    print_json({"stopped": True}) if as_json else typer.echo("stopped")


def demo() -> None:
    """Run a sample task from start to end, on a stack of its own that is gone afterwards.

    Without ANTHROPIC_API_KEY the scripted model plays the task; with it the real one does it.
    """
    from sandpiper_local.demo import run_demo  # noqa: PLC0415 - the client alone starts without it

    with _local_errors():
        run_demo()


@connected
def token(
    connection: Connection,
    *,
    user: Annotated[str, typer.Option(help="Whose runs these are.")] = session.LOCAL_USER,
    org: Annotated[str | None, typer.Option(help="The user's organization.")] = None,
    scope: Annotated[list[str] | None, typer.Option(help="May be given several times.")] = None,
    ttl: Annotated[int, typer.Option(min=1, help="Seconds until it expires.")] = 3600,
    as_json: JsonOption = False,
) -> None:
    """Print a token that the running stack takes.

    Example: curl -H "Authorization: Bearer $(sandpiper token)" http://127.0.0.1:8787/runs
    """
    scopes = " ".join(scope) if scope else None
    minted = session.mint(connection.state, user=user, org=org, scope=scopes, ttl_seconds=ttl)
    print_json({"token": minted}) if as_json else typer.echo(minted)


@contextlib.contextmanager
def _local_errors() -> Iterator[None]:
    """Failures of the local stack, told the way all others are."""
    try:
        yield
    except LocalError as error:
        raise exits.CliError(str(error), error.exit_code) from error


def _report_json(message: dict[str, Any]) -> None:
    print_json(message)
    sys.stdout.flush()


def _report_words(message: dict[str, Any]) -> None:
    typer.echo("\n".join(_ready_lines(message)) if message["event"] == "ready" else f"{message['message']} …")


def _ready_lines(info: dict[str, Any]) -> list[str]:
    lines = [
        "ready",
        f"  API     {info['api_url']}",
        f"  socket  {info['ws_url']}",
        f"  AWS     {info['aws_endpoint']}",
    ]
    if info["model"] == "scripted":
        lines.append("  model   scripted: it plays only the sample task (set ANTHROPIC_API_KEY for a real one)")
    if github := info.get("github_url"):
        lines += [f"  GitHub  {github} (a fake: acme/tillroll#1 waits for you)"]
        return [*lines, 'Try: sandpiper comment "acme/tillroll#1" "/implement"', "Ctrl-C stops everything."]
    return [*lines, 'Try: sandpiper run --repo ./my-project "Fix the failing test"', "Ctrl-C stops everything."]
