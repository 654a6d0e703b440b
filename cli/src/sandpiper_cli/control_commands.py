"""Commands that ask something of a run: more to spend, an answer, to go on, to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sandpiper_cli.options import JsonOption, RunArgument, connected
from sandpiper_cli.output import print_json
from sandpiper_cli.session import Connection  # noqa: TC001 - typer reads it at run time
from sandpiper_cli.text import limit_words, neutralise

if TYPE_CHECKING:
    from sandpiper_cli.client import Json


@connected
def budget(
    connection: Connection,
    *,
    run_id: RunArgument,
    turns: Annotated[int | None, typer.Option(min=1, help="Turns of the model.")] = None,
    cost: Annotated[float | None, typer.Option(metavar="USD", help="Dollars.")] = None,
    tokens: Annotated[int | None, typer.Option(min=1, help="Tokens, in and out.")] = None,
    seconds: Annotated[int | None, typer.Option(min=1, help="Seconds of work; waiting does not count.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Raise the limits of a run, or continue one that has used them up.

    The figures are new totals for the whole run. Without any, a run that is suspended because its budget is used up
    continues: with 24 turns more, or with once more the dollars, tokens or seconds that it was started with.

    Examples:

        sandpiper budget RUN

        sandpiper budget RUN --turns 100 --cost 5
    """
    wanted = {"max_turns": turns, "max_cost_usd": cost, "max_total_tokens": tokens, "timeout_seconds": seconds}
    with connection.api() as api:
        answer = api.raise_budget(run_id, {name: value for name, value in wanted.items() if value is not None})
    if as_json:
        print_json(answer)
        return
    limits = ", ".join(limit_words(name, limit) for name, limit in answer["run"]["budget"].items() if limit is not None)
    typer.echo(f"{run_id} may use {limits} in all")
    _tell_how_to_watch(answer["run"])


@connected
def say(
    connection: Connection,
    *,
    run_id: RunArgument,
    text: Annotated[str, typer.Argument(help="What to tell the agent.")],
    idempotency_key: Annotated[str | None, typer.Option(help="Repeating it with the key says it once.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Say something to a run; the agent reads it before its next turn.

    If the run has asked a question and waits, this is the answer, and it goes on.

    Example: sandpiper say RUN "Use PostgreSQL, not SQLite"
    """
    headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
    with connection.api() as api:
        answer = api.say(run_id, text, headers=headers)
    if as_json:
        print_json(answer)
        return
    typer.echo(f"{run_id} was told (message {answer['n']})")
    _tell_how_to_watch(answer["run"])


@connected
def resume(connection: Connection, *, run_id: RunArgument, as_json: JsonOption = False) -> None:
    """Let a paused run go on.

    One that waits for an answer wants `sandpiper say`, one without budget wants `sandpiper budget`.
    """
    with connection.api() as api:
        answer = api.resume(run_id)
    if as_json:
        print_json(answer)
        return
    _tell_how_to_watch(answer["run"])


@connected
def cancel(connection: Connection, *, run_id: RunArgument, as_json: JsonOption = False) -> None:
    """Stop a run. What it did so far stays in its log."""
    with connection.api() as api:
        answer = api.cancel(run_id)
    print_json(answer) if as_json else typer.echo(f"{run_id} is being cancelled")


def _tell_how_to_watch(run: Json) -> None:
    goes_on = "goes on" if run["status"] != "suspended" else "goes on if that is what it waited for"
    typer.echo(neutralise(f"It {goes_on}. Watch it: sandpiper watch {run['run_id']}"))
