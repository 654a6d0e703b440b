"""The state machine's definition, in the words that ministack understands."""

from __future__ import annotations

import json
import re
from typing import Any

from sandpiper.limits import (
    APPROVAL_WAITING_SECONDS,
    FINISHING_SECONDS,
    MAX_RAISED_TIMEOUT_SECONDS,
    PROVISIONING_SECONDS,
)

# Longer than any run may be given: the sandbox's own clock is the one that fires.
LONGEST_TASK_SECONDS = PROVISIONING_SECONDS + MAX_RAISED_TIMEOUT_SECONDS + APPROVAL_WAITING_SECONDS + FINISHING_SECONDS


def with_fixed_timeouts(definition: bytes) -> bytes:
    """ministack does not evaluate a `TimeoutSeconds` that is an expression, and fails the execution over it.

    The longest that the expression names is taken, or one that is longer than any run.
    """
    document = json.loads(definition)
    for state in _states(document):
        if isinstance(expression := state.get("TimeoutSeconds"), str):
            named = [int(number) for number in re.findall(r"\b[0-9]+\b", expression)]
            state["TimeoutSeconds"] = max(named, default=LONGEST_TASK_SECONDS)
    return json.dumps(document).encode()


def _states(machine: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for state in machine["States"].values():
        nested = [*state.get("Branches", []), *([state["ItemProcessor"]] if "ItemProcessor" in state else [])]
        found += [state, *(inner for part in nested for inner in _states(part))]
    return found
