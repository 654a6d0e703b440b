from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from sandbox_task.agent.tools.editing import EditFile
from sandbox_task.agent.tools.files import ReadFile, WriteFile
from sandbox_task.agent.tools.finding import ListFiles, Search
from sandbox_task.agent.tools.outcome import ToolError
from sandbox_task.agent.tools.planning import UpdatePlan
from sandbox_task.agent.tools.selection import select_tools, unknown_tools
from sandbox_task.agent.tools.sessions import Sessions
from sandbox_task.agent.tools.toolbox import Toolbox
from sandbox_task.inbox import Inbox
from sandbox_task.isolation.choose import put_up_wall
from sandbox_task.isolation.wall import WallError
from sandbox_task.stopping import Stop
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


@pytest.mark.parametrize(("old", "told"), [("x", "does not occur"), ("a", "occurs 2 times, in lines 1, 3: give more")])
def test_an_edit_that_does_not_fit_changes_nothing(wall: Wall, old: str, told: str) -> None:
    wall.write_file("f", b"first a\n\na")
    with pytest.raises(ToolError, match=rf"(?s)Edit 2 of f: its old text {told}.*Nothing was changed"):
        use(EditFile(wall, Sink()), path="f", edits=[{"old": "first", "new": "1"}, {"old": old, "new": ""}])
    assert wall.read_file("f", limit=100).data == b"first a\n\na"


def test_an_edit_that_finds_nothing_is_shown_the_nearest_lines(wall: Wall) -> None:
    wall.write_file("f", b"import os\n\ndef total(items):\n    return sum(items)\n")
    with pytest.raises(ToolError, match=r"The nearest lines are:\n3: def total\(items\):\n"):
        use(EditFile(wall, Sink()), path="f", edits=[{"old": "def total(item):\n", "new": ""}])


def test_an_edit_that_changes_nothing_is_an_error(wall: Wall) -> None:
    wall.write_file("f", b"same")
    with pytest.raises(ToolError, match="as it was"):
        use(EditFile(wall, Sink()), path="f", edits=[{"old": "same", "new": "same"}])


def test_an_edit_can_replace_every_occurrence(wall: Wall) -> None:
    wall.write_file("f", b"a b a")
    use(EditFile(wall, Sink()), path="f", edits=[{"old": "a", "new": "c", "replace_all": True}])
    assert wall.read_file("f", limit=100).data == b"c b c"


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        (b"one\r\ntwo\r\nlast", {"old": "one\ntwo", "new": "1\n2\n3"}, b"1\r\n2\r\n3\r\nlast"),
        (b"one\r\ntwo\r\n", {"old": "one\r\ntwo", "new": "1\r\n2"}, b"1\r\n2\r\n"),
        (b"one\r\ntwo\r\n", {"old": "one", "new": "0\n1"}, b"0\r\n1\r\ntwo\r\n"),
        (b"one\r\ntwo\nthree\n", {"old": "two\nthree", "new": "2\n3"}, b"one\r\n2\n3\n"),
        (b"one\r\ntwo\nthree\n", {"old": "one\ntwo", "new": "1\n2"}, b"1\r\n2\nthree\n"),
        (b"\xef\xbb\xbfone", {"old": "one", "new": "1"}, b"\xef\xbb\xbf1"),
    ],
    ids=["lf edit", "crlf edit", "new lines", "mixed, lf part", "mixed, crlf part", "byte order mark"],
)
def test_an_edit_keeps_line_ends_and_a_missing_last_one(
    wall: Wall, before: bytes, edit: dict[str, str], after: bytes
) -> None:
    wall.write_file("f", before)
    use(EditFile(wall, Sink()), path="f", edits=[edit])
    assert wall.read_file("f", limit=100).data == after


def test_writing_and_editing_keep_the_mode_of_a_file(wall: Wall, rooms: Rooms) -> None:
    wall.write_file("script", b"#!/bin/sh\n")
    (rooms.workspace / "script").chmod(0o755)
    use(WriteFile(wall, Sink()), path="script", content="#!/bin/sh\necho a\n")
    use(EditFile(wall, Sink()), path="script", edits=[{"old": "echo a", "new": "echo b"}])
    assert (rooms.workspace / "script").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("path", ["../out", "/etc/hostname", "way/out", "fifo", "directory", "nowhere/f", "a\0b"])
def test_files_that_are_none_or_not_ours_are_refused_by_every_file_tool(wall: Wall, path: str) -> None:
    wall.run("ln -s / way; mkfifo fifo; mkdir directory", timeout=30, on_output=lambda _data: None)
    for tool, more in ((ReadFile(wall), {}), (EditFile(wall, Sink()), {"edits": [{"old": "a", "new": "b"}]})):
        with pytest.raises((ToolError, WallError), match=r"outside|not a regular file|Is a dir|No such|null"):
            use(tool, path=path, **more)
    if path != "nowhere/f":
        with pytest.raises((ToolError, WallError), match=r"outside|not a regular file|Is a dir|No such|null"):
            use(WriteFile(wall, Sink()), path=path, content="x")


def test_text_that_is_not_utf_8_can_be_read_with_a_note_but_not_edited(wall: Wall) -> None:
    wall.write_file("f", b"caf\xe9\nok\n")
    assert use(ReadFile(wall), path="f").endswith("caf�\nok\n")
    assert "not UTF-8" in use(ReadFile(wall), path="f")
    with pytest.raises(ToolError, match="not UTF-8 text, so it can't be edited"):
        use(EditFile(wall, Sink()), path="f", edits=[{"old": "ok", "new": "no"}])


def test_a_file_that_is_too_large_to_edit_is_refused(wall: Wall) -> None:
    wall.run(f"head -c {limits.MAX_WRITE_BYTES + 1} /dev/zero | tr '\\0' x > f", timeout=30, on_output=lambda _: None)
    with pytest.raises(ToolError, match="too many to edit here"):
        use(EditFile(wall, Sink()), path="f", edits=[{"old": "x", "new": "y"}])


def test_a_line_that_is_longer_than_can_be_shown_does_not_hide_the_next(wall: Wall) -> None:
    wall.write_file("f", b"x" * 1_000_000 + b"\nnext\n")
    text = use(ReadFile(wall), path="f")
    assert len(text) < limits.MODEL_OUTPUT_CHARS + 200
    assert "line 1 is longer than can be shown: read on with start_line=2" in text
    assert use(ReadFile(wall), path="f", start_line=2) == "next\n"


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


def test_a_search_can_be_narrowed_and_widened(wall: Wall) -> None:
    wall.write_file("a.py", b"before\nNeedle\nafter\n")
    wall.write_file("b.txt", b"needle\n")
    assert use(Search(wall), pattern="needle", ignore_case=True) == "./a.py:2:Needle\n./b.txt:1:needle"
    assert use(Search(wall), pattern="needle", ignore_case=True, glob="*.py") == "./a.py:2:Needle"
    assert use(Search(wall), pattern="Needle", path="a.py", context=1) == "a.py-1-before\na.py:2:Needle\na.py-3-after"


def test_a_search_that_finds_too_much_says_how_much_more_there_is(wall: Wall) -> None:
    wall.write_file("f", b"needle\n" * 10_000)
    *lines, more = use(Search(wall), pattern="needle").splitlines()
    assert lines[-1] == f"./f:{len(lines)}:needle"
    assert more == f"… {10_000 - len(lines):,} more lines: narrow it down by path, glob or pattern"


@pytest.mark.parametrize(("path", "told"), [("..", "outside"), ("/etc", "outside"), ("nowhere", "No such file")])
def test_looking_where_nothing_is_to_be_found_says_why(wall: Wall, path: str, told: str) -> None:
    with pytest.raises(ToolError, match=told):
        use(ListFiles(wall), path=path)
    with pytest.raises(ToolError, match=told):
        use(Search(wall), pattern="x", path=path)


def tools_for(spec: RunSpec, rooms: Rooms) -> list[Any]:
    wall: Any = None
    return select_tools(
        spec,
        wall,
        Sink(),
        planning=UpdatePlan(Sink()),
        sessions=Sessions.open(wall, Sink(), rooms.private),
        inbox=Inbox(),
        exists=lambda _path: True,
    )


def names(spec: RunSpec, rooms: Rooms) -> set[str]:
    return {tool.name for tool in tools_for(spec, rooms)}


def test_allowed_tools_limit_the_selection_by_our_names_and_by_others(rooms: Rooms) -> None:
    spec = RunSpec(task="t", allowed_tools=("Bash", "read_file", "WebFetch"))
    with_commands = {"run_command", "read_output", "send_input", "stop"}
    assert names(spec, rooms) == {"update_plan", "finish", "read_file", *with_commands}
    assert unknown_tools(spec) == ["WebFetch"]


def test_every_tool_can_be_allowed_by_its_own_name(rooms: Rooms) -> None:
    for name in names(RunSpec(task="t"), rooms):
        spec = RunSpec(task="t", allowed_tools=(name,))
        assert name in names(spec, rooms)
        assert unknown_tools(spec) == []


def test_a_read_only_task_has_nothing_to_write_with(rooms: Rooms) -> None:
    assert names(RunSpec(task="t", type="code-review"), rooms).isdisjoint({"write_file", "edit_file"})
    spec = RunSpec(task="t", type="code-review", allowed_tools=("Write", "Read"))
    assert names(spec, rooms) == {"update_plan", "finish", "read_file"}


def test_allowed_tools_that_name_none_of_ours_allow_none_of_ours(rooms: Rooms) -> None:
    assert names(RunSpec(task="t", allowed_tools=("WebFetch",)), rooms) == {"update_plan", "finish"}


def test_the_tools_as_they_are_sent_stay_small(rooms: Rooms) -> None:
    specs = Toolbox(tools_for(RunSpec(task="t"), rooms), Sink(), Stop()).specs
    assert len(json.dumps([spec.model_dump() for spec in specs])) < 6_800
