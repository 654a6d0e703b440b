"""Stories of JSON PRDs: which one is chosen, and that nothing but its mark is changed."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_task.stories.json_prd import read_json
from sandbox_task.stories.progress import appended, progress_line
from sandbox_task.stories.recording import described, prd_files
from sandbox_task.stories.story import BrokenPrd, Choice, Story, best_choice, mark_done, take_back
from sandpiper import limits
from sandpiper.models.run import GateReport, StoryOutcome

PRD = """{
  "project": "x", "meta": {"userStories": [{"id": "US-9", "passes": false}]},
    "userStories": [
    { "id": "US-1", "title": "Login page", "priority": 2, "passes": false, "note": "a } brace", "x": {"passes": 1} },
    {
      "id": "US-2",
      "title": "Logout button",
      "priority": 1
    },
    {"id":"US-3","title":"Done thing","priority":0,"passes":true}
  ]
}
"""


def choice(text: str, words: str) -> Choice | None:
    return best_choice((("prd.json", 0, story) for story in read_json(text)), words)


def chosen(words: str, text: str = PRD) -> str | None:
    found = choice(text, words)
    return found.story.id if found else None


def story(text: str, number: int) -> Story:
    return read_json(text)[number]


def test_a_story_that_is_named_by_id_is_chosen() -> None:
    assert chosen("please do us-1 today") == "US-1"


@pytest.mark.parametrize("words", ["status-1", "us-12", "us-1.2", "us-1-b", "x-us-1"])
def test_the_id_must_be_a_word_of_its_own(words: str) -> None:
    assert chosen(words) == "US-2"


def test_words_of_the_title_decide_between_stories() -> None:
    assert chosen("we need a page to log in") == "US-1"


def test_the_score_adds_id_title_and_each_word_of_four_letters() -> None:
    found = choice(PRD, "US-1: Login  page, then pages")
    assert found is not None
    assert (found.score, found.reason) == (11, "its id is named, its title is named, 2 words of its title")


def test_a_word_inside_another_word_is_not_named() -> None:
    assert chosen("the homepage") == "US-2"


def test_without_any_word_the_lowest_priority_number_is_chosen_and_that_is_said() -> None:
    found = choice(PRD, "improve things")
    assert found is not None
    assert (found.story.id, found.score) == ("US-2", 0)
    assert "priority" in found.reason


def test_stories_that_pass_are_not_chosen_again() -> None:
    assert choice('{"userStories": [{"id": "a", "passes": true}]}', "a") is None


@pytest.mark.parametrize("passes", ['"true"', "1", "null", "{}"])
def test_only_the_literal_true_is_a_pass(passes: str) -> None:
    assert chosen("a", f'{{"userStories": [{{"id": "a", "passes": {passes}}}]}}') == "a"


def test_priorities_of_any_kind_are_put_in_order_and_what_is_none_comes_last() -> None:
    kinds = ['"3"', "2.5", "true", "null", '"high"', "[1]", "1e999", "NaN"]
    text = f'{{"userStories": [{", ".join(f'{{"id": "{n}", "priority": {kind}}}' for n, kind in enumerate(kinds))}]}}'
    assert [found.priority for found in read_json(text)] == [3.0, 2.5, *[math.inf] * 6]
    assert chosen("", text) == "1"


def test_marking_changes_one_word_and_nothing_else() -> None:
    assert mark_done(PRD, story(PRD, 0)) == PRD.replace('2, "passes": false', '2, "passes": true')


def test_a_story_without_the_key_gets_it_in_the_style_of_its_last_member() -> None:
    assert mark_done(PRD, story(PRD, 1)) == PRD.replace(
        '      "priority": 1\n', '      "priority": 1,\n      "passes": true\n'
    )
    assert mark_done('{"userStories":[{}]}', story('{"userStories":[{}]}', 0)) == '{"userStories":[{"passes": true}]}'


@pytest.mark.parametrize(
    ("written", "marked"),
    [
        ('\ufeff{"userStories":[{"id":"a","passes":false}]}', '\ufeff{"userStories":[{"id":"a","passes":true}]}'),
        ('{\r\n\t"userStories": [{"passes":\r\n null}]\r\n}', '{\r\n\t"userStories": [{"passes":\r\n true}]\r\n}'),
        ('{"userStories":[{"id":"\\u00fc\\ud83d","passes":0}]}',
         '{"userStories":[{"id":"\\u00fc\\ud83d","passes":true}]}'),
        ('{"userStories":[{"passes":true,"passes":false}]}', '{"userStories":[{"passes":true,"passes":true}]}'),
        ('{"userStories":1,"userStories":[{"pa\\u0073ses":[]}]}',
         '{"userStories":1,"userStories":[{"pa\\u0073ses":true}]}'),
    ],
)  # fmt: skip
def test_every_way_of_writing_json_is_kept(written: str, marked: str) -> None:
    assert mark_done(written, story(written, 0)) == marked


def test_a_pass_that_the_work_wrote_itself_is_taken_back() -> None:
    by_the_work = mark_done(PRD, story(PRD, 0))
    assert take_back(by_the_work, story(by_the_work, 0), story(PRD, 0)) == PRD
    assert take_back(PRD, story(PRD, 0), story(PRD, 0)) == PRD


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{\n  "userStories": [,\n}', r"not JSON: .* at line 2, column 19"),
        ("", "not JSON: .* at line 1, column 1"),
        ("[]", "it is a list, and an object"),
        ("3", "it is a number"),
        ("{}", "it has no `userStories`"),
        ('{"userStories": {}}', "`userStories` is an object"),
        ('{"userStories": [{}, "x"]}', "item 2 of `userStories` is a string"),
        ("[" * 100_000, "can't be read|not JSON"),
        (f'{{"userStories": [{"9" * 5000}]}}', "can't be read"),
    ],
)
def test_a_file_that_is_no_prd_is_said_so_with_the_place(text: str, told: str) -> None:
    with pytest.raises(BrokenPrd, match=told):
        read_json(text)


LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
NAMES = st.sampled_from(["id", "title", "passes", "priority", "x", "userStories"]) | st.text(max_size=3)
INNER = st.dictionaries(NAMES, LEAVES, max_size=3) | st.lists(LEAVES, max_size=2)
STORIES = st.dictionaries(NAMES, LEAVES | INNER, max_size=5)


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, int]:
    """A PRD, written in any style, and the number of one of its stories."""
    stories = draw(st.lists(STORIES, min_size=1, max_size=3))
    document = {**draw(STORIES), "userStories": stories}
    space = draw(st.sampled_from(["", " ", "\t", "\r\n ", "\n"]))
    text = json.dumps(
        document,
        indent=draw(st.sampled_from([None, 0, 2, "\t"])),
        ensure_ascii=draw(st.booleans()),
        separators=(f"{space},{space}", f"{space}:{space}"),
    )
    written = draw(st.sampled_from(["", "\ufeff"])) + space + text + draw(st.sampled_from(["", "\n", "\r\n"]))
    return written, draw(st.integers(0, len(stories) - 1))


@given(documents())
def test_a_mark_is_one_edit_and_all_other_bytes_stay(document: tuple[str, int]) -> None:
    text, number = document
    target = story(text, number)
    marked = mark_done(text, target)
    (box,) = target.boxes
    grown = len(marked) - len(text)
    assert marked[: box.start] == text[: box.start]
    assert marked[box.end + grown :] == text[box.end :]
    expected: Any = json.loads(text.lstrip("\ufeff"))
    expected["userStories"][number]["passes"] = True
    assert json.loads(marked.lstrip("\ufeff")) == expected
    assert story(marked, number).is_done


@given(documents(), st.text())
def test_any_choice_is_an_open_story_that_no_other_beats(document: tuple[str, int], words: str) -> None:
    stories = read_json(document[0])
    found = best_choice((("prd.json", 0, each) for each in stories), words)
    if found is None:
        assert all(each.is_done for each in stories)
        return
    assert not found.story.is_done
    rivals = [best_choice([("prd.json", 0, each)], words) for each in stories]
    assert all(
        (found.score, -found.story.priority) >= (rival.score, -rival.story.priority) for rival in rivals if rival
    )


@given(
    st.from_regex(r"[A-Z]{2,4}-[0-9]{1,4}", fullmatch=True),
    st.text(alphabet="abc XYZ,.!?\n"),
    st.text(alphabet=" ,!?\n"),
)
def test_naming_the_id_is_worth_five_points(identifier: str, before: str, after: str) -> None:
    text = json.dumps({"userStories": [{"id": identifier}]})
    with_id = choice(text, f"{before} {identifier.lower()}{after}")
    without = choice(text, f"{before} {after}")
    assert with_id is not None
    assert without is not None
    assert with_id.score - without.score == 5


def test_prds_are_found_in_any_case_and_the_best_known_place_comes_first() -> None:
    paths = ["tasks/prd-b.md", "tasks/PRD-a.md", "Docs/PRD.md", "PRD.md", "prd.JSON", "src/prd.json", "prd.json.bak"]
    assert prd_files(paths) == ["prd.JSON", "PRD.md", "Docs/PRD.md", "tasks/PRD-a.md", "tasks/prd-b.md"]


def test_a_story_is_described_in_its_own_words_and_bounded() -> None:
    found = choice(f'{{"userStories": [{{"id": "US-1", "x": "{"y" * limits.STORY_CHARS}"}}]}}', "")
    assert found is not None
    words = described(found)
    assert words.startswith('US-1 in prd.json:\n{"id": "US-1", "x": "yyy')
    assert words.endswith("… 23 more characters")


def line(task: str, title: str = "T", summary: str = "none") -> str:
    outcome = StoryOutcome(file="prd.json", id="US-1", title=title, verdict="UNVERIFIED")
    gate = GateReport(status="skipped", summary=summary)
    return progress_line(outcome, gate, task, datetime(2026, 1, 2, tzinfo=UTC))


def test_the_progress_line_has_time_story_verdict_gate_and_task() -> None:
    assert line("Do it\nnow") == "[2026-01-02T00:00:00Z] US-1 T :: UNVERIFIED :: none :: Task: Do it now"


@given(st.text(), st.text(), st.text())
def test_progress_is_one_line_of_four_parts_whatever_it_is_about(task: str, title: str, summary: str) -> None:
    said = line(task, title, summary)
    assert len(said.splitlines()) == 1
    assert said.count(" :: ") == 3


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b"new\n"),
        (b"old\n", b"old\nnew\n"),
        (b"old", b"old\nnew\n"),
        (b"a\r\nold", b"a\r\nold\r\nnew\r\n"),
        (b"\xff\r\n", b"\xff\r\nnew\r\n"),
    ],
)
def test_a_line_is_appended_with_the_files_own_ending(before: bytes, after: bytes) -> None:
    assert appended(before, "new") == after
