"""The tools of one run. A call that is wrong in any way is answered to the model, never raised."""

from __future__ import annotations

import functools
import json
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from pydantic import ValidationError

from sandbox_task.agent.tools.outcome import Arguments, Outcome, ToolError
from sandbox_task.agent.tools.planning import AskUser, Finish, FinishTool, UpdatePlan
from sandbox_task.isolation.wall import WallError
from sandbox_task.model.port import MALFORMED, ToolCall, ToolResult, ToolSpec
from sandbox_task.suspension import Suspended
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sandbox_task.agent.approvals import Approvals
    from sandbox_task.agent.ports import Sink
    from sandbox_task.stopping import Reason, Stop


_HARMLESS = {UpdatePlan.name, AskUser.name, FinishTool.name}
_BREAKS_OFF: dict[Reason, str] = {
    "cancelled": "the run was cancelled",
    "timed_out": "the run's time was up",
    "fenced": "another sandbox has taken over",
    "terminated": "the sandbox was told to stop",
    "paused": "the run was paused",
}


class Tool[A: Arguments](Protocol):
    name: ClassVar[str]
    description: ClassVar[str]
    writes: ClassVar[bool]
    parallel: ClassVar[bool]  # changes nothing and waits for nothing: may run beside others
    arguments: type[A]

    def shown(self, arguments: A) -> Mapping[str, Any]:
        """What of the call the events show."""

    def run(self, arguments: A, call_id: str) -> Outcome:
        """Raises ToolError or WallError."""


class Toolbox:
    """`finish` is set once the agent has said that it is done.

    `on_path` is told each file that a tool has read or written; what it returns is added to what the model is told.
    """

    def __init__(
        self,
        tools: Sequence[Tool[Any]],
        sink: Sink,
        stop: Stop,
        *,
        on_path: Callable[[str], str | None] | None = None,
        approvals: Approvals | None = None,
    ) -> None:
        self.specs = tuple(_spec(tool) for tool in tools)
        self.finish: Finish | None = None
        self._tools = {tool.name: tool for tool in tools}
        self._sink, self._stop, self._on_path, self._approvals = sink, stop, on_path, approvals

    def steps(self, calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
        """In which order, and which side by side: what may have to wait for a person comes late, the end last."""
        steps: list[list[ToolCall]] = []
        for side_by_side, group in groupby(sorted(calls, key=self._rank), key=self._is_parallel):
            some = list(group)
            steps += [some] if side_by_side else [[call] for call in some]
        return steps

    def call_all(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """One result for each call, in order. Neighbours that only read run at the same time, all others alone."""
        results: list[ToolResult] = []
        for side_by_side, group in groupby(calls, key=self._is_parallel):
            some = list(group)
            if side_by_side and len(some) > 1:
                with ThreadPoolExecutor(limits.PARALLEL_CALLS, thread_name_prefix="tool") as pool:
                    done = list(pool.map(self._perform, some))
                results += [self._with_more(*each) for each in done]
            else:
                results += [self.call(call) for call in some]
        return results

    def may_touch_files(self, calls: Sequence[ToolCall]) -> bool:
        return any(call.name not in _HARMLESS and not self._is_parallel(call) for call in calls)

    def call(self, call: ToolCall) -> ToolResult:
        return self._with_more(*self._perform(call))

    def _perform(self, call: ToolCall) -> tuple[ToolResult, str | None]:
        """The result, and the path of the file that it is about."""
        self._stop.check()
        started = time.monotonic()
        try:
            tool = self._find(call.name)
            arguments = _parse(tool, call.arguments)
            self._ask_first(call, tool.shown(arguments))
            outcome = self._run(tool, arguments, call, started)
        except (ToolError, WallError) as error:
            self._tell_end("tool_failed", call, started, error=str(error))
            return ToolResult(call_id=call.id, content=str(error), is_error=True), None
        self._stop.check()
        if isinstance(arguments, Finish):
            self.finish = arguments
        return ToolResult(call_id=call.id, content=outcome.content, failed=not outcome.succeeded), outcome.path

    def _run(self, tool: Tool[Any], arguments: Arguments, call: ToolCall, started: float) -> Outcome:
        """However it ends, that is told: whoever follows the run must not take it for running for ever."""
        self._sink.emit("tool_started", tool_id=call.id, tool=call.name, **tool.shown(arguments))
        try:
            outcome = tool.run(arguments, call.id)
        except (ToolError, WallError):
            raise
        except Suspended:  # it is made again when the run goes on
            self._tell_end("tool_completed", call, started, ended_by="suspended")
            raise
        except BaseException:
            self._tell_end("tool_failed", call, started, error="It was broken off by an error in the sandbox itself.")
            raise
        if self._stop.reason and outcome.was_broken_off:
            why = f"Broken off, because {_BREAKS_OFF[self._stop.reason]}."
            self._tell_end("tool_failed", call, started, error=why, **outcome.data)
        else:
            self._tell_end("tool_completed", call, started, **outcome.data)
        return outcome

    def _tell_end(
        self, type_: Literal["tool_completed", "tool_failed"], call: ToolCall, started: float, **data: Any
    ) -> None:
        since = round((time.monotonic() - started) * 1000)
        self._sink.emit(type_, **{"tool_id": call.id, "tool": call.name, "duration_ms": since, **data})

    def _ask_first(self, call: ToolCall, shown: Mapping[str, Any]) -> None:
        """Raises ToolError if a person does not want it done; Suspended or Stopped if there is no answer."""
        if self._approvals and (refusal := self._approvals.refusal(call, shown)):
            raise ToolError(refusal)

    def _with_more(self, result: ToolResult, path: str | None) -> ToolResult:
        more = self._on_path(path) if self._on_path and path is not None else None
        return result.model_copy(update={"content": f"{result.content}\n{more}"}) if more else result

    def _is_parallel(self, call: ToolCall) -> bool:
        return call.name in self._tools and self._tools[call.name].parallel

    def _rank(self, call: ToolCall) -> int:
        if call.name == "finish":
            return 3
        if call.name == AskUser.name:
            return 2
        return 1 if self._approvals and self._approvals.risk_of(call) else 0

    def take_finish(self) -> Finish | None:
        finish, self.finish = self.finish, None
        return finish

    def _find(self, name: str) -> Tool[Any]:
        if name not in self._tools:
            raise ToolError(f"There is no tool {name!r}. There are: {', '.join(self._tools)}.")
        return self._tools[name]


def _parse(tool: Tool[Any], raw: dict[str, Any]) -> Arguments:
    if raw.keys() == {MALFORMED}:
        raise ToolError(f"Wrong arguments for {tool.name}: they are no JSON object.")
    try:
        json.dumps(raw, ensure_ascii=False).encode()
        parsed: Arguments = tool.arguments.model_validate(raw)
    except UnicodeEncodeError as error:
        raise ToolError(f"Wrong arguments for {tool.name}: half a character (a lone surrogate) is no text.") from error
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, problem['loc'])) or 'arguments'}: {problem['msg']}" for problem in error.errors()
        )
        raise ToolError(f"Wrong arguments for {tool.name}: {wrong}") from error
    return parsed


def describe_all() -> None:
    """What the model is told of arguments, for all tools that have been imported: to be done ahead of the work."""
    for arguments in Arguments.__subclasses__():
        _parameters(arguments)


def _spec(tool: Tool[Any]) -> ToolSpec:
    arguments: type[Arguments] = tool.arguments
    return ToolSpec(name=tool.name, description=tool.description, parameters=_parameters(arguments))


@functools.cache
def _parameters(arguments: type[Arguments]) -> Any:
    return _without_titles(arguments.model_json_schema())


def _without_titles(schema: Any) -> Any:
    """Titles and defaults repeat what the model can see; without them the request is a third smaller."""
    if isinstance(schema, dict):
        dropped = ("title", "default") if "type" in schema or "anyOf" in schema or "properties" in schema else ()
        kept = {key: value for key, value in schema.items() if key not in dropped or not isinstance(value, str | None)}
        return {key: _without_titles(value) for key, value in kept.items()}
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    return schema
