from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sandpiper_cli.client import event_of
from sandpiper_cli.ordering import InOrder
from tests.unit.cli.fake_api import event


@given(st.data(), st.integers(0, 5), st.integers(1, 30))
def test_any_interleaving_with_doubles_comes_out_once_and_in_order(data: st.DataObject, after: int, last: int) -> None:
    all_of_them = list(range(1, last + 1))
    doubles = data.draw(st.lists(st.sampled_from(all_of_them)))
    arriving = data.draw(st.permutations(all_of_them + doubles))
    order = InOrder(after)
    passed_on = [ready.seq for seq in arriving for ready in order.take(event_of(event(seq)))]
    assert passed_on == list(range(after + 1, last + 1))
    assert not order.has_gap


@given(st.sets(st.integers(1, 30), min_size=1))
def test_nothing_after_a_missing_event_is_passed_on(arriving: set[int]) -> None:
    order = InOrder(0)
    passed_on = [ready.seq for seq in arriving for ready in order.take(event_of(event(seq)))]
    first_missing = next(seq for seq in range(1, 32) if seq not in arriving)
    assert passed_on == list(range(1, first_missing))
    assert order.has_gap == (max(arriving) > first_missing)
