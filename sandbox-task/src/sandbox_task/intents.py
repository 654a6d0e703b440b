"""What is done outside of us is done once: noted on the run's row before it is done, and with its result afterwards.

A sandbox that dies in between leaves a note without a result. The next one then looks whether it was done, and does it
only if it was not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandpiper.errors import Fenced
from sandpiper.models.run import Intent, Run
from sandpiper.ports import Revision

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sandpiper.ports import Clock, Runs

type Result = Mapping[str, Any]


@dataclass(frozen=True)
class Intents:
    runs: Runs
    run_id: str
    attempt: int
    clock: Clock

    def once(self, name: str, do: Callable[[], Result], find: Callable[[], Result | None]) -> Result:
        """The result of `do`, whoever did it. `find` is asked only if an earlier attempt may have done it.

        Raises Fenced before anything is done, and what `do` and `find` raise.
        """
        known = self.runs.get(self.run_id).intents.get(name)
        if known and known.result is not None:
            return known.result
        found = find() if known else None
        if found is None:
            self._note(name, None)
            found = do()
        self._note(name, found)
        return found

    def _note(self, name: str, result: Result | None) -> None:
        intent = Intent(at=self.clock.now(), result=None if result is None else dict(result))

        def noted(run: Run) -> Revision:
            if run.attempt != self.attempt or run.is_terminal:
                raise Fenced("Another attempt has taken over this run.")
            return Revision({"intents": run.intents | {name: intent}})

        self.runs.revise(self.run_id, noted)
