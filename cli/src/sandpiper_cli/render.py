"""What a run looks like: live in a terminal, plain lines elsewhere, or one JSON document per line."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from rich.console import Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from sandpiper_cli.closing import closing_lines
from sandpiper_cli.narrate import Narrator
from sandpiper_cli.screen import is_animated, print_lines, terminal_console
from sandpiper_cli.speech import Speech
from sandpiper_cli.tables import gate_table
from sandpiper_cli.text import one_line, seconds
from sandpiper_cli.waiting import waiting_lines

if TYPE_CHECKING:
    from typing import TextIO

    from rich.console import Console, RenderableType

    from sandpiper_cli.client import Event, Json, Link


class Ending(NamedTuple):
    """What there is to show when a run is over."""

    run: Json
    diff: str | None
    log: Link | None


class View(Protocol):
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    def event(self, event: Event) -> None: ...
    def delta(self, delta: Json) -> None: ...
    def waiting(self, run: Json) -> None: ...
    def ended(self, ending: Ending) -> None: ...


class JsonView:
    """Every event as one line, then the run; what the model is just saying only if it was asked for."""

    def __init__(self, out: TextIO, *, deltas: bool = False) -> None:
        self._out, self._deltas = out, deltas

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._out.flush()

    def event(self, event: Event) -> None:
        self._write(asdict(event))

    def delta(self, delta: Json) -> None:
        if self._deltas:
            self._write(delta)

    def waiting(self, run: Json) -> None:
        """The event has said it."""

    def ended(self, ending: Ending) -> None:
        self._write(ending.run)

    def _write(self, document: Any) -> None:
        self._out.write(json.dumps(document) + "\n")  # ASCII only, so no terminal sequence survives
        self._out.flush()


class ConsoleView:
    """Lines as they come; in a terminal with a moving status line below them."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._narrator = Narrator()
        self._status = StatusLine()
        self._speech = Speech()
        self._live = Live(
            get_renderable=self._below,
            console=console,
            refresh_per_second=8,
            transient=True,
            auto_refresh=is_animated(console),
        )

    def __enter__(self) -> Self:
        if is_animated(self._console):
            self._live.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._live.stop()

    def event(self, event: Event) -> None:
        self._status.update(event)
        self._speech.update(event)
        print_lines(self._console, self._narrator.tell(event))

    def delta(self, delta: Json) -> None:
        self._speech.hear(delta)

    def waiting(self, run: Json) -> None:
        print_lines(self._console, waiting_lines(run))

    def ended(self, ending: Ending) -> None:
        self._live.stop()
        if is_animated(self._console) and (table := gate_table(ending.run)) is not None:
            self._console.print(table)
        print_lines(self._console, closing_lines(ending.run, ending.diff, ending.log))

    def _below(self) -> RenderableType:
        return Group(self._speech, self._status) if self._speech else self._status


class StatusLine:
    """A spinner, what is going on, for how long, and what it has cost."""

    def __init__(self) -> None:
        self._spinner = Spinner("dots", style="cyan")
        self._since = time.monotonic()
        self._doing = "waiting for the first event"
        self._turns = 0
        self._cost = 0.0

    def update(self, event: Event) -> None:
        if event.type == "agent_turn_completed":
            self._turns += 1
            self._cost += float(event.data.get("cost_usd") or 0)
        elif event.type == "tool_started":
            self._doing = one_line(str(event.data.get("command") or event.data.get("tool") or "working"), 60)
        elif not event.type.startswith(("tool_", "file_", "agent_message")):
            self._doing = event.type.replace("_", " ")

    def __rich__(self) -> Spinner:
        parts = [self._doing, seconds(time.monotonic() - self._since)]
        parts += [f"turn {self._turns}"] if self._turns else []
        parts += [f"${self._cost:.4f}"] if self._cost else []
        self._spinner.update(text=Text(" · ".join(parts), style="bold"))
        return self._spinner


def view_for(*, as_json: bool, deltas: bool = False) -> View:
    return JsonView(sys.stdout, deltas=deltas) if as_json else ConsoleView(terminal_console())
