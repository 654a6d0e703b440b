"""Which checks decide about a piece of work: declared ones, else the plan's, else what the repository shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox_task.gate.detect import detect
from sandbox_task.gate.proof import honest, judge_proof
from sandbox_task.options import Check, Options
from sandpiper import limits

if TYPE_CHECKING:
    from sandbox_task.workspace.repository import Repository
    from sandpiper.models.run import Plan
    from sandpiper.models.spec import GateMode, RunSpec


@dataclass(frozen=True)
class Selection:
    source: str  # .sandpiper.yml, plan, detected
    checks: tuple[Check, ...]
    refused: tuple[str, ...] = ()  # which commands of the plan prove little or nothing, and why


def gate_mode(spec: RunSpec, options: Options) -> GateMode:
    return spec.gate_mode or options.gate or "regression"


def declared_checks(options: Options) -> Selection:
    return Selection(".sandpiper.yml", options.checks)


def select_checks(options: Options, plan: Plan | None, repository: Repository, tree: str) -> Selection:
    if options.checks:
        return declared_checks(options)
    planned, idle, refused = _planned(plan)
    if planned:
        return Selection("plan", planned[: limits.MAX_CHECKS], refused)
    found = tuple(Check(name=command, run=command) for command in detect(repository, tree))
    if found or not idle:
        return Selection("detected", found[: limits.MAX_CHECKS], refused)
    return Selection("plan", idle[: limits.MAX_CHECKS], refused)


def _planned(plan: Plan | None) -> tuple[tuple[Check, ...], tuple[Check, ...], tuple[str, ...]]:
    """A plan is the model's. What proves little counts only where nothing better is to be had, and that is said."""
    commands = dict.fromkeys(honest(command) for command in (plan.validation_commands if plan else ()))
    found = {command: judge_proof(command) for command in commands if command}
    checks = {command: Check(name=command, run=command) for command in found}
    refused = tuple(f"`{command}` is a poor check: {proof.words}" for command, proof in found.items() if proof.words)
    return (
        tuple(checks[command] for command, proof in found.items() if proof.kind == "proof"),
        tuple(checks[command] for command, proof in found.items() if proof.kind == "idle"),
        refused,
    )
