"""`sandpiper run` and `sandpiper watch`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sandpiper_cli import exits
from sandpiper_cli.options import JsonOption, RunArgument, connected
from sandpiper_cli.output import print_json
from sandpiper_cli.repos import repo_to_send
from sandpiper_cli.session import Connection  # noqa: TC001 - typer reads it at run time

if TYPE_CHECKING:
    from sandpiper_cli.client import Api

WaitOption = Annotated[bool, typer.Option("--wait", help="Stay while the run is suspended, too.")]
DeltasOption = Annotated[
    bool, typer.Option("--deltas", help="With --json: also what the model is just saying, piece by piece.")
]


@connected
def run(
    connection: Connection,
    *,
    task: Annotated[str, typer.Argument(metavar="TASK", help="What is to be done, in your own words.")],
    repo: Annotated[
        str | None, typer.Option("--repo", "-r", help="owner/repo, an https URL, or ./path of a checkout here.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--type", help="bug-fix, refactoring, documentation, testing, code-review, …")
    ] = None,
    model: Annotated[str | None, typer.Option(help="sonnet, opus, haiku, or the id of a model.")] = None,
    branch: Annotated[str | None, typer.Option(help="Branch to push to.")] = None,
    base: Annotated[str | None, typer.Option(help="Branch to start from.")] = None,
    commit: Annotated[bool, typer.Option("--commit/--no-commit", help="Commit and push what was done.")] = True,
    max_turns: Annotated[int | None, typer.Option(min=1, help="Turns of the model, at most.")] = None,
    max_cost: Annotated[float | None, typer.Option(metavar="USD", help="Dollars, at most.")] = None,
    timeout: Annotated[int | None, typer.Option(min=30, max=7200, help="Seconds, at most.")] = None,
    gate: Annotated[str | None, typer.Option(metavar="MODE", help="strict, regression or informational.")] = None,
    trust: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="What it asks you about first: strict, balanced or trusted.")
    ] = None,
    egress: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="A host that commands may reach; several: repeat it.")
    ] = None,
    as_json: JsonOption = False,
    follow_run: Annotated[bool, typer.Option("--follow/--no-follow", help="Stay and show what happens.")] = True,
    deltas: DeltasOption = False,
    wait: WaitOption = False,
    idempotency_key: Annotated[str | None, typer.Option(help="Repeating a start with it gives the same run.")] = None,
) -> None:
    """Start a task, and follow it to its end.

    Exit code 0: completed. 1: failed, cancelled or timed out. 6: suspended; it says why and how to go on.
    Ctrl-C leaves the run going.
    For a private repository put a GitHub token in SANDPIPER_GITHUB_TOKEN.

    Examples:

        sandpiper run --repo ./my-project "Fix the failing test"
        sandpiper run --repo owner/repo --type code-review --no-follow "Review the error handling"
    """
    with connection.api() as api:
        body = _given(
            task=task,
            type=kind,
            repo=None if repo is None else repo_to_send(repo, endpoint_is_local=api.is_local),
            model=model,
            branch=branch,
            base=base,
            shouldCommit=None if commit else False,
            max_turns=max_turns,
            max_cost_usd=max_cost,
            timeoutSeconds=timeout,
            gate_mode=gate,
            trustLevel=trust,
            egress=egress,
        )
        started = api.start(body, headers=_headers(idempotency_key))
        if not follow_run:
            print_json(started) if as_json else typer.echo(started["run_id"])
            return
        _follow_to_exit(api, started["run_id"], as_json=as_json, deltas=deltas, wait=wait)


@connected
def watch(
    connection: Connection,
    *,
    run_id: RunArgument,
    after: Annotated[int, typer.Option(min=0, help="Show only the events after this one.")] = 0,
    wait: WaitOption = False,
    as_json: JsonOption = False,
    deltas: DeltasOption = False,
) -> None:
    """Follow a run live, from its first event on.

    Exit code as for `run`. The socket may be cut as often as it likes: every event is shown once.
    """
    with connection.api() as api:
        _follow_to_exit(api, run_id, after=after, as_json=as_json, deltas=deltas, wait=wait)


def _follow_to_exit(api: Api, run_id: str, *, after: int = 0, as_json: bool, deltas: bool, wait: bool) -> None:
    from sandpiper_cli.follow import exit_code_of, follow  # noqa: PLC0415 - sockets and live screens are slow to load
    from sandpiper_cli.render import view_for  # noqa: PLC0415

    try:
        ended = follow(api, run_id, view_for(as_json=as_json, deltas=deltas), after=after, wait=wait)
    except KeyboardInterrupt:
        sys.stderr.write(
            f"\nThe run goes on. Watch it: sandpiper watch {run_id}\n           Stop it: sandpiper cancel {run_id}\n"
        )
        raise typer.Exit(exits.INTERRUPTED) from None
    raise typer.Exit(exit_code_of(ended))


def _headers(idempotency_key: str | None) -> dict[str, str]:
    # from the environment only: what is on a command line, every process on the machine can read
    github_token = os.environ.get("SANDPIPER_GITHUB_TOKEN")
    return _given(**{"Idempotency-Key": idempotency_key, "X-GitHub-Token": github_token})


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
