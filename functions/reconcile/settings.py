"""The environment of the reconcile function."""

from __future__ import annotations

from shared.step_settings import StepSettings


class Settings(StepSettings):
    """Exactly what the steps need, with the state machine whose executions are looked for."""
