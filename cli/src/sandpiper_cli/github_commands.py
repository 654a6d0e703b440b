"""`comment` and `github show`: a person on the fake GitHub of the stack that runs here."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sandpiper_cli import exits
from sandpiper_cli.help import Command
from sandpiper_cli.narrate import Line
from sandpiper_cli.options import JsonOption, connected
from sandpiper_cli.output import print_json
from sandpiper_cli.screen import print_lines, terminal_console
from sandpiper_cli.session import Connection, local_info

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandpiper_local.fake_github.client import GitHubAdmin

_PLACE = re.compile(r"([\w.-]+/[\w.-]+)#(\d+)")
PlaceArgument = Annotated[str, typer.Argument(metavar="REPO#N", help="An issue or a pull request: owner/repo#number.")]
UserOption = Annotated[str, typer.Option("--as", metavar="USER", help="Who speaks: ann may write, rob may only read.")]

github = typer.Typer(
    name="github",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Look at the fake GitHub of `sandpiper up --github fake`.",
)


@connected
def comment(
    connection: Connection,
    *,
    place: PlaceArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to say, such as `/implement`.")],
    user: UserOption = "ann",
    as_json: JsonOption = False,
) -> None:
    """Comment on an issue or a pull request of the fake GitHub, as a person would.

    Example: sandpiper comment "acme/tillroll#1" "/implement"
    """
    repository, number = _parse(place)
    with _fake(connection) as api:
        said = api.comment(repository, number, text, by=user)
    print_json(said) if as_json else typer.echo(said["html_url"])


@github.command("show", cls=Command)
@connected
def show(connection: Connection, *, place: PlaceArgument, as_json: JsonOption = False) -> None:
    """Show an issue or a pull request: what was said, and the open pull requests.

    Example: sandpiper github show "acme/tillroll#1"
    """
    repository, number = _parse(place)
    with _fake(connection) as api:
        owner = repository.partition("/")[0]
        path = f"/repos/{repository}"
        issue = api.call("GET", f"{path}/issues/{number}", by=owner)
        comments = api.call("GET", f"{path}/issues/{number}/comments?per_page=100", by=owner)
        pulls = api.call("GET", f"{path}/pulls?state=all", by=owner)
    if as_json:
        print_json({"issue": issue, "comments": comments, "pulls": pulls})
    else:
        print_lines(terminal_console(), _lines(issue, comments, pulls))


def _lines(issue: dict[str, Any], comments: list[dict[str, Any]], pulls: list[dict[str, Any]]) -> list[Line]:
    lines = [Line("title", f"#{issue['number']} {issue['title']} ({issue['state']})"), Line("dim", issue["html_url"])]
    for said in [issue, *comments]:
        lines += [Line("title", f"\n{said['user']['login']}"), Line("words", said["body"] or "")]
    for pull in pulls:
        words = f"\nPull request #{pull['number']} {pull['title']} ({pull['head']['ref']}, {pull['state']})"
        lines += [Line("good", words), Line("dim", pull["html_url"])]
    return lines


def _parse(place: str) -> tuple[str, int]:
    found = _PLACE.fullmatch(place)
    if found is None:
        raise exits.CliError(f"{place} is no issue or pull request: write owner/repo#number", exits.USAGE)
    return found[1], int(found[2])


@contextlib.contextmanager
def _fake(connection: Connection) -> Iterator[GitHubAdmin]:
    import httpx  # noqa: PLC0415 - the other commands start without it

    from sandpiper_local.fake_github.client import GitHubAdmin  # noqa: PLC0415 - the client alone starts without it

    url = local_info(connection.state).get("github_url")
    if not url:
        raise exits.CliError(
            "there is no fake GitHub here: start one with `sandpiper up --github fake`", exits.NOT_RUNNING
        )
    api = GitHubAdmin(url)
    try:
        yield api
    except httpx.HTTPStatusError as error:
        words = error.response.json().get("message", "no reason given")
        raise exits.CliError(f"GitHub answered {error.response.status_code}: {words}", exits.API_ERROR) from error
    except httpx.TransportError as error:
        raise exits.CliError(f"nobody answers at {url} ({error})", exits.NOT_RUNNING) from error
    finally:
        api.close()
