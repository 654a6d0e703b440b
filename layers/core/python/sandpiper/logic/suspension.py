"""Whether what a suspended run waited for has come. Asked by whoever writes second: the person, or the step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandpiper.logic import budgets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandpiper.models.run import ControlRequest, Run

_ANSWERS = {
    "paused": frozenset({"resume"}),
    "awaiting_input": frozenset({"message"}),
    "awaiting_approval": frozenset({"approve", "reject"}),
}


def is_over(run: Run, unseen: Sequence[ControlRequest]) -> bool:
    """`unseen` is what came into the inbox after its sandbox had looked for the last time."""
    if run.suspend_reason == "budget_exhausted":
        return not budgets.used_up(run)
    return any(_answers(request, run) for request in unseen)


def _answers(request: ControlRequest, run: Run) -> bool:
    # A resumed run may suspend again before it has looked: the request that resumed it is no answer to that.
    of_this_attempt = request.data.get("attempt", run.attempt) == run.attempt
    return request.action in _ANSWERS.get(run.suspend_reason or "", ()) and of_this_attempt
