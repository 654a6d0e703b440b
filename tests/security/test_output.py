"""What leaves the sandbox: no secret in it, and nothing that a terminal obeys."""

from __future__ import annotations

import base64
import io
import os
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from rich.console import Console

from sandbox_task.redaction import Redactor
from sandpiper.models.spec import RunSpec
from sandpiper_cli.output import TerminalWriter
from sandpiper_cli.text import neutralise
from tests.unit.sandbox.git_server import TOKEN
from tests.unit.sandbox.world import MODEL_KEY, World, done, plan, run

if TYPE_CHECKING:
    from pathlib import Path

BASIC = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
ECHOES = {
    "in one piece": f"echo {TOKEN}",
    "in two pieces": f"printf {TOKEN[:12]}; sleep 0.3; echo {TOKEN[12:]}",
    "as a header": f"echo 'Authorization: Basic {BASIC}'",
    "in a URL": f"echo http://x:{quote(MODEL_KEY)}@host/",
    "at the end of a long line": f"head -c 70000 /dev/zero | tr '\\0' x; echo {MODEL_KEY}",
    "in a file of the work": f"echo {TOKEN} > leaked.txt",
    "in the name of a file": f"touch {TOKEN}",
    "in an error": f"cat /{MODEL_KEY}",
}
FORMS = (TOKEN, MODEL_KEY, BASIC.rstrip("="))


@pytest.fixture(params=["bwrap", "uid"])
def world(request: pytest.FixtureRequest, open_dir: Path) -> World:
    if request.param == "uid" and os.geteuid() != 0:
        pytest.skip("only root may become another user")
    place = open_dir / os.urandom(4).hex()
    place.mkdir()
    place.chmod(0o711)
    return World(place, backend=request.param)


def leaked(world: World) -> list[str]:
    left = world.everything_that_left()
    return [form for form in FORMS if form in left]


def perform(world: World, command: str) -> None:
    world.perform(RunSpec(task="t", commit=False), [plan(), run(command), done()])


def test_a_secret_that_a_command_says_is_seen_by_nobody(world: World) -> None:
    """In the events, the log, the diff and the result; all ways at once, a run costs a second."""
    perform(world, "; ".join(ECHOES.values()))
    assert leaked(world) == []
    assert "[redacted]" in world.log
    assert "[redacted]" in world.diff


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
def test_the_attack_works_without_a_redactor(open_dir: Path, echo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Redactor, "text", lambda _self, text: text)
    place = open_dir / os.urandom(4).hex()
    place.mkdir()
    world = World(place)
    perform(world, echo)
    assert leaked(world) != []


SEQUENCES = {
    "clear the screen": "\x1b[2J",
    "set the title": "\x1b]0;owned\x07",
    "write to the clipboard": "\x1b]52;c;b3duZWQ=\x07",
    "a link to elsewhere": "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\",
    "in eight bits": "\x9b2J",
    "overwrite the line": "safe\rrm -rf",
    "turn the direction": "\u202egnp.exe",
    "report back": "\x1b[6n",
    "a bell": "\x07",
}


@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES)
def test_a_terminal_obeys_nothing_that_a_command_says(sequence: str, capsys: pytest.CaptureFixture[str]) -> None:
    TerminalWriter().write(f"before {sequence} after\n".encode())
    screen = io.StringIO()
    Console(file=screen, force_terminal=True, style="", highlight=False).print(neutralise(sequence), markup=False)
    for shown in (capsys.readouterr().out, screen.getvalue()):
        assert [character for character in shown if ord(character) < 32 and character not in "\n\t"] == []
        assert not {"\x9b", "\u202e", "\x7f"} & set(shown)


@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES)
def test_the_attack_works_on_a_terminal_that_is_not_protected(sequence: str) -> None:
    assert neutralise(sequence) != sequence
