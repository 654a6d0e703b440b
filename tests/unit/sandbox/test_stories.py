from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from sandbox_task.stories import BrokenPrd, Story, choose_story, mark_story, progress_line

PRD = """{
  "project": "x",
    "userStories": [
    { "id": "US-1", "title": "Login page", "priority": 2, "passes": false, "note": "a } brace" },
    {
      "id": "US-2",
      "title": "Logout button",
      "priority": 1
    },
    {"id":"US-3","title":"Done thing","priority":0,"passes":true}
  ]
}
"""


def chosen(words: str) -> str | None:
    story = choose_story(PRD, words)
    return story.id if story else None


def test_a_story_that_is_named_by_id_is_chosen() -> None:
    assert chosen("please do us-1 today") == "US-1"


def test_the_id_must_be_a_word_of_its_own() -> None:
    assert chosen("status-12") == "US-2"


def test_words_of_the_title_decide_between_stories() -> None:
    assert chosen("we need a page to log in") == "US-1"


def test_without_any_word_the_lowest_priority_number_is_chosen() -> None:
    assert chosen("improve things") == "US-2"


def test_stories_that_pass_are_not_chosen_again() -> None:
    assert choose_story('{"userStories": [{"id": "a", "passes": true}]}', "a") is None


def test_marking_changes_one_word_and_nothing_else() -> None:
    assert mark_story(PRD, Story("US-1", "", 0), passes=True) == PRD.replace('"passes": false', '"passes": true')


def test_a_story_without_the_key_gets_it() -> None:
    marked = json.loads(mark_story(PRD, Story("US-2", "", 0), passes=True))
    assert marked["userStories"][1]["passes"] is True


@pytest.mark.parametrize("text", ["{", "[]", '{"userStories": {}}', '{"userStories": ["x"]}'])
def test_a_file_that_is_no_prd_is_said_so(text: str) -> None:
    with pytest.raises(BrokenPrd):
        choose_story(text, "x")


def test_the_progress_line_has_the_verdict_and_the_first_line_of_the_task() -> None:
    line = progress_line(Story("US-1", "T", 0), "skipped", "none", "Do it\nnow", datetime(2026, 1, 2, tzinfo=UTC))
    assert line == "[2026-01-02T00:00:00Z] US-1 T :: UNVERIFIED :: none :: Task: Do it\n"
