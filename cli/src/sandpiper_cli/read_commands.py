"""Commands that look at runs and change nothing."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - typer reads it at run time
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from sandpiper_cli import exits
from sandpiper_cli.closing import closing_lines, diff_lines, tokens_in
from sandpiper_cli.narrate import Line
from sandpiper_cli.options import JsonOption, RunArgument, connected
from sandpiper_cli.output import print_json, stdout_target
from sandpiper_cli.quota_commands import quota_lines
from sandpiper_cli.screen import is_animated, print_lines, terminal_console
from sandpiper_cli.session import Connection  # noqa: TC001 - typer reads it at run time
from sandpiper_cli.text import about, byte_size, one_line

if TYPE_CHECKING:
    from rich.console import Console

    from sandpiper_cli.client import Json


@connected
def runs(
    connection: Connection,
    *,
    status: Annotated[str | None, typer.Option(help="Only runs with this status.")] = None,
    repo: Annotated[str | None, typer.Option(help="Only runs on this repository.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many, newest first.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """List your runs, newest first.

    Example: sandpiper runs --status failed --limit 5
    """
    with connection.api() as api:
        page = api.runs(status=status, repo=repo, limit=limit)
    if as_json:
        print_json(page)
    elif not page["runs"]:
        typer.echo('No runs yet: sandpiper run --repo ./my-project "…"')
    else:
        _print_runs(page["runs"])


@connected
def show(connection: Connection, *, run_id: RunArgument, as_json: JsonOption = False) -> None:
    """Show one run: status, result, cost."""
    with connection.api() as api:
        found = api.run(run_id)
    if as_json:
        print_json(found)
        return
    console = terminal_console()
    print_lines(console, [Line("title", one_line(found["task"], 500)), Line("dim", _where_and_when(found))])
    if is_animated(console):
        _print_gate(console, found)
    print_lines(console, closing_lines(found, None, None))


@connected
def logs(
    connection: Connection,
    *,
    run_id: RunArgument,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Stay, and go on as the run does.")] = False,
    url: Annotated[bool, typer.Option("--url", help="Print the presigned URL of the whole log only.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the log of a run, however long it is; of a run at work: what there is so far.

    Example: sandpiper logs RUN --follow
    """
    from sandpiper_cli.logs import write_log  # noqa: PLC0415 - the other commands need no HTTP to be explained

    with connection.api() as api:
        if as_json:
            print_json((api.logs(run_id).whole or _no_whole_log(run_id))._asdict())
        elif url:
            typer.echo((api.logs(run_id).whole or _no_whole_log(run_id)).url)
        elif output is None:
            write_log(api, run_id, stdout_target(), follow=follow)
        else:
            with output.open("wb") as file:
                size = write_log(api, run_id, file, follow=follow)
            typer.echo(f"{output}: {byte_size(size)}", err=True)


@connected
def diff(connection: Connection, *, run_id: RunArgument, as_json: JsonOption = False) -> None:
    """Print what a run changed, as a patch.

    Example: sandpiper diff RUN | git apply
    """
    with connection.api() as api:
        if as_json:
            print_json(api.diff(run_id)._asdict())
        elif sys.stdout.isatty():
            print_lines(terminal_console(), diff_lines(api.diff_text(run_id), limit=None, run_id=run_id))
        else:
            api.download(api.diff(run_id), sys.stdout.buffer)


@connected
def usage(
    connection: Connection,
    *,
    month: Annotated[str | None, typer.Option(metavar="YYYY-MM", help="In UTC; this month by default.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what your runs used in a month: runs, turns, tokens, dollars; and what is left of your quotas.

    Example: sandpiper usage --month 2026-11
    """
    with connection.api() as api:
        used = api.usage(month)
    print_json(used) if as_json else print_lines(terminal_console(), _usage_lines(used))


@connected
def health(connection: Connection, *, as_json: JsonOption = False) -> None:
    """Ask the API how it is. Exit code 0 if it is well."""
    with connection.open_api() as api:
        answer = api.health()
    well = answer.get("status") == "healthy"
    if as_json:
        print_json(answer)
    else:
        _print_health(answer, well=well)
    raise typer.Exit(exits.COMPLETED if well else exits.API_ERROR)


def _no_whole_log(run_id: str) -> NoReturn:
    message = f"there is no whole log (now, or of a sandbox that was lost): `sandpiper logs {run_id}` has what there is"
    raise exits.CliError(message, exits.API_ERROR)


def _print_gate(console: Console, run: Json) -> None:
    from sandpiper_cli.tables import gate_table  # noqa: PLC0415 - for people at a terminal only

    if (table := gate_table(run)) is not None:
        console.print(table)


def _print_runs(found: list[Json]) -> None:
    rows = [_row(run) for run in found]
    if not is_animated(console := terminal_console()):
        typer.echo("\n".join(map("\t".join, rows)))
        return
    from sandpiper_cli.tables import runs_table  # noqa: PLC0415 - for people at a terminal only

    console.print(runs_table(rows))


def _row(run: Json) -> list[str]:
    return [
        run["run_id"],
        run["status"],
        run["created_at"],
        one_line(run.get("repo") or "-", 60),
        one_line(run["task"], 60),
    ]


def _where_and_when(run: Json) -> str:
    parts = [
        run["run_id"],
        run["status"],
        run["type"],
        run.get("repo") or "no repository",
        f"since {run['created_at']}",
    ]
    if run.get("queue_position"):
        parts.append(f"place {run['queue_position']} in line{about(run.get('estimated_wait_seconds'))}")
    return one_line(" · ".join(parts), 500)


def _usage_lines(used: Json) -> list[Line]:
    taken = f"{tokens_in(used):,} in, {used['output_tokens']:,} out"
    return [
        Line("title", one_line(str(used["month"]), 20)),
        Line("plain", f"Runs    {used['runs']:,}"),
        Line("plain", f"Turns   {used['turns']:,}"),
        Line("plain", f"Tokens  {taken}"),
        Line("plain", f"Cost    ${used['cost_usd']:.4f}"),
        *(line for quota in used.get("quotas", ()) for line in quota_lines(quota)),
    ]


def _print_health(answer: Json, *, well: bool) -> None:
    lines = [
        Line("good" if well else "bad", f"{answer.get('status', 'unknown')} (version {answer.get('version', '?')})")
    ]
    lines += [
        Line("plain", f"  {name}: {one_line(str(state), 200)}") for name, state in answer.get("checks", {}).items()
    ]
    print_lines(terminal_console(), lines)
