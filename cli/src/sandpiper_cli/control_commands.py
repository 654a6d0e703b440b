"""Commands that ask something of a run: more to spend, an answer, to wait, to go on, to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sandpiper_cli import exits
from sandpiper_cli.options import JsonOption, RunArgument, connected
from sandpiper_cli.output import print_json
from sandpiper_cli.session import Connection  # noqa: TC001 - typer reads it at run time
from sandpiper_cli.text import limit_words, neutralise

if TYPE_CHECKING:
    from sandpiper_cli.client import Api, Json


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
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to tell the agent.")],
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


ApprovalArgument = Annotated[str | None, typer.Argument(metavar="APPROVAL", help="Default: the one it waits for.")]
NoteOption = Annotated[str | None, typer.Option(help="Words that go with the answer; the agent reads those of a no.")]


@connected
def approve(
    connection: Connection,
    *,
    run_id: RunArgument,
    approval: ApprovalArgument = None,
    for_run: Annotated[bool, typer.Option("--for-run", help="Do not ask about this kind of risk again.")] = False,
    note: NoteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a run do what it asks for.

    Example: sandpiper approve RUN --for-run
    """
    scope = "run" if for_run else "call"
    _answer(connection, run_id, approval, {"decision": "approve", "scope": scope}, note=note, as_json=as_json)


@connected
def reject(
    connection: Connection,
    *,
    run_id: RunArgument,
    approval: ApprovalArgument = None,
    note: NoteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Do not let a run do what it asks for; it goes on without.

    Example: sandpiper reject RUN --note "Open a pull request instead"
    """
    _answer(connection, run_id, approval, {"decision": "reject"}, note=note, as_json=as_json)


def _answer(
    connection: Connection,
    run_id: str,
    approval: str | None,
    answer: dict[str, str],
    *,
    note: str | None,
    as_json: bool,
) -> None:
    with connection.api() as api:
        approval = approval or _pending(api, run_id)
        answered = api.answer_approval(run_id, approval, answer | ({"note": note} if note else {}))
    if as_json:
        print_json(answered)
        return
    done = {"approve": "approved", "reject": "rejected"}[answer["decision"]]
    typer.echo(neutralise(f"{approval} is {done}"))
    _tell_how_to_watch(answered["run"])


def _pending(api: Api, run_id: str) -> str:
    asked = api.run(run_id).get("approval")
    if asked is None:
        raise exits.CliError(f"{run_id} asks for no approval now", exits.API_ERROR)
    return str(asked["id"])


@connected
def pause(
    connection: Connection,
    *,
    run_id: RunArgument,
    now: Annotated[bool, typer.Option("--now", help="Break off the command in hand.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Let a run wait: after the command in hand it gives its sandbox back, and nothing is billed."""
    with connection.api() as api:
        answer = api.pause(run_id, now=now)
    if as_json:
        print_json(answer)
        return
    waits = "waits" if answer["run"]["status"] == "suspended" else "is being paused"
    typer.echo(f"{run_id} {waits}. Go on: sandpiper resume {run_id}")


@connected
def resume(connection: Connection, *, run_id: RunArgument, as_json: JsonOption = False) -> None:
    """Let a paused run go on.

    One that waits for an answer wants `sandpiper say`, one that waits for an approval `sandpiper approve` or `reject`,
    one without budget `sandpiper budget`. One that waits for CI goes on by itself; with this it looks at once.
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
