"""A run that can't go on by itself now, and need not be lost: it waits, without a sandbox, until somebody helps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandpiper.models.run import ApprovalRequest, LimitName, SuspendReason


class Suspended(Exception):
    """Raised where the work has to wait. Whoever catches it stores a checkpoint."""

    def __init__(
        self,
        reason: SuspendReason,
        message: str,
        *,
        question: str | None = None,
        exhausted: LimitName | None = None,
        approval: ApprovalRequest | None = None,
    ) -> None:
        super().__init__(message)
        self.reason: SuspendReason = reason
        self.message = message
        self.question = question
        self.exhausted: LimitName | None = exhausted
        self.approval = approval
