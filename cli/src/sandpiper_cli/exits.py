"""What a script can tell from our exit code."""

from __future__ import annotations

COMPLETED = 0
NOT_COMPLETED = 1  # the run failed, was cancelled or ran out of time
USAGE = 2
NOT_RUNNING = 3  # also: `up`, and one is running already
PORT_TAKEN = 4
API_ERROR = 5
SUSPENDED = 6  # the run waits for an answer, for more budget, or to be resumed
INTERRUPTED = 130


class CliError(Exception):
    """A sentence for the person at the terminal, and the exit code that goes with it."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code

    @property
    def lines(self) -> list[str]:
        return [str(self)]
