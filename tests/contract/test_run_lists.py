from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from sandpiper.errors import BadRequest
from sandpiper.models.spec import RunSpec
from tests.contract.samples import a_run

if TYPE_CHECKING:
    from sandpiper.models.run import Run
    from tests.contract.worlds import Store


def test_runs_are_listed_newest_first_page_by_page(store: Store, owner: str) -> None:
    made = []
    for _ in range(5):
        made.append(store.runs.create(a_run(owner, store.clock), []))
        store.clock.advance(1)
    first = store.runs.list_by_owner(owner, status=None, repo=None, limit=2, cursor=None)
    second = store.runs.list_by_owner(owner, status=None, repo=None, limit=2, cursor=first.cursor)
    third = store.runs.list_by_owner(owner, status=None, repo=None, limit=2, cursor=second.cursor)
    assert [*first.items, *second.items, *third.items] == made[::-1]
    assert third.cursor is None


def test_a_page_that_holds_the_last_run_has_no_cursor(store: Store, run: Run) -> None:
    page = store.runs.list_by_owner(run.owner, status=None, repo=None, limit=1, cursor=None)
    assert (page.items, page.cursor) == ((run,), None)


def test_runs_of_somebody_else_are_not_listed(store: Store, run: Run) -> None:
    page = store.runs.list_by_owner(f"{run.owner}-2", status=None, repo=None, limit=5, cursor=None)
    assert (page.items, page.cursor) == ((), None)


def test_a_filtered_page_is_full_although_others_lie_between(store: Store, owner: str) -> None:
    wanted = []
    for n in range(12):
        spec = RunSpec(task="t", repo="octo/wanted" if n % 4 == 0 else "octo/other")
        status = "completed" if n % 8 == 0 else "queued"
        run = store.runs.create(a_run(owner, store.clock, spec=spec, status=status), [])
        wanted += [run] if n % 4 == 0 else []
        store.clock.advance(1)
    page = store.runs.list_by_owner(owner, status=None, repo="octo/wanted", limit=2, cursor=None)
    assert list(page.items) == wanted[:0:-1]
    page = store.runs.list_by_owner(owner, status=None, repo="octo/wanted", limit=2, cursor=page.cursor)
    assert (list(page.items), page.cursor) == (wanted[:1], None)
    both = store.runs.list_by_owner(owner, status="completed", repo="octo/wanted", limit=5, cursor=None)
    assert list(both.items) == [wanted[2], wanted[0]]


@pytest.mark.parametrize(
    "cursor", ["", "x", "!!!", "é", "W10", base64.urlsafe_b64encode(b'["me","no key"]').decode(), "W1tb" * 4000]
)
def test_a_cursor_that_we_did_not_make_is_refused(store: Store, owner: str, cursor: str) -> None:
    with pytest.raises(BadRequest):
        store.runs.list_by_owner(owner, status=None, repo=None, limit=1, cursor=cursor)


def test_the_cursor_of_another_owner_is_refused(store: Store, run: Run) -> None:
    store.runs.create(a_run(run.owner, store.clock), [])
    cursor = store.runs.list_by_owner(run.owner, status=None, repo=None, limit=1, cursor=None).cursor
    assert cursor is not None
    with pytest.raises(BadRequest):
        store.runs.list_by_owner("somebody else", status=None, repo=None, limit=1, cursor=cursor)
    with pytest.raises(BadRequest):
        store.runs.list_by_owner(run.owner, status=None, repo=None, limit=1, cursor=cursor + "=")
