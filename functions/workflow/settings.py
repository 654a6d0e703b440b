"""The environment of the workflow function."""

from __future__ import annotations

from shared.step_settings import StepSettings


class Settings(StepSettings):
    """Exactly what the steps need."""
