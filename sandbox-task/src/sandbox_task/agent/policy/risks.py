"""The risks that there are. `kind` is what "approve for the rest of the run" is about."""

from __future__ import annotations

from typing import Literal, NamedTuple

Level = Literal["low", "medium", "high"]


class Risk(NamedTuple):
    level: Level
    reason: str
    kind: str


PUBLISHES = Risk("high", "It publishes something outside of the sandbox, which can't be taken back.", "publish")
PUSHES = Risk("high", "It pushes to a remote repository; Sandpiper itself pushes the work when it is proven.", "push")
CHANGES_SERVICES = Risk("high", "It changes or deletes what runs outside of the sandbox.", "services")
DELETES_WORK = Risk("high", "It deletes the whole workspace, its git directory or what is above it.", "delete")
DISCARDS_WORK = Risk("medium", "It throws away all changes that are not committed, the run's own work.", "discard")
RUNS_DOWNLOAD = Risk("high", "It runs a program that it downloads, unseen.", "download")
TOUCHES_MACHINE = Risk("high", "It overwrites a device or stops the machine.", "machine")
COMMAND = Risk("low", "This run asks before every command.", "command")
INPUT = Risk("low", "This run asks before everything that is typed into a program.", "command")
CODE = Risk("low", "This run asks before all code.", "code")
RUNS_LATER = Risk("medium", "The file is run later by others: by CI, by git or by Sandpiper.", "runs_later")


def network(host: str) -> Risk:
    """About this host alone: who lets a run reach one for its rest has not said yes to another."""
    return Risk("medium", f"{host} is not on the list of the hosts that commands may reach.", f"network:{host}")
