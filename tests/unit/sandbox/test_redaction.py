from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_task.redaction import MARK, Redactor

SECRET = "abcabcabd-secret"


def test_a_known_secret_is_hidden_wherever_it_stands() -> None:
    assert Redactor([SECRET]).text(f"x={SECRET}, again {SECRET}") == f"x={MARK}, again {MARK}"


@pytest.mark.parametrize("form", ["x-access-token:{}", "{}", "{}:x-oauth-basic", ":{}"])
def test_the_base64_forms_of_basic_authentication_are_hidden(form: str) -> None:
    encoded = base64.b64encode(form.format(SECRET).encode()).decode()
    assert encoded.rstrip("=") not in Redactor([SECRET]).text(f"Authorization: Basic {encoded}")


@pytest.mark.parametrize(
    "token",
    [
        "sk-ant-api03-0123456789abcdef",
        "ghp_0123456789abcdefghij",
        "ghs_0123456789abcdefghij.with-a-longer.form",
        "github_pat_0123456789_abcdefghij",
        "AKIAIOSFODNN7EXAMPLE",
    ],
)
def test_the_usual_shapes_are_hidden_without_being_known(token: str) -> None:
    assert Redactor().text(f"a {token} b") == f"a {MARK} b"


def test_ordinary_text_stays_as_it_is() -> None:
    text = "def test_ghp(): return 'sk-ant' and AKIA and token"
    assert Redactor([SECRET, "short"]).text(text) == text


def test_strings_in_nested_data_are_hidden_and_the_rest_is_kept() -> None:
    data = {"a": [f"-{SECRET}-", 1, None], "b": {SECRET: True}}
    assert Redactor([SECRET]).data(data) == {"a": [f"-{MARK}-", 1, None], "b": {MARK: True}}


@pytest.mark.parametrize("secret", [SECRET, "sk-ant-api03-0123456789abcdef"])
def test_a_secret_that_is_cut_anywhere_by_the_pieces_is_hidden(secret: str) -> None:
    text = f"before {secret} after"
    for cut in range(len(text)):
        stream = Redactor([SECRET]).stream()
        assert stream.feed(text[:cut]) + stream.feed(text[cut:]) + stream.close() == f"before {MARK} after"


@given(st.lists(st.one_of(st.text("abcd-", max_size=4), st.sampled_from([SECRET, "abcabc", " ghp_", "x" * 20]))))
def test_a_stream_comes_out_as_the_whole_text_would(pieces: list[str]) -> None:
    redactor = Redactor([SECRET])
    stream = redactor.stream()
    streamed = "".join([stream.feed(piece) for piece in pieces]) + stream.close()
    assert streamed == redactor.text("".join(pieces))


def test_text_that_can_be_no_secret_is_not_held_back() -> None:
    assert Redactor([SECRET]).stream().feed("......") == "......"
