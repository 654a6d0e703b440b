from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandpiper.adapters import cursors
from sandpiper.errors import BadRequest

KEY = "2026-01-01T12:00:00.000000Z#run-01hzy3v6k2w8x9a4b5c6d7e8f9"


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_a_cursor_brings_its_owner_back_to_where_they_were(owner: str) -> None:
    assert cursors.decode(cursors.encode(owner, KEY), owner) == KEY


@given(st.text())
def test_whatever_else_is_sent_is_a_bad_request(cursor: str) -> None:
    with pytest.raises(BadRequest):
        cursors.decode(cursor, "ann")


@pytest.mark.parametrize(
    "content",
    [
        ["bob", KEY],
        ["ann", KEY, "more"],
        ["ann", "OWNER#ann#SLOTS"],
        ["ann", f"{KEY}\n"],
        ["ann", 7],
        {"owner": "ann"},
        "ann",
    ],
)
def test_a_well_formed_cursor_of_another_content_is_a_bad_request(content: object) -> None:
    text = json.dumps(content, separators=(",", ":"))
    with pytest.raises(BadRequest):
        cursors.decode(base64.urlsafe_b64encode(text.encode()).decode().rstrip("="), "ann")


@given(st.data())
def test_a_cursor_with_one_character_changed_leads_nowhere_else(data: st.DataObject) -> None:
    cursor = cursors.encode("ann", KEY)
    place = data.draw(st.integers(0, len(cursor) - 1))
    changed = cursor[:place] + data.draw(st.sampled_from("Aa0-_=~é")) + cursor[place + 1 :]
    try:
        created_key = cursors.decode(changed, "ann")
    except BadRequest:
        return
    assert cursors.encode("ann", created_key) == changed
