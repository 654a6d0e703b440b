"""The options that every command takes, declared once."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sandpiper_cli.session import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

_PANEL = "Connection"

EndpointOption = Annotated[
    str | None,
    typer.Option(
        help="URL of the API (env SANDPIPER_ENDPOINT; default: the stack that runs here).", rich_help_panel=_PANEL
    ),
]
TokenOption = Annotated[
    str | None, typer.Option(help="JWT to send (env SANDPIPER_TOKEN; default: one of our own).", rich_help_panel=_PANEL)
]
StateDirOption = Annotated[
    Path | None,
    typer.Option(help="Where the local stack keeps its state (env SANDPIPER_STATE_DIR).", rich_help_panel=_PANEL),
]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, as `sandpiper runs` shows it.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]

_CONNECTION = {"endpoint": EndpointOption, "token": TokenOption, "state_dir": StateDirOption}


def connected(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the connection options, and call it with the `Connection` that they make as first argument."""

    @functools.wraps(command)
    def wrapper(ctx: typer.Context, **given: Any) -> None:
        said = Connection(**{name: given.pop(name) for name in _CONNECTION})
        command(said.over(ctx.obj), **given)

    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    keyword = inspect.Parameter.KEYWORD_ONLY
    added = [inspect.Parameter(name, keyword, default=None, annotation=kind) for name, kind in _CONNECTION.items()]
    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    parameters = [context, *(parameter.replace(kind=keyword) for parameter in own), *added]
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapper
