"""Stories of markdown PRDs: headings with check-boxes, or a checklist of stories."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_task.stories.markdown_prd import read_markdown
from sandbox_task.stories.story import Story, mark_done, take_back

HEADINGS = """# Product

- [ ] not of any story

## Stories
### US-001: Login page
**Priority:** 2

#### Acceptance criteria
- [ ] a form
* [x] a button
```
- [ ] only an example
```

### **US-002** — Logout
Priority: high
1. [ ] it logs out

### US-003: No boxes

## Notes
- [ ] later
"""
CHECKLIST = "# Plan\n\n- [ ] **US-1**: Login\n  - [ ] form\n  - [x] button\n- [x] US-2 Logout\n- [ ] US-3: Help\n"


def named(text: str) -> list[tuple[str, str, bool]]:
    return [(story.id, story.title, story.is_done) for story in read_markdown(text)]


def test_headings_with_an_id_are_stories_with_the_boxes_below_them() -> None:
    assert named(HEADINGS) == [("US-001", "Login page", False), ("US-002", "Logout", False)]
    assert [len(story.boxes) for story in read_markdown(HEADINGS)] == [2, 1]
    assert [story.priority for story in read_markdown(HEADINGS)] == [2.0, 1.0]


def test_the_boxes_of_one_story_are_ticked_and_nothing_else_changes() -> None:
    assert mark_done(HEADINGS, read_markdown(HEADINGS)[0]) == HEADINGS.replace("- [ ] a form", "- [x] a form")


def test_a_checklist_of_stories_has_its_parts_indented_below() -> None:
    assert named(CHECKLIST) == [("US-1", "Login", False), ("US-2", "Logout", True), ("US-3", "Help", False)]
    marked = mark_done(CHECKLIST, read_markdown(CHECKLIST)[0])
    assert marked == CHECKLIST.replace("- [ ] **US-1**", "- [x] **US-1**").replace("- [ ] form", "- [x] form")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# X\n## Login\n- [ ] form\n## Logout\n- [x] b\n", [("", "Login", False), ("", "Logout", True)]),
        ("# X\n## Login\n### Acceptance Criteria\n- [ ] form\n", [("", "Login", False)]),
        ("# X\n## User stories\n- [ ] Login\n- [ ] Logout\n", [("", "Login", False), ("", "Logout", False)]),
        ("- [ ] Login\n- [X] Logout\n", [("", "Login", False), ("", "Logout", True)]),
        ("## User Story 3: Search\n- [ ] box\n", [("User Story 3", "Search", False)]),
        ("# PRD\nJust words.\n", []),
        ("", []),
    ],
)
def test_other_ways_of_writing_stories(text: str, expected: list[tuple[str, str, bool]]) -> None:
    assert named(text) == expected
    assert named(text.replace("\n", "\r\n")) == expected


def test_line_endings_and_a_missing_last_newline_stay() -> None:
    text = "\ufeff## US-1: A\r\n\t- [ ] b  \r\n- [ ] c"
    assert mark_done(text, read_markdown(text)[0]) == "\ufeff## US-1: A\r\n\t- [x] b  \r\n- [x] c"


def test_boxes_that_the_work_ticked_itself_are_taken_back_and_those_from_before_stay() -> None:
    by_the_work = mark_done(HEADINGS, read_markdown(HEADINGS)[0]).replace("Login page", "Login page!")
    back = take_back(by_the_work, read_markdown(by_the_work)[0], read_markdown(HEADINGS)[0])
    assert back == HEADINGS.replace("Login page", "Login page!")


def test_a_story_without_a_priority_comes_last() -> None:
    assert read_markdown("## US-1: A\n- [ ] b\n")[0].priority == math.inf


LINES = st.lists(
    st.sampled_from(
        ["# T", "## US-1: A", "### B", "## US-2: C", "- [ ] x", "  - [ ] y", "* [x] z", "1. [X] w", "```", "text", ""]
    )
    | st.text(alphabet="#-[] xX`\t\r"),
)  # fmt: skip


def difference(before: str, after: str) -> set[tuple[str, str]]:
    return {(a, b) for a, b in zip(before, after, strict=True) if a != b}


@given(LINES, st.data())
def test_a_mark_only_ever_ticks_boxes(lines: list[str], data: st.DataObject) -> None:
    text = "\n".join(lines)
    stories: list[Story] = read_markdown(text)
    if not stories:
        return
    number = data.draw(st.integers(0, len(stories) - 1))
    marked = mark_done(text, stories[number])
    assert difference(text, marked) <= {(" ", "x")}
    again = read_markdown(marked)
    assert again[number].is_done
    assert [story.is_done for n, story in enumerate(again) if n != number] == [
        story.is_done for n, story in enumerate(stories) if n != number
    ]
    assert take_back(marked, again[number], stories[number]) == text or any(
        box.is_ticked for box in stories[number].boxes
    )
