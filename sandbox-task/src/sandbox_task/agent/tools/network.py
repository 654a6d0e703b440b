"""The tool that asks a person for a host that commands can't reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, field_validator

from sandbox_task.agent.tools.outcome import Arguments, Outcome, ToolError
from sandbox_task.isolation.egress.hosts import parse_host

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandbox_task.isolation.egress.gateway import Gateway


class NetworkArguments(Arguments):
    host: str = Field(description="With :port if it is not 443.")
    reason: str = Field(min_length=1)

    @field_validator("host")
    @classmethod
    def _is_one_host(cls, value: str) -> str:
        parse_host(value)
        return value


class RequestNetwork:
    """What is asked is `policy`'s business: by the time that this runs, somebody has said yes."""

    name: ClassVar = "request_network"
    description: ClassVar = "Ask a person to let commands reach a host by https, when the proxy refuses it (403)."
    writes: ClassVar = False
    parallel: ClassVar = False
    arguments = NetworkArguments

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def shown(self, arguments: NetworkArguments) -> Mapping[str, Any]:
        return arguments.model_dump()

    def run(self, arguments: NetworkArguments, _call_id: str) -> Outcome:
        if refusal := self._gateway.open_host(*parse_host(arguments.host)):
            raise ToolError(f"{arguments.host} stays closed: {refusal}.")
        return Outcome(f"Commands can reach {arguments.host} now.", dict(self.shown(arguments)))
