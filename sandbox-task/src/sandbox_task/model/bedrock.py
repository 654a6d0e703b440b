"""Amazon Bedrock by the credentials of the task's role; Anthropic's models there by InvokeModelWithResponseStream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox_task.model.anthropic import timeout
from sandbox_task.model.port import TryFailed

if TYPE_CHECKING:
    import anthropic

# What InvokeModel asks for; the SDK would send the version of Anthropic's own API, which Bedrock may refuse.
VERSION = {"anthropic_version": "bedrock-2023-05-31"}


@dataclass(frozen=True)
class Place:
    """`endpoint` is Bedrock's own of the region unless there is another."""

    region: str
    endpoint: str | None = None

    def __post_init__(self) -> None:
        if not self.region:
            raise TryFailed("model_request_error", "Bedrock needs a region: set AWS_REGION.", retryable=False)


def anthropic_client(place: Place) -> anthropic.AnthropicBedrock:
    import anthropic  # noqa: PLC0415 - costs a second, see import_early

    return anthropic.AnthropicBedrock(
        aws_region=place.region, base_url=place.endpoint, max_retries=0, timeout=timeout()
    )
