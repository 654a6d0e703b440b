from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sandbox_task.agent.tools.commands import ListFiles, Search
from sandbox_task.agent.tools.files import EditFile, ReadFile, WriteFile
from sandbox_task.agent.tools.outcome import ToolError
from sandbox_task.agent.tools.planning import UpdatePlan
from sandbox_task.agent.tools.selection import select_tools
from sandbox_task.isolation.choose import put_up_wall
from sandpiper import limits
from sandpiper.models.spec import RunSpec
from tests.unit.sandbox.test_loop import Sink

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall


@pytest.fixture
def wall(rooms: Rooms) -> Iterator[Wall]:
    wall = put_up_wall(None, rooms, tools=None, worker_uid=10002)
    yield wall
    wall.close()


def use(tool: Any, **arguments: Any) -> str:
    return str(tool.run(tool.arguments.model_validate(arguments), "id").content)


def test_a_file_is_read_whole_or_by_lines(wall: Wall) -> None:
    wall.write_file("f", b"1\n2\n3\n4")
    assert use(ReadFile(wall), path="f") == "1\n2\n3\n4"
    assert use(ReadFile(wall), path="f", start_line=2, end_line=3) == "2\n3\n"
    assert use(ReadFile(wall), path="f", start_line=4) == "4"


def test_a_long_file_is_cut_and_says_where_to_read_on(wall: Wall) -> None:
    wall.write_file("f", b"x" * 99 + b"\n" + b"line\n" * 200_000)
    text = use(ReadFile(wall), path="f")
    assert len(text) < limits.MODEL_OUTPUT_CHARS + 200
    assert "read on with start_line=" in text
    assert use(ReadFile(wall), path="f", start_line=199_999, end_line=199_999) == "line\n"


@pytest.mark.parametrize(
    ("data", "arguments", "told"),
    [
        (b"a\n", {"start_line": 5}, "f has no line 5"),
        (b"", {}, "f is empty"),
        (b"\0\1", {}, "f is a binary file of 2 bytes"),
    ],
)
def test_what_can_not_be_read_is_said(wall: Wall, data: bytes, arguments: dict[str, int], told: str) -> None:
    wall.write_file("f", data)
    with pytest.raises(ToolError, match=told):
        use(ReadFile(wall), path="f", **arguments)


def test_several_edits_are_made_one_after_the_other(wall: Wall) -> None:
    wall.write_file("f", b"one two\r\n")
    sink = Sink()
    use(EditFile(wall, sink), path="f", edits=[{"old": "one", "new": "1"}, {"old": "1 two", "new": "12"}])
    assert wall.read_file("f", limit=100).data == b"12\r\n"
    assert sink.of("file_changed") == [{"path": "f", "bytes": 4}]


@pytest.mark.parametrize(("old", "told"), [("x", "does not occur"), ("a", "occurs 2 times")])
def test_an_edit_that_does_not_fit_changes_nothing(wall: Wall, old: str, told: str) -> None:
    wall.write_file("f", b"first a a")
    with pytest.raises(ToolError, match=f"Edit 2: its old text {told}"):
        use(EditFile(wall, Sink()), path="f", edits=[{"old": "first", "new": "1"}, {"old": old, "new": ""}])
    assert wall.read_file("f", limit=100).data == b"first a a"


def test_a_file_that_is_too_large_to_write_is_refused(wall: Wall) -> None:
    with pytest.raises(ToolError, match="too many for one file"):
        use(WriteFile(wall, Sink()), path="f", content="x" * (limits.MAX_WRITE_BYTES + 1))


def test_files_are_listed_without_what_git_ignores(wall: Wall) -> None:
    for path in ("a.py", "d/b.py", "d/c.txt", ".git/x", "skip.log"):
        wall.write_file(path, b"x")
    wall.write_file(".gitignore", b"*.log\n")
    assert use(ListFiles(wall)).split() == ["./.gitignore", "./a.py", "./d/b.py", "./d/c.txt"]
    assert use(ListFiles(wall), glob="**/*.py").split() == ["./a.py", "./d/b.py"]


def test_a_search_finds_lines_and_says_when_there_are_none(wall: Wall) -> None:
    wall.write_file("a.py", b"x = 1\ndef f(): pass\n")
    assert use(Search(wall), pattern=r"def \w+") == "./a.py:2:def f(): pass"
    assert use(Search(wall), pattern="--nothing") == "Nothing found."
    with pytest.raises(ToolError):
        use(Search(wall), pattern="(")


def names(spec: RunSpec, wall: Wall) -> set[str]:
    return {tool.name for tool in select_tools(spec, wall, Sink(), UpdatePlan(Sink()))}


def test_allowed_tools_limit_the_selection_by_our_names_and_by_others(wall: Wall) -> None:
    spec = RunSpec(task="t", allowed_tools=("Bash", "read_file", "WebFetch"))
    assert names(spec, wall) == {"update_plan", "finish", "run_command", "read_file"}


def test_allowed_tools_give_a_read_only_task_nothing_to_write_with(wall: Wall) -> None:
    spec = RunSpec(task="t", type="code-review", allowed_tools=("Write", "Read"))
    assert names(spec, wall) == {"update_plan", "finish", "read_file"}


def test_allowed_tools_that_name_none_of_ours_allow_none_of_ours(wall: Wall) -> None:
    assert names(RunSpec(task="t", allowed_tools=("WebFetch",)), wall) == {"update_plan", "finish"}


def test_tools_and_system_prompt_stay_small() -> None:
    from sandbox_task.agent.tools.toolbox import Toolbox  # noqa: PLC0415
    from sandbox_task.stopping import Stop  # noqa: PLC0415

    tools = select_tools(RunSpec(task="t"), None, Sink(), UpdatePlan(Sink()))  # type: ignore[arg-type]
    specs = Toolbox(tools, Sink(), Stop()).specs
    assert sum(len(spec.model_dump_json()) for spec in specs) < 6_000
