from __future__ import annotations

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from sandpiper.models.quota import Scope
from sandpiper.ports import Held
from tests.contract.samples import STARTED, new_run_id

if TYPE_CHECKING:
    from tests.contract.worlds import Store

LIMIT = 3
RUNS = 50


@pytest.fixture
def owner() -> Scope:
    return Scope("user", f"name-{uuid.uuid4()}")


def test_a_free_slot_is_given_at_once(store: Store, owner: Scope) -> None:
    assert store.slots.acquire(owner, "run-1", since=STARTED, limit=2, token="t1") == 0
    assert store.slots.acquire(owner, "run-2", since=STARTED, limit=2, token="t2") == 0


def test_over_the_limit_runs_wait_and_know_their_place(store: Store, owner: Scope) -> None:
    places = [store.slots.acquire(owner, f"run-{n}", since=STARTED, limit=1, token=f"t{n}") for n in range(4)]
    assert places == [0, 1, 2, 3]


def test_owners_do_not_wait_for_each_other(store: Store, owner: Scope) -> None:
    assert store.slots.acquire(owner, "run-1", since=STARTED, limit=1, token="t1") == 0
    assert store.slots.acquire(owner._replace(name="another"), "run-2", since=STARTED, limit=1, token="t2") == 0


def test_a_user_and_an_organization_of_one_name_do_not_wait_for_each_other(store: Store, owner: Scope) -> None:
    org = owner._replace(kind="org")
    assert store.slots.acquire(owner, "run-1", since=STARTED, limit=1, token="t1") == 0
    assert [store.slots.acquire(org, f"run-{n}", since=STARTED, limit=1, token=f"t{n}") for n in (2, 3)] == [0, 1]
    assert store.slots.held(org) == Held(frozenset({"run-2"}), ("run-3",))
    assert store.slots.release(org, "run-2", limit=1) == [("run-3", "t3")]


def test_who_asks_again_after_being_called_is_called_with_the_newest_token(store: Store, owner: Scope) -> None:
    for n in (1, 2):
        store.slots.acquire(owner, f"run-{n}", since=STARTED, limit=1, token=f"t{n}")
    store.slots.release(owner, "run-1", limit=1)
    assert store.slots.acquire(owner, "run-2", since=STARTED, limit=1, token="newest") == 0
    assert store.slots.release(owner, None, limit=1) == [("run-2", "newest")]


def test_asking_again_changes_nothing(store: Store, owner: Scope) -> None:
    for _ in range(2):
        assert store.slots.acquire(owner, "run-1", since=STARTED, limit=1, token="t1") == 0
        assert store.slots.acquire(owner, "run-2", since=STARTED, limit=1, token="t2") == 1
        assert store.slots.acquire(owner, "run-3", since=STARTED, limit=1, token="t3") == 2
    assert store.slots.release(owner, "run-1", limit=1) == [("run-2", "t2")]


def test_asking_again_with_another_token_replaces_it_and_keeps_the_place(store: Store, owner: Scope) -> None:
    store.slots.acquire(owner, "run-1", since=STARTED, limit=1, token="t1")
    store.slots.acquire(owner, "run-2", since=STARTED, limit=1, token="old")
    store.slots.acquire(owner, "run-3", since=STARTED, limit=1, token="t3")
    assert store.slots.acquire(owner, "run-2", since=STARTED, limit=1, token="new") == 1
    assert store.slots.release(owner, "run-1", limit=1) == [("run-2", "new")]


def test_a_released_slot_goes_to_the_one_who_was_started_first(store: Store, owner: Scope) -> None:
    for n in range(1, 5):
        store.slots.acquire(owner, f"run-{n}", since=STARTED, limit=2, token=f"t{n}")
    assert store.slots.release(owner, "run-2", limit=2) == [("run-3", "t3")]
    assert store.slots.acquire(owner, "run-3", since=STARTED, limit=2, token="t3") == 0
    assert store.slots.acquire(owner, "run-4", since=STARTED, limit=2, token="t4") == 1


def test_releasing_again_gives_no_second_slot_away(store: Store, owner: Scope) -> None:
    for n in range(1, 4):
        store.slots.acquire(owner, f"run-{n}", since=STARTED, limit=1, token=f"t{n}")
    assert store.slots.release(owner, "run-1", limit=1) == [("run-2", "t2")]
    assert store.slots.release(owner, "run-1", limit=1) == [("run-2", "t2")]
    assert store.slots.acquire(owner, "run-3", since=STARTED, limit=1, token="t3") == 1


def test_who_leaves_the_line_lets_the_others_move_up(store: Store, owner: Scope) -> None:
    for n in range(1, 4):
        store.slots.acquire(owner, f"run-{n}", since=STARTED, limit=1, token=f"t{n}")
    assert store.slots.release(owner, "run-2", limit=1) == []
    assert store.slots.acquire(owner, "run-3", since=STARTED, limit=1, token="t3") == 1
    assert store.slots.release(owner, "run-1", limit=1) == [("run-3", "t3")]


def test_releasing_what_was_never_held_is_harmless(store: Store, owner: Scope) -> None:
    assert store.slots.release(owner, "run-1", limit=1) == []


def test_nobody_overtakes_the_line_when_a_slot_is_free_for_a_moment(store: Store, owner: Scope) -> None:
    store.slots.acquire(owner, "run-1", since=STARTED, limit=1, token="t1")
    store.slots.acquire(owner, "run-2", since=STARTED, limit=1, token="t2")
    assert store.slots.acquire(owner, "run-3", since=STARTED, limit=2, token="t3") == 2


def test_a_raised_limit_lets_several_in_at_the_next_release(store: Store, owner: Scope) -> None:
    for n in range(1, 5):
        store.slots.acquire(owner, f"run-{n}", since=STARTED, limit=1, token=f"t{n}")
    assert sorted(store.slots.release(owner, "run-1", limit=2)) == [("run-2", "t2"), ("run-3", "t3")]


def test_fifty_at_once_never_exceed_the_limit_and_all_get_through_in_order(store: Store, owner: Scope) -> None:
    """Each thread is a run: it asks, waits until it is called, and hands its slot on."""
    called = {f"run-{n:02}": threading.Event() for n in range(RUNS)}
    watch = threading.Lock()
    active: set[str] = set()
    most: list[int] = []

    def call(run_id: str) -> None:
        with watch:
            if called[run_id].is_set():
                return
            active.add(run_id)
            most.append(len(active))
            called[run_id].set()

    def live(run_id: str) -> None:
        if store.slots.acquire(owner, run_id, since=STARTED, limit=LIMIT, token=run_id) == 0:
            call(run_id)
        assert called[run_id].wait(60)
        with watch:
            active.discard(run_id)
        for next_run, token in store.slots.release(owner, run_id, limit=LIMIT):
            assert next_run == token
            call(next_run)

    with ThreadPoolExecutor(RUNS) as pool:
        list(pool.map(live, called))
    assert max(most) <= LIMIT
    assert all(event.is_set() for event in called.values())
    assert store.slots.acquire(owner, new_run_id(), since=STARTED, limit=LIMIT, token="t") == 0


def test_who_waits_does_so_in_the_order_of_their_start_however_they_came(store: Store, owner: Scope) -> None:
    store.slots.acquire(owner, "working", since=STARTED, limit=1, token="t")
    started = {f"run-{9 - n}": STARTED + timedelta(microseconds=n) for n in range(10)}

    def come(run_id: str) -> int:
        return store.slots.acquire(owner, run_id, since=started[run_id], limit=1, token=run_id)

    assert [come("run-3"), come("run-9"), come("run-1"), come("run-9")] == [1, 1, 3, 1]
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(come, sorted(started)))
    assert store.slots.held(owner).waiting == tuple(started)
    assert [come(run_id) for run_id in started] == list(range(1, 11))
    holder, order = "working", []
    for _ in started:
        ((holder, token),) = store.slots.release(owner, holder, limit=1)
        order.append(token)
    assert order == list(started)


def test_those_who_were_started_at_one_moment_wait_in_the_order_of_their_ids(store: Store, owner: Scope) -> None:
    for run_id in ("working", "run-b", "run-c", "run-a"):
        store.slots.acquire(owner, run_id, since=STARTED, limit=1, token=run_id)
    assert store.slots.held(owner).waiting == ("run-a", "run-b", "run-c")
