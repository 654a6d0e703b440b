"""Which tools a run gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandbox_task.agent.tools.commands import ListFiles, RunCommand, Search
from sandbox_task.agent.tools.files import EditFile, ReadFile, WriteFile
from sandbox_task.agent.tools.planning import FinishTool, UpdatePlan
from sandpiper.models.spec import READ_ONLY_TASKS, RunSpec

if TYPE_CHECKING:
    from sandbox_task.agent.ports import Sink
    from sandbox_task.agent.tools.toolbox import Tool
    from sandbox_task.isolation.wall import Wall

_ALWAYS = {"update_plan", "finish"}
# The names that callers know from elsewhere
_OTHER_NAMES = {
    "Bash": "run_command",
    "Read": "read_file",
    "Write": "write_file",
    "Edit": "edit_file",
    "MultiEdit": "edit_file",
    "Glob": "list_files",
    "LS": "list_files",
    "Grep": "search",
}


def select_tools(spec: RunSpec, wall: Wall, sink: Sink, planning: UpdatePlan) -> list[Tool[Any]]:
    """Read-only tasks have no writing tools; `allowed_tools` limits the rest, also when it names none that is here."""
    tools: list[Tool[Any]] = [
        planning,
        RunCommand(wall, sink),
        ReadFile(wall),
        WriteFile(wall, sink),
        EditFile(wall, sink),
        ListFiles(wall),
        Search(wall),
        FinishTool(),
    ]
    if spec.type in READ_ONLY_TASKS:
        tools = [tool for tool in tools if not tool.writes]
    if spec.allowed_tools is not None:
        allowed = {_OTHER_NAMES.get(name, name) for name in spec.allowed_tools} | _ALWAYS
        tools = [tool for tool in tools if tool.name in allowed]
    return tools


def unknown_tools(spec: RunSpec) -> list[str]:
    """Names among `allowed_tools` that stand for nothing here."""
    known = {*_ALWAYS, *_OTHER_NAMES, *_OTHER_NAMES.values()}
    return [name for name in spec.allowed_tools or () if name not in known]
