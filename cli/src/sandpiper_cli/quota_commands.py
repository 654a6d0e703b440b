"""What a user or an organization may start and spend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sandpiper_cli import exits
from sandpiper_cli.narrate import Line
from sandpiper_cli.options import JsonOption, connected
from sandpiper_cli.output import print_json
from sandpiper_cli.screen import print_lines, terminal_console
from sandpiper_cli.session import Connection  # noqa: TC001 - typer reads it at run time
from sandpiper_cli.text import one_line

if TYPE_CHECKING:
    from sandpiper_cli.client import Json

_WORDS = {
    "starts_per_minute": "Starts in a minute",
    "starts_per_day": "Starts in 24 hours",
    "monthly_usd": "Dollars this month",
    "concurrency": "At the same time",
}


@connected
def quota(
    connection: Connection,
    *,
    user: Annotated[str | None, typer.Option(help="The user, as `sub` of the token names it.")] = None,
    org: Annotated[str | None, typer.Option(help="The organization.")] = None,
    limits: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help=f"One of {', '.join(_WORDS)}.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show or set the quotas of a user or an organization; for tokens with the scope `admin`.

    What is set replaces all that was set before: limits that are not named are the default again. Your own quotas are
    part of `sandpiper usage`.

    Examples:

        sandpiper quota --user ann
        sandpiper quota --org acme --set concurrency=10 --set monthly_usd=500
    """
    if (user is None) == (org is None):
        raise exits.CliError("name a --user or an --org", exits.USAGE)
    kind, name = ("users", user) if user is not None else ("orgs", org)
    wanted = dict(map(_limit, limits or []))
    with connection.api() as api:
        answer = api.set_quota(kind, str(name), wanted) if wanted else api.quota(kind, str(name))
    print_json(answer) if as_json else print_lines(terminal_console(), quota_lines(answer["quota"]))


def quota_lines(found: Json) -> list[Line]:
    whose = "Quota" if found["scope"] == "user" else "Quota of the organization"
    lines = [_line(use) for use in found["limits"] if use["limit"] is not None]
    return [Line("title", one_line(f"{whose} {found['name']}", 300)), *(lines or [Line("plain", "No limits")])]


def _line(use: Json) -> Line:
    shown = f"{use['used']:,.2f} of {use['limit']:,.2f}" if use["name"] == "monthly_usd" else _whole(use)
    opens = f", again at {one_line(str(use['opens_at']), 40)}" if use.get("opens_at") else ""
    style = "warn" if use["left"] == 0 else "plain"
    return Line(style, f"{_WORDS.get(use['name'], one_line(use['name'], 40)):<20}{shown} used{opens}")


def _whole(use: Json) -> str:
    return f"{use['used']:,.0f} of {use['limit']:,.0f}"


def _limit(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name.strip(), float(value)
    except ValueError as error:
        raise exits.CliError(f"{text!r} is no NAME=VALUE with a number", exits.USAGE) from error
