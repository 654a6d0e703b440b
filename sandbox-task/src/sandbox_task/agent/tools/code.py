"""The tool that runs code in an interpreter that stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from sandbox_task.agent.tools.commands import with_status
from sandbox_task.agent.tools.interpreters import Language  # noqa: TC001 - pydantic reads it
from sandbox_task.agent.tools.outcome import Arguments, Outcome
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandbox_task.agent.ports import Sink
    from sandbox_task.agent.tools.interpreters import Evaluation
    from sandbox_task.agent.tools.sessions import Sessions


class CodeArguments(Arguments):
    language: Language
    code: str = Field(min_length=1)
    timeout_seconds: int = Field(default=limits.DEFAULT_COMMAND_SECONDS, ge=1, le=limits.MAX_COMMAND_SECONDS)


class RunCode:
    name: ClassVar = "run_code"
    description: ClassVar = (
        "Run code in an interpreter whose state stays for the next call. Returns its output and the last value."
    )
    writes: ClassVar = False  # it can, but the tree is compared at the end
    parallel: ClassVar = False
    arguments = CodeArguments

    def __init__(self, sink: Sink, sessions: Sessions) -> None:
        self._sink, self._sessions = sink, sessions

    def shown(self, arguments: CodeArguments) -> Mapping[str, Any]:
        return {"language": arguments.language, "code": arguments.code}

    def run(self, arguments: CodeArguments, call_id: str) -> Outcome:
        with self._sessions.outputs.record(self._sink, call_id) as record:
            evaluation = self._sessions.interpreters.run(
                arguments.language, arguments.code, timeout=arguments.timeout_seconds, on_output=record.feed
            )
        if not record.is_cut:
            self._sessions.outputs.drop(record.kept)
        data = {"language": arguments.language, "ended_by": evaluation.ending}
        words = _in_words(evaluation, arguments.timeout_seconds)
        return Outcome(
            with_status(record.text, words),
            data,
            succeeded=evaluation.ending == "ok",
            was_broken_off=evaluation.ending == "died",
        )


def _in_words(evaluation: Evaluation, seconds: int) -> str:
    words = {
        "ok": "done",
        "error": "ended by an error; the state is kept",
        "interrupted": f"interrupted after {seconds} s; the state is kept",
        "killed": f"did not yield after {seconds} s: the interpreter was killed, and its state is lost",
        "died": f"the interpreter is gone ({evaluation.detail}), and its state is lost; the next call starts a new one",
    }[evaluation.ending]
    return f"a new interpreter: the state of earlier calls was lost; {words}" if evaluation.lost_state else words
