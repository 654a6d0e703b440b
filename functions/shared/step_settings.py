"""The environment that the steps of a run need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class StepSettings:
    runs_table: str
    events_table: str
    artifacts_bucket: str
    cluster_arn: str
    run_secrets_key_id: str
    concurrency: int
    # The workflow function is part of the state machine and can't name it; it only answers tokens.
    state_machine_arn: str = ""
    use_spot: bool = False
    github_function: str = ""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        return cls(
            runs_table=environment["RUNS_TABLE"],
            events_table=environment["EVENTS_TABLE"],
            artifacts_bucket=environment["ARTIFACTS_BUCKET"],
            cluster_arn=environment["CLUSTER_ARN"],
            run_secrets_key_id=environment["RUN_SECRETS_KEY_ID"],
            concurrency=int(environment["CONCURRENCY"]),
            state_machine_arn=environment.get("STATE_MACHINE_ARN", ""),
            use_spot=environment.get("USE_SPOT", "false") == "true",
            github_function=environment.get("GITHUB_FUNCTION", ""),
        )
