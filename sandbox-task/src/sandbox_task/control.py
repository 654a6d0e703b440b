"""The threads beside the work: one says that we live, one listens to what people and the clock want of us, and one ends
the process if the work does not end when it is told to."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from sandpiper import limits
from sandpiper.errors import Fenced, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox_task.allowance import Allowance
    from sandbox_task.inbox import Inbox
    from sandbox_task.stopping import Stop
    from sandpiper.models.run import Run
    from sandpiper.ports import Runs, Workflow


class Control:
    """A store that fails for a while is no reason to stop; being told that we are not the one any more is."""

    def __init__(
        self,
        runs: Runs,
        workflow: Workflow,
        stop: Stop,
        *,
        run_id: str,
        attempt: int,
        token: str,
        on_trouble: Callable[[str], None],
        on_hang: Callable[[], None],
    ) -> None:
        self._runs, self._workflow, self._stop = runs, workflow, stop
        self._run_id, self._attempt, self._token = run_id, attempt, token
        self._on_trouble, self._on_hang = on_trouble, on_hang
        self._allowance: Allowance | None = None
        self._inbox: Inbox | None = None
        self._over = threading.Event()

    def start(self) -> None:
        for name, every, action in (
            ("heartbeat", limits.HEARTBEAT_EVERY_SECONDS, self._beat),
            ("control", limits.CONTROL_POLL_SECONDS, self._look),
            ("watchdog", limits.CONTROL_POLL_SECONDS, self._watch),
        ):
            threading.Thread(target=self._repeat, args=(every, action), name=name, daemon=True).start()

    def serve(self, allowance: Allowance, inbox: Inbox) -> None:
        """From now on keep these up to date; they are when this returns."""
        self._allowance, self._inbox = allowance, inbox
        self._hand_on(self._runs.get(self._run_id))

    def confirm_current(self) -> None:
        """Before anything that can't be undone. Raises Fenced."""
        run = self._runs.get(self._run_id)
        if not self._is_mine(run):
            self._stop.request("fenced")
            raise Fenced("Another attempt has taken over this run.")

    def close(self) -> None:
        self._over.set()

    def _repeat(self, every: float, action: Callable[[], None]) -> None:
        while not self._over.is_set():
            try:
                action()
            except (Fenced, NotFound):
                self._stop.request("fenced")
            except Exception as error:  # noqa: BLE001 - whatever the adapters raise, the next round may succeed
                self._on_trouble(f"{threading.current_thread().name}: {error!r}")
            self._over.wait(every)

    def _beat(self) -> None:
        if not self._stop.is_fenced:
            self._workflow.heartbeat(self._token)

    def _watch(self) -> None:
        """Every wait of the work has an end, and the run's clock stops what takes too long. What hangs all the same
        is ended, so that somebody else goes on; this asks nobody, and so can't hang itself."""
        if self._stop.seconds_ago > limits.STOPPING_SECONDS:
            self._on_hang()

    def _look(self) -> None:
        if self._stop.is_fenced:
            return
        run = self._runs.get(self._run_id)
        if not self._is_mine(run):
            self._stop.request("fenced")
        elif run.cancel_requested:
            self._stop.request("cancelled")
        self._hand_on(run)
        if self._inbox is not None and self._inbox.interrupts:
            self._stop.request("paused")
        if self._allowance is not None and self._allowance.time_is_up():
            self._stop.request("timed_out")

    def _hand_on(self, run: Run) -> None:
        if self._allowance is not None:
            self._allowance.raise_to(run.budget)
        if self._inbox is not None and run.last_inbox > self._inbox.received:
            self._inbox.receive(self._runs.controls(self._run_id, after=self._inbox.received))

    def _is_mine(self, run: Run) -> bool:
        return run.attempt == self._attempt and not run.is_terminal
