"""What happens in a run, as facts with a number. The names are fixed: clients rely on them."""

from datetime import datetime
from typing import Any, Literal, get_args

from pydantic import Field

from sandpiper.models.base import Model

EventType = Literal[
    "run_queued", "run_slot_waiting", "run_dispatched", "run_started", "run_suspended", "run_resumed",
    "run_recovered", "run_completed", "run_failed", "run_cancelled", "run_timed_out", "run_message_received",
    "repo_clone_started", "repo_clone_completed", "repo_context_collected",
    "git_branch_created", "file_changed", "diff_generated",
    "prompt_strategy_selected", "planning_started", "planning_completed", "plan_updated",
    "agent_turn_started", "agent_message", "agent_turn_completed", "agent_turn_failed", "agent_no_progress",
    "agent_finished", "agent_finish_rejected", "agent_budget_extended", "agent_budget_exhausted",
    "tool_started", "tool_output", "tool_completed", "tool_failed",
    "approval_requested", "approval_resolved", "approval_expired",
    "gate_baseline_completed", "gate_checks_selected", "gate_check_started", "gate_check_passed",
    "gate_check_failed", "gate_check_known_broken", "gate_repair_started", "gate_completed", "gate_skipped",
    "story_selected", "story_updated", "story_skipped",
    "commit_created", "commit_pushed", "commit_skipped",
    "pr_opened", "pr_updated", "review_submitted",
    "deploy_started", "deploy_completed", "deploy_failed",
    "log_stored", "warning",
]  # fmt: skip

EVENT_TYPES: tuple[str, ...] = get_args(EventType)


class NewEvent(Model):
    """Something that happened and has no number yet."""

    type: EventType
    data: dict[str, Any] = Field(default_factory=dict)


class Event(Model):
    """One line of the log of a run. `seq` counts 1, 2, 3, … without a gap."""

    run_id: str
    seq: int
    ts: datetime
    attempt: int
    type: EventType
    data: dict[str, Any] = Field(default_factory=dict)
