from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sandbox_task.logfile import LogFile
from sandbox_task.output import CommandOutput, HeadAndTail
from sandbox_task.redaction import Redactor
from sandpiper import limits
from sandpiper.testing.fakes import FakeBlobs
from tests.unit.sandbox.recording_sink import printed

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def blobs() -> FakeBlobs:
    return FakeBlobs()


@pytest.fixture
def log(blobs: FakeBlobs) -> Iterator[LogFile]:
    log = LogFile(blobs, "r", 1)
    yield log
    log.close()


def test_five_megabytes_are_whole_in_the_log_and_bounded_as_events(log: LogFile, blobs: FakeBlobs) -> None:
    sent: list[dict[str, Any]] = []
    output = CommandOutput(Redactor(), log, sent.append)
    text = "".join(f"line {number}\n" for number in range(400_000))
    for start in range(0, len(text), 65_536):
        output.feed(text[start : start + 65_536].encode())
    output.close()
    log.close()
    assert printed(blobs, "r") == text
    shown = sum(len(part["text"]) for part in sent)
    omitted = sum(part.get("omitted_bytes", 0) for part in sent)
    assert shown == limits.OUTPUT_HEAD_BYTES + limits.OUTPUT_TAIL_BYTES
    assert shown + omitted == len(text)
    assert sent[-1]["text"].endswith("line 399999\n")
    assert max(len(part["text"].encode()) for part in sent) <= limits.OUTPUT_CHUNK_BYTES


def test_the_model_is_shown_head_and_tail_and_told_how_much_is_missing(log: LogFile) -> None:
    output = CommandOutput(Redactor(), log, lambda _part: None)
    output.feed(b"first\n" + b"x" * 100_000 + b"\nlast")
    output.close()
    shown = str(output.shown)
    assert shown.startswith("first\n")
    assert shown.endswith("\nlast")
    assert f"{100_011 - limits.MODEL_OUTPUT_CHARS:,} characters left out" in shown


def test_a_character_that_is_cut_in_two_by_the_pipe_arrives_whole(log: LogFile) -> None:
    output = CommandOutput(Redactor(), log, lambda _part: None)
    for byte in "é€😀".encode():
        output.feed(bytes([byte]))
    output.close()
    assert str(output.shown) == "é€😀"


def test_a_secret_split_over_two_pieces_reaches_neither_log_nor_events(log: LogFile, blobs: FakeBlobs) -> None:
    sent: list[dict[str, Any]] = []
    output = CommandOutput(Redactor(["very-secret-value"]), log, sent.append)
    output.feed(b"token: very-sec")
    output.feed(b"ret-value\n")
    output.close()
    assert "".join(part["text"] for part in sent) == "token: [redacted]\n"
    log.close()
    assert printed(blobs, "r") == "token: [redacted]\n"


@pytest.mark.parametrize("size", [0, 5, 10, 15, 16, 40])
def test_head_and_tail_account_for_every_character(size: int) -> None:
    kept = HeadAndTail(10, 5)
    text = "".join(chr(97 + number % 26) for number in range(size))
    for character in text:
        kept.add(character)
    omitted, tail = kept.rest()
    assert omitted == max(0, size - 15)
    assert text.endswith(tail)
