from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from sandpiper.logic.ids import RUN_ID, new_run_id, run_id_for_key

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_new_ids_have_the_form_of_run_ids_and_differ() -> None:
    made = {new_run_id(NOW) for _ in range(200)}
    assert len(made) == 200
    assert all(RUN_ID.fullmatch(run_id) for run_id in made)


def test_a_later_id_sorts_after_an_earlier_one() -> None:
    assert new_run_id(NOW) < new_run_id(NOW + timedelta(milliseconds=1))


@given(st.text(), st.text())
def test_an_id_for_a_key_is_always_the_same_and_of_the_same_form(owner: str, key: str) -> None:
    assert run_id_for_key(owner, key) == run_id_for_key(owner, key)
    assert RUN_ID.fullmatch(run_id_for_key(owner, key))


def test_owner_and_key_cannot_be_shifted_into_one_another() -> None:
    assert run_id_for_key("ab", "c") != run_id_for_key("a", "bc")


def test_another_owner_another_key_or_another_try_gives_another_id() -> None:
    made = [
        run_id_for_key("a", "k"),
        run_id_for_key("b", "k"),
        run_id_for_key("a", "l"),
        run_id_for_key("a", "k", retry=1),
    ]
    assert len(set(made)) == 4
