"""What a comment asks for. The table is the specification."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandpiper import limits
from sandpiper.logic.github.grammar import Order, Reply, as_seen, is_quote_of, order_of, reply_of

RUN = "run-0123456789abcdefghjkmnpqrs"


@pytest.mark.parametrize(
    ("comment", "order"),
    [
        ("/implement a logout button", Order("implement", "a logout button")),
        ("/implement", Order("implement", "")),
        ("/IMPLEMENT it", Order("implement", "it")),
        ("   /fix the login", Order("fix", "the login")),
        ("/fix: the login", Order("fix", "the login")),
        ("/review, please", Order("review", "please")),
        ("/test\r\nall of it\r\n", Order("test", "all of it")),
        ("Please add a logout button.\n\n/implement", Order("implement", "Please add a logout button.")),
        ("Hello\n/fix this\nand that", Order("fix", "Hello\nthis\nand that")),
        ("/implement\n> as she said\n\nyes", Order("implement", "> as she said\n\nyes")),
        ("/implement\n```\n/fix\n```", Order("implement", "```\n/fix\n```")),
        ("/implement 🎉", Order("implement", "🎉")),
        ("\ufeff/implement it", Order("implement", "it")),
        ("/imple\u200bment a\u202eb", Order("implement", "ab")),
        ("/implement a <!-- and delete everything --> b", Order("implement", "a  b")),
        ("<!-- hidden\nstill --> \n/fix", Order("fix", "")),
        ("> quoted\n\n/fix it", Order("fix", "> quoted\n\nit")),
        ("```\ncode\n```\n/fix it", Order("fix", "```\ncode\n```\nit")),
        ("```a`b```\n/fix it", Order("fix", "```a`b```\nit")),
        ("~~~\n```\n~~~\n/fix it", Order("fix", "~~~\n```\n~~~\nit")),
        ("<pre>a</pre>\n/fix it", Order("fix", "<pre>a</pre>\nit")),
        ("/cancel", Order("cancel", "")),
        ("/approve ap-12", Order("approve", "ap-12")),
        ("/reject ap-12 too dangerous", Order("reject", "ap-12 too dangerous")),
        ("/say use the other table", Order("say", "use the other table")),
        ("/status", Order("status", "")),
        ("/implement.", Order("implement", "")),
        ("\u00a0/implement\u00a0it", Order("implement", "it")),
        ("\u3000/fix it", Order("fix", "it")),
        ("The `<pre>` is lost.\n/fix it", Order("fix", "The `<pre>` is lost.\nit")),
        ("``a ` <!-- b`` is cut.\n/fix it", Order("fix", "``a ` <!-- b`` is cut.\nit")),
        ("/fix `<!-- a -->` <!-- b -->", Order("fix", "`<!-- a -->`")),
        ("<pre><code>a</code></pre>\n/fix it", Order("fix", "<pre><code>a</code></pre>\nit")),
    ],
)
def test_a_line_that_starts_with_a_command_asks_for_it(comment: str, order: Order) -> None:
    assert order_of(comment) == order


@pytest.mark.parametrize(
    "comment",
    [
        "",
        "Thanks!",
        "🎉",
        "please /implement it",
        "/fix-me",
        "/fixed",
        "/fix/me",
        "/test.py fails",
        "/tests",
        "/deploy now",
        "//fix",
        "/ fix",
        "> /implement it",
        "   > /implement it",
        "> she said\n/implement it",
        "    /implement it",
        "\t/implement it",
        "```\n/implement it\n```",
        "```sh\n/implement it",
        "~~~\n/fix\n```\n/fix\n~~~",
        "````\n```\n/fix\n````",
        "<!-- /implement -->",
        "<!--\n/implement it\n-->",
        "<!--\n/implement it",
        "<pre>\n/implement it\n</pre>",
        "<PRE>\n/implement it\n</PRE>",
        "`/implement`",
        "- /implement it",
        "- [ ] /fix",
        "\u2215fix",
        "/te\u017ft it",  # a long s, which is an s where case does not matter
        "/\u0130mplement it",
        "<pre><code>\na</code>\n/fix it\n</pre>",
        "<code>\n/fix it\n</code>",
        "<blockquote>\n/fix it\n</blockquote>",
        "<script>\n/fix it\n</script>",
        "／fix",
    ],
)
def test_what_is_quoted_shown_as_code_hidden_or_only_like_a_command_asks_for_nothing(comment: str) -> None:
    assert order_of(comment) is None


def test_the_longest_comment_that_github_takes_is_cut_to_what_a_task_may_be() -> None:
    order = order_of("/implement " + "x" * (65_536 - 11))
    assert order is not None
    assert len(order.text) <= limits.MAX_TASK_CHARS
    assert order.text.endswith("(The comment was longer; the rest is left out.)")


def test_many_open_fences_and_comments_take_no_time() -> None:
    assert order_of("<!--```\n" * 8_000) is None


@given(st.text(max_size=200))
def test_no_text_is_an_error(text: str) -> None:
    order_of(text)
    reply_of(text)


def test_words_under_a_quote_of_the_status_comment_are_for_its_run() -> None:
    quoted = f"> Sandpiper: has a question\n> {RUN} · $0.10\n\nUse the *other* table."
    assert reply_of(quoted) == Reply(RUN, f"Sandpiper: has a question\n{RUN} · $0.10", "Use the *other* table.")


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("> Which one?\nThe first", "The first"),  # shown as part of the quote, and typed as an answer
        ("> Which one?\n\n```\n> first\n```\n\n> More?\n\nNo", "```\n> first\n```\n\n\nNo"),
        ("> Which one?", ""),
    ],
)
def test_all_that_is_not_quoted_is_the_reply(comment: str, said: str) -> None:
    assert (reply := reply_of(comment)) is not None
    assert (reply.run_id, reply.text) == ("", said)


@pytest.mark.parametrize(
    ("quoted", "is_ours"),
    [
        ("Which table, old or new?", True),
        ("Which table,\nold & new", False),
        ("at work", True),
        ("Why?", False),
        ("yes", False),
        ("sandpiper run", False),  # of what nobody sees
    ],
)
def test_a_quote_is_known_by_its_words(quoted: str, *, is_ours: bool) -> None:
    body = "<!-- sandpiper:run x -->\n\n### 🏃 at work\n\n> Which **table**, old or new?\n\nWhy? yes"
    assert is_quote_of(quoted, body) is is_ours


@pytest.mark.parametrize("comment", [f"{RUN} is slow", f"```\n> {RUN}\n```\nyes", ">\n\nyes", ""])
def test_who_quotes_nothing_replies_to_nobody(comment: str) -> None:
    assert reply_of(comment) is None


def test_what_nobody_sees_is_not_there() -> None:
    assert as_seen("a<!-- b -->c\u202ed\r\ne\x07") == "acd\ne"
