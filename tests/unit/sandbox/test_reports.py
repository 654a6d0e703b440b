"""Readers of test reports, on what the real runners have written (pytest 9, Python 3.13, jest 30, vitest 4, …)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_task.gate.reports.go import go_json, go_words
from sandbox_task.gate.reports.jest import jest_json
from sandbox_task.gate.reports.junit import junit
from sandbox_task.gate.reports.recognise import recognise
from sandpiper import limits
from sandpiper.models.run import ReportedTests

WRITTEN = Path(__file__).parent / "reports"
OF_PYTEST = (
    "tests/test_a.py::test_wrong",
    "tests/test_a.py::TestMore::test_it[a - b]",
    "tests/test_a.py::TestMore::test_it[c/d::e]",
    "tests/test_broken.py",
    "tests/test_a.py::test_err",
)
OF_JEST = ('sum.test.js › sum › adds "more" › things', "sum.test.js › sum › deep › fails too", "broken.test.js")
OF_VITEST = ("broken.test.js", "sum.test.js › sum › adds wrongly")
OF_GO = ("example.com/x/sum.TestWrong", "example.com/x/sum.TestTable/two_things", "example.com/x/bad")
OF_NODE = ("adds wrongly", "sum › is not")


def text(name: str) -> str:
    return (WRITTEN / name).read_text(encoding="utf-8")


def data(name: str) -> bytes:
    return (WRITTEN / name).read_bytes()


@pytest.mark.parametrize(
    ("name", "passed", "skipped", "failing"),
    [
        ("pytest.txt", 1, 2, OF_PYTEST),
        ("pytest-collection.txt", 0, 0, ("tests/test_broken.py",)),
        (
            "unittest.txt",
            1,
            1,
            (
                "tests.test_broken", "tests.test_u.B.setUpClass", "tests.test_u.T.test_error",
                "tests.test_u.T.test_sub (i=1)", "tests.test_u.T.test_wrong",
            ),
        ),
        ("cargo.txt", 2, 1, ("adder::tests::wrong", "tests/it.rs::outside", "adder::src/lib.rs - add")),
        ("cargo-quiet.txt", 2, 1, ("tests::wrong",)),
        ("go.txt", 0, 0, OF_GO),
        ("jest.txt", 1, 1, OF_JEST),
        ("vitest.txt", 1, 1, OF_VITEST),
        ("mocha.txt", 1, 1, ("stands alone", "sum › adds wrongly", "sum › deep › throws")),
        ("mocha.tap", 1, 1, ("stands alone", "sum adds wrongly", "sum deep throws")),
        ("node.tap", 2, 2, OF_NODE),
        ("node-spec.txt", 2, 2, OF_NODE),
    ],
)  # fmt: skip
def test_what_a_runner_prints_is_read(name: str, passed: int, skipped: int, failing: tuple[str, ...]) -> None:
    expected = ReportedTests(passed=passed, failed=len(failing), skipped=skipped, failing=failing)
    assert recognise(text(name)) == expected
    assert recognise(text(name).replace("\n", "\r\n")) == expected


def test_the_junit_report_of_pytest_names_tests_as_pytest_does() -> None:
    tests = junit(data("pytest.xml"))
    assert tests is not None
    assert (tests.passed, tests.failed, tests.skipped) == (1, 5, 2)
    assert set(tests.failing) == set(OF_PYTEST)


def test_the_junit_report_of_another_runner_is_read() -> None:
    assert junit(data("node.xml")) == ReportedTests(
        passed=2, failed=2, skipped=2, failing=("adds wrongly", "sum::is not")
    )


def test_a_junit_test_of_java_is_named_by_class_and_method() -> None:
    report = b'<testsuite name="S"><testcase classname="com.x.ATest" name="adds"><failure/></testcase></testsuite>'
    assert junit(report) == ReportedTests(failed=1, failing=("com.x.ATest::adds",))


@pytest.mark.parametrize(
    "report",
    [
        b"",
        b"<html/>",
        b"<testsuite><testcase",
        b'<?xml version="1.0" encoding="no-such"?><testsuite/>',
        b'<!DOCTYPE t [<!ENTITY a "b">]><testsuite><testcase name="x"/></testsuite>',
        b'<!DOCTYPE t SYSTEM "file:///etc/passwd"><testsuite/>',
    ],
)
def test_what_is_no_junit_report_or_declares_entities_is_not_read(report: bytes) -> None:
    assert junit(report) is None


def test_a_bomb_of_entities_is_refused_before_it_goes_off() -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<!DOCTYPE t [<!ENTITY e0 "boom">{entities}]><testsuite name="&e9;"/>'
    assert junit(bomb.encode()) is None


def test_deep_nesting_costs_nothing() -> None:
    assert junit(b"<testsuite>" * 100_000 + b"</testsuite>" * 100_000) == ReportedTests()


def test_the_json_report_of_jest_says_the_same_as_its_words() -> None:
    assert jest_json(data("jest.json"), "/workspace/js") == recognise(text("jest.txt"))


def test_the_json_report_of_vitest_says_the_same_as_its_words() -> None:
    assert jest_json(data("vitest.json"), "/workspace/vt") == recognise(text("vitest.txt"))


@pytest.mark.parametrize("report", [b"", b"[]", b"{}", b'{"testResults": [1]}', b"[" * 100_000])
def test_what_is_no_report_of_jest_is_not_read(report: bytes) -> None:
    assert jest_json(report, "/") is None


def test_the_events_of_go_count_each_test_once_and_name_what_does_not_build() -> None:
    assert go_json(text("go.jsonl")) == ReportedTests(passed=2, failed=3, skipped=1, failing=OF_GO)


def test_the_events_of_go_are_shown_as_words() -> None:
    shown = b"".join(go_words(line + b"\n") for line in data("go.jsonl").split(b"\n")).decode()
    assert "--- FAIL: TestWrong (0.00s)\n" in shown
    assert "undefined: nothing\n" in shown
    assert '{"Time"' not in shown
    assert "=== RUN" not in shown


def test_several_runners_in_one_output_are_added_up() -> None:
    tests = recognise(text("cargo.txt") + text("pytest.txt"))
    assert tests is not None
    assert (tests.passed, tests.failed) == (3, 8)


@pytest.mark.parametrize(
    "said", ["", "make: Nothing to be done for 'test'.", "ok", "1 failed attempt in total", "OK\n"]
)
def test_output_without_a_runners_totals_reports_nothing(said: str) -> None:
    assert recognise(said) is None


def test_names_are_bounded_in_number_and_length() -> None:
    lines = "".join(f"FAILED tests/test_{'x' * 400}_{n}.py::test_{n}\n" for n in range(limits.MAX_FAILING_TESTS + 10))
    short = "".join(f"FAILED t.py::test_{n}\n" for n in range(limits.MAX_FAILING_TESTS + 10))
    tests = recognise(f"{lines}{short}{limits.MAX_FAILING_TESTS} failed in 1.0s\n")
    assert tests is not None
    assert len(tests.failing) == limits.MAX_FAILING_TESTS
    assert max(map(len, tests.failing)) == limits.MAX_TEST_NAME_CHARS


@given(st.text())
def test_no_output_can_upset_the_readers(said: str) -> None:
    recognise(said)
    recognise(f"{said}\n1..1\nRan 1 test in 0.1s\n\nOK\n  1 passing (1ms)\n{said}")
    go_json(said)


@given(st.binary())
def test_no_report_can_upset_the_readers(report: bytes) -> None:
    junit(report)
    jest_json(report, "/workspace")
    go_words(report)
