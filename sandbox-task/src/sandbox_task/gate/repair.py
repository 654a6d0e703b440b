"""What the agent is told about a red gate: which checks, which tests, and how their output ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandpiper.models.run import CheckResult


def failures(checks: Sequence[CheckResult]) -> str:
    return "\n\n".join(_told(check) for check in checks if check.status == "failed")


def _told(check: CheckResult) -> str:
    ending = "timed out" if check.timed_out else f"exit code {check.exit_code}"
    named = check.newly_failing or (check.tests.failing if check.tests else ())
    heading = "Tests that fail now and did not before" if check.newly_failing else "Failing tests"
    tests = f"{heading}:\n" + "".join(f"- {name}\n" for name in named) if named else ""
    return f"`{check.command}` ({ending}):\n{tests}{check.output_tail}"
