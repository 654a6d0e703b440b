"""Asking a person before a call is made. The sandbox waits for a while; then the run waits without one."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sandbox_task.agent.policy.assess import assess
from sandbox_task.isolation.egress.hosts import parse_host
from sandbox_task.suspension import Suspended
from sandpiper import limits
from sandpiper.models.run import ApprovalRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from sandbox_task.agent.policy.risks import Risk
    from sandbox_task.allowance import Allowance
    from sandbox_task.inbox import Inbox
    from sandbox_task.model.port import ToolCall
    from sandbox_task.stopping import Stop
    from sandpiper.models.run import ControlRequest
    from sandpiper.models.spec import TrustLevel

_REJECTED = "Not done: a person has rejected this call. Do not try to come to the same by another way."
_NOTE = "\nTheir note: {note}"


@dataclass
class Approvals:
    """`announce` puts a request, and the id of its call, where people find it; it returns what they see.
    `may_open`: whether a host is closed and a person's word would open it."""

    run_id: str
    trust: TrustLevel
    workspace: str
    inbox: Inbox
    stop: Stop
    allowance: Allowance
    announce: Callable[[ApprovalRequest, str], ApprovalRequest]
    now: Callable[[], datetime]
    wait_seconds: float = limits.APPROVAL_WAIT_SECONDS
    may_open: Callable[[str, int], bool] = lambda _host, _port: False
    _waited: float = field(default=0.0, init=False)

    def risk_of(self, call: ToolCall) -> Risk | None:
        """What has to be asked about: nothing that was approved for the rest of the run."""
        risk = assess(call, self.trust, workspace=self.workspace, may_ask=self._may_ask)
        return None if risk is None or self.inbox.allows(risk.kind) else risk

    def refusal(self, call: ToolCall, shown: Mapping[str, Any]) -> str | None:
        """What the model is told instead of a result, or None: the call may be made. Raises Suspended, Stopped."""
        risk = self.risk_of(call)
        if risk is None:
            return None
        approval_id = _id_of(self.run_id, call)
        answer = self.inbox.answer_to(approval_id) or self._ask(approval_id, call, shown, risk)
        if answer.action == "approve":
            return None
        note = answer.data.get("note")
        return _REJECTED + (_NOTE.format(note=note) if note else "")

    def _may_ask(self, host: str) -> bool:
        """Nobody is asked about what is open, what stays closed whatever they say, or what is no host."""
        try:
            return self.may_open(*parse_host(host))
        except ValueError:
            return False

    def _ask(self, approval_id: str, call: ToolCall, shown: Mapping[str, Any], risk: Risk) -> ControlRequest:
        request = ApprovalRequest(
            id=approval_id,
            tool=call.name,
            shown={**shown, **_written(call.arguments)},
            reason=risk.reason,
            risk=risk.level,
            kind=risk.kind,
            requested_at=self.now(),
        )
        seen = self.announce(request, call.id)
        answer = self._wait_for(approval_id)
        if answer is None:
            raise Suspended("awaiting_approval", f"It waits for an approval. {risk.reason}", approval=seen)
        return answer

    def _wait_for(self, approval_id: str) -> ControlRequest | None:
        """Waiting is no work, so the run's own clock stands still. Raises Suspended, Stopped."""
        patience = min(self.wait_seconds, limits.APPROVAL_WAITING_SECONDS - self._waited)
        started = time.monotonic()
        with self.allowance.standing_still():
            while (answer := self.inbox.answer_to(approval_id)) is None:
                if self.inbox.is_paused:
                    raise Suspended("paused", "The run was paused while it waited for an approval.")
                self.stop.check()
                if time.monotonic() - started >= patience:
                    break
                self.stop.wait(limits.APPROVAL_POLL_SECONDS)
        self._waited += time.monotonic() - started
        return answer


def _written(arguments: Mapping[str, Any]) -> dict[str, str]:
    """What would stand in a file: nobody should approve it unseen."""
    if "content" in arguments:
        return {"content": str(arguments["content"])}
    if "edits" in arguments:
        return {"content": "\n".join(f"replace: {edit['old']}\nby: {edit['new']}" for edit in arguments["edits"])}
    return {}


def _id_of(run_id: str, call: ToolCall) -> str:
    """The same for the same call wherever the run goes on, and for no other."""
    said = json.dumps([run_id, call.id, call.name, call.arguments], sort_keys=True, default=str)
    return f"ap-{hashlib.sha256(said.encode(errors='replace')).hexdigest()[:20]}"
