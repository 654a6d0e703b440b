"""Interactive programs: a terminal of their own behind the wall, what is typed there, and what is read of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from sandbox_task.agent.policy.assess import assess
from sandbox_task.agent.tools.commands import ReadOutput, RunCommand, SendInput, StopProcess
from sandbox_task.agent.tools.outcome import ToolError
from sandbox_task.agent.tools.plain import PlainText
from sandbox_task.model.port import ToolCall
from sandpiper import limits
from tests.unit.sandbox.behind_wall import NAP, processes_with

if TYPE_CHECKING:
    from sandbox_task.agent.tools.sessions import Sessions
    from sandbox_task.isolation.wall import Wall
    from tests.unit.sandbox.recording_sink import RecordingSink


class Terminal:
    def __init__(self, wall: Wall, sink: RecordingSink, sessions: Sessions) -> None:
        tools = (RunCommand(wall, sink, sessions), ReadOutput(sessions), SendInput(sessions), StopProcess(sessions))
        self._tools: dict[str, Any] = {tool.name: tool for tool in tools}
        self._heard = ""

    def __call__(self, name: str, **arguments: Any) -> str:
        tool = self._tools[name]
        told = str(tool.run(tool.arguments.model_validate(arguments), "call").content)
        self._heard += told
        return told

    def run(self, command: str, **arguments: Any) -> str:
        return self("run_command", command=command, tty=True, **arguments)

    def until(self, wanted: str) -> None:
        """It has said so, whichever call told it."""
        deadline = time.monotonic() + 10
        while wanted not in self._heard and time.monotonic() < deadline:
            self("read_output", id="c1")
        assert wanted in self._heard


@pytest.fixture
def terminal(wall: Wall, sink: RecordingSink, sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(limits, "BACKGROUND_FIRST_SECONDS", 0.02)
    return Terminal(wall, sink, sessions)


def test_a_command_that_asks_for_a_terminal_has_one_of_its_own(terminal: Terminal) -> None:
    look = "test -t 0 && test -t 1 && test -t 2 && stty size && echo $TERM && ps -o tty=,sid= -p $$ | tr -d ' '; "
    size, term, session = terminal.run(look + "echo hi > /dev/tty").splitlines()[:3]
    assert size == f"{limits.TERMINAL_ROWS} {limits.TERMINAL_COLUMNS}"
    assert term == "xterm-256color"
    assert session.startswith("pts/")
    assert "tty=no" in terminal("run_command", command="test -t 1 || echo tty=no")


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("echo hi; exit 3", "hi\n[exit code 3]"),
        ("kill -9 $$", "[killed by SIGKILL]"),
        ("cat; echo nobody types", "nobody types\n[exit code 0]"),
        ("seq 20000 | tail -n 1; seq 30000 > /dev/null", "20000\n[exit code 0]"),
        ("exec <&- >&- 2>&-; sleep 0.2; exit 4", "[exit code 4]"),
    ],
)
def test_it_ends_as_any_other_command_does(terminal: Terminal, command: str, told: str) -> None:
    assert terminal.run(command) == told


def test_all_that_is_said_at_the_end_is_heard(terminal: Terminal) -> None:
    assert [terminal.run("printf end") for _ in range(20)] == ["end\n[exit code 0]"] * 20
    assert "lines" in terminal.run("seq 100000")


def test_a_command_that_can_not_start_says_so_and_the_next_one_works(terminal: Terminal, wall: Wall) -> None:
    with pytest.raises(Exception, match="No such file or directory"):
        terminal.run("true", cwd="nowhere")
    assert terminal.run("echo on") == "on\n[exit code 0]"


def test_a_program_is_talked_to(terminal: Terminal) -> None:
    terminal.run("python3 -q -c \"print('hello', input('name? ')); input(); print('bye')\"", background=True)
    terminal.until("name? ")
    terminal("send_input", id="c1", text="Ann")
    terminal("send_input", id="c1", keys=["enter"])
    terminal.until("hello Ann")
    terminal("send_input", id="c1", text="\n")
    terminal.until("bye\n")
    terminal.until("c1: exit code 0")


def test_ctrl_c_reaches_the_program_in_front_and_not_the_shell_behind_it(terminal: Terminal) -> None:
    terminal.run("bash --norc -i", background=True)
    terminal("send_input", id="c1", text=f"PS1=; echo re''ady; {NAP}\n")
    terminal.until("ready\n")
    deadline = time.monotonic() + 10
    while not processes_with(NAP) and time.monotonic() < deadline:
        time.sleep(0.01)
    terminal("send_input", id="c1", keys=["ctrl-c"])
    terminal("send_input", id="c1", text="echo st''ill here\n")
    terminal.until("still here")
    terminal("send_input", id="c1", keys=["ctrl-d"])
    terminal.until("exit code")
    assert processes_with(NAP) == []


def test_an_interrupt_from_outside_is_ctrl_c(wall: Wall) -> None:
    said = bytearray()
    process = wall.start(
        "trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.05; done",
        on_output=said.extend,
        on_end=lambda: None,
        terminal=True,
    )
    while b"ready" not in said:
        assert process.wait(0.01) is None
    process.interrupt()
    ended = process.wait(10)
    assert (ended and ended.exit_code, b"caught" in said) == (7, True)


def test_nothing_of_it_outlives_its_end(terminal: Terminal, wall: Wall) -> None:
    terminal.run(f"(setsid {NAP} &) ; trap '' HUP TERM INT; {NAP}; {NAP}", background=True)
    deadline = time.monotonic() + 10
    while len(processes_with(NAP)) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    terminal("stop", id="c1")
    assert processes_with(NAP) == []
    assert wall.run(f"{NAP}", timeout=0.3, on_output=lambda _: None, terminal=True).ended_by == "timeout"
    assert processes_with(NAP) == []


def test_a_program_that_never_reads_costs_only_the_input(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "INPUT_SECONDS", 0.05)
    terminal.run("stty raw; sleep 1000", background=True)
    with pytest.raises(ToolError, match="does not take any input"):
        terminal("send_input", id="c1", text="x" * 1_000_000)
    assert "stopped" in terminal("stop", id="c1")
    with pytest.raises(ToolError, match="not running any more"):
        terminal("send_input", id="c1", text="x")


def test_only_a_process_with_a_terminal_takes_input(terminal: Terminal) -> None:
    terminal("run_command", command="sleep 1000", background=True)
    with pytest.raises(ToolError, match="without tty"):
        terminal("send_input", id="c1", text="x")
    with pytest.raises(ToolError, match="no background process 'c7'"):
        terminal("send_input", id="c7", text="x")


def test_what_is_typed_is_judged_like_a_command() -> None:
    def kind(text: str, trust: Any = "balanced") -> str | None:
        risk = assess(ToolCall(id="1", name="send_input", arguments={"id": "c1", "text": text}), trust)
        return risk.kind if risk else None

    assert kind("git push --force\n") == "push"
    assert kind("ls\n") is None
    assert kind("ls\n", "strict") == "command"
    assert kind("git push\n", "trusted") is None


SAID = {
    "colours": (b"\x1b[1;31mred\x1b[0m", "red"),
    "a title": (b"\x1b]0;owned\x07text", "text"),
    "a link": (b"\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\", "click"),
    "the clipboard": (b"a\x1b]52;c;b3duZWQ=\x07b", "ab"),
    "a bar that is drawn anew": (b"10%\r20%\r\n", "10%\n20%\n"),
    "ends of lines": (b"one\r\ntwo\r\r\n", "one\ntwo\n"),
    "other sets of characters": (b"\x1b(0x\x1b=y\x1b7", "xy"),
    "bells and nothing": (b"a\x07\x08\x00b\x7f", "ab"),
    "letters of all kinds": ("grüß 日本\t".encode(), "grüß 日本\t"),
    "a sequence without an end": (b"a\x1b]0;" + b"x" * 10_000 + b"end", "a]0;" + "x" * 10_000 + "end"),
    "half a sequence at the end": (b"a\x1b[3", "a[3"),
}


@pytest.mark.parametrize(("said", "read"), SAID.values(), ids=SAID)
@pytest.mark.parametrize("piece", [1, 3, 100_000])
def test_what_only_a_terminal_obeys_is_left_out(said: bytes, read: str, piece: int) -> None:
    heard = bytearray()
    plain = PlainText(heard.extend)
    for at in range(0, len(said), piece):
        plain.feed(said[at : at + piece])
    plain.close()
    assert heard.decode() == read


def test_a_secret_with_a_sequence_in_its_middle_is_seen_by_nobody(terminal: Terminal, sink: RecordingSink) -> None:
    told = terminal.run("printf 'very-sec\\033[0mret-value\\n'")
    assert "very-secret-value" not in told
    assert "[redacted]" in told
    assert "very-secret-value" not in sink.printed()
