from __future__ import annotations

import pytest

from sandbox_task.agent.strategy import choose_strategy
from sandpiper.models.spec import PromptStrategy, RunSpec, TaskType


def test_a_strategy_that_was_asked_for_wins_over_type_and_words() -> None:
    chosen = choose_strategy(RunSpec(task="Fix it", type="bug-fix", prompt_strategy="documentation"))
    assert (chosen.name, chosen.source) == ("documentation", "request")


@pytest.mark.parametrize(
    ("type_", "strategy"),
    [
        ("bug-fix", "bug-fix"),
        ("refactoring", "refactor"),
        ("documentation", "documentation"),
        ("testing", "test-hardening"),
        ("migration", "migration"),
        ("code-review", "review"),
        ("test-suite", "review"),
    ],
)
def test_a_type_that_says_something_wins_over_words(type_: TaskType, strategy: PromptStrategy) -> None:
    chosen = choose_strategy(RunSpec(task="Fix the tests of the documentation", type=type_))
    assert (chosen.name, chosen.source) == (strategy, "task_type")


@pytest.mark.parametrize(
    ("task", "strategy"),
    [
        ("Fix the crash at login", "bug-fix"),
        ("Please fix the failing test", "bug-fix"),
        ("Refactor the basket", "refactor"),
        ("Could you rename Basket to Cart", "refactor"),
        ("Write unit tests for the parser", "test-hardening"),
        ("Increase the coverage of api.py", "test-hardening"),
        ("Update the README with an example", "documentation"),
        ("Document the settings", "documentation"),
        ("Migrate to pydantic 2", "migration"),
        ("Upgrade Django", "migration"),
        ("Review the last change", "review"),
        ("Fixes #12: the sum is wrong", "bug-fix"),
        ("Resolve the race at startup", "bug-fix"),
        ("Renaming Basket to Cart", "refactor"),
        ("Clean up the imports", "refactor"),
        ("Simplify the parser", "refactor"),
    ],
)
def test_for_the_generic_type_what_the_task_begins_with_decides(task: str, strategy: PromptStrategy) -> None:
    chosen = choose_strategy(RunSpec(task=task))
    assert (chosen.name, chosen.source) == (strategy, "words")


@pytest.mark.parametrize(
    "task",
    [
        "Add an error page",
        "Fixtures for the login page",
        "Reviewers can be assigned to a ticket",
        "Resolver for GraphQL queries",
        "Corrections that users propose are shown",
        "Portfolio page for artists",
        "Add a button that fixes typos",
        "Let users rename files",
        "Implement the migration wizard",
        "Show test results in the dashboard",
        "",
    ],
)
def test_words_further_on_do_not_make_a_feature_anything_else(task: str) -> None:
    assert choose_strategy(RunSpec(task=task)).name == "feature-delivery"
