"""Which tools a run gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandbox_task.agent.tools.code import RunCode
from sandbox_task.agent.tools.commands import ReadOutput, RunCommand, SendInput, StopProcess
from sandbox_task.agent.tools.editing import EditFile
from sandbox_task.agent.tools.files import ReadFile, WriteFile
from sandbox_task.agent.tools.finding import ListFiles, Search
from sandbox_task.agent.tools.network import RequestNetwork
from sandbox_task.agent.tools.planning import AskUser, FinishReviewTool, FinishTool, UpdatePlan
from sandpiper.models.spec import READ_ONLY_TASKS, RunSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox_task.agent.ports import Sink
    from sandbox_task.agent.tools.sessions import Sessions
    from sandbox_task.agent.tools.toolbox import Tool
    from sandbox_task.inbox import Inbox
    from sandbox_task.isolation.egress.gateway import Gateway
    from sandbox_task.isolation.wall import Wall

_ALWAYS = {"update_plan", "finish"}
_WITH_COMMANDS = {"read_output", "send_input", "stop", "request_network"}  # of no use without them, and needed by them
# The names that callers know from elsewhere
_OTHER_NAMES = {
    "Bash": "run_command",
    "BashOutput": "read_output",
    "KillBash": "stop",
    "KillShell": "stop",
    "Read": "read_file",
    "Write": "write_file",
    "Edit": "edit_file",
    "MultiEdit": "edit_file",
    "Glob": "list_files",
    "LS": "list_files",
    "Grep": "search",
    "AskUserQuestion": "ask_user",
}


def select_tools(
    spec: RunSpec,
    wall: Wall,
    sink: Sink,
    *,
    planning: UpdatePlan,
    sessions: Sessions,
    inbox: Inbox,
    exists: Callable[[str], bool],
    gateway: Gateway | None = None,
) -> list[Tool[Any]]:
    """Read-only tasks have no writing tools; `allowed_tools` limits the rest, also when it names none that is here."""
    tools: list[Tool[Any]] = [
        planning,
        RunCommand(wall, sink, sessions),
        ReadOutput(sessions),
        SendInput(sessions),
        StopProcess(sessions),
        RunCode(sink, sessions),
        ReadFile(wall),
        WriteFile(wall, sink),
        EditFile(wall, sink),
        ListFiles(wall),
        Search(wall),
        AskUser(inbox),
        FinishReviewTool(sink, exists) if spec.type == "code-review" else FinishTool(),
    ]
    if gateway is not None and spec.trust_level != "trusted":  # who asks nobody has nobody to say yes
        tools.insert(-2, RequestNetwork(gateway))
    if spec.type in READ_ONLY_TASKS:
        tools = [tool for tool in tools if not tool.writes]
    if spec.allowed_tools is not None:
        allowed = {_OTHER_NAMES.get(name, name) for name in spec.allowed_tools} | _ALWAYS
        if "run_command" in allowed:
            allowed |= _WITH_COMMANDS
        tools = [tool for tool in tools if tool.name in allowed]
    return tools


def unknown_tools(spec: RunSpec) -> list[str]:
    """Names among `allowed_tools` that stand for nothing here."""
    known = {*_ALWAYS, *_OTHER_NAMES, *_OTHER_NAMES.values(), "run_code", *_WITH_COMMANDS}
    return [name for name in spec.allowed_tools or () if name not in known]
