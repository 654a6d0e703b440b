from __future__ import annotations

import io
import json
from typing import Any

from rich.console import Console

from sandpiper_cli.client import event_of
from sandpiper_cli.render import ConsoleView, JsonView
from sandpiper_cli.speech import SHOWN_CHARS, Speech
from tests.unit.cli.fake_api import event


def delta(text: str, offset: int = 0, *, turn: int = 1, block: int = 0) -> dict[str, Any]:
    return {"type": "agent_delta", "turn": turn, "block": block, "kind": "text", "offset": offset, "text": text}


def said(*deltas: dict[str, Any]) -> str:
    speech = Speech()
    for piece in deltas:
        speech.hear(piece)
    return speech.__rich__().plain


def test_pieces_are_put_together() -> None:
    assert said(delta("Hel"), delta("lo", 3)) == "Hello"


def test_what_is_missing_is_marked() -> None:
    assert said(delta("Hel"), delta("you", 7), delta("!", 10)) == "Hel… you!"


def test_words_that_begin_anew_replace_what_was_there() -> None:
    assert said(delta("Hello"), delta("Hi")) == "Hi"
    assert said(delta("thought"), delta("word", block=1)) == "word"
    assert said(delta("first"), delta("second", turn=2)) == "second"


def test_the_end_of_a_long_speech_is_shown() -> None:
    assert said(delta("x" * 5 * SHOWN_CHARS + "end")).endswith("xend")
    assert len(said(delta("x" * 5 * SHOWN_CHARS))) == SHOWN_CHARS


def test_control_characters_do_nothing() -> None:
    assert said(delta("\x1b[2Jhi\r")) == "␛[2Jhi␍"


def test_what_was_said_makes_room_for_the_event_that_has_it() -> None:
    speech = Speech()
    speech.hear(delta("Hello"))
    speech.update(event_of(event(1, "tool_output", text="…")))
    assert speech
    speech.update(event_of(event(2, "agent_message", text="Hello")))
    assert not speech


def test_a_terminal_shows_it_and_a_file_does_not() -> None:
    def shown(*, terminal: bool) -> str:
        out = io.StringIO()
        with ConsoleView(Console(file=out, force_terminal=terminal, width=80, _environ={"TERM": "xterm"})) as view:
            view.delta(delta("Just saying"))
        return out.getvalue()

    assert "Just saying" in shown(terminal=True)
    assert "Just saying" not in shown(terminal=False)


def test_scripts_get_it_only_if_they_ask() -> None:
    for deltas in (False, True):
        out = io.StringIO()
        with JsonView(out, deltas=deltas) as view:
            view.delta(delta("Hm"))
        assert [json.loads(line)["text"] for line in out.getvalue().splitlines()] == (["Hm"] if deltas else [])
