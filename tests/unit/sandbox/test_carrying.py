"""What is carried to B's interpreter: read by any Python from 3.9 on, and without much of the standard library."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_task.isolation import executor
from sandbox_task.isolation.carrying import packed, unpacking
from sandbox_task.isolation.egress import broker
from sandbox_task.isolation.egress.gateway import Gateway, guard
from sandbox_task.isolation.launch import EXECUTOR
from sandbox_task.isolation.slim import as_json

if TYPE_CHECKING:
    from types import ModuleType

# Each brings others along, and together they would be a third of the time that the wall takes to go up.
HEAVY = {
    *("collections", "contextlib", "ctypes", "enum", "functools"),
    *("json", "os", "re", "selectors", "signal", "socket"),
}
OLDEST = (3, 9)


def _all_modules() -> tuple[ModuleType, ...]:
    gateway = Gateway(on_refusal=lambda *_: None)
    return (*EXECUTOR, *guard([], {}).modules, *gateway.into_namespace().modules)


def _pythons() -> list[Path]:
    """By their names, such as python3.11."""
    rooms = [Path("/usr/bin"), Path("/usr/local/bin"), *Path.home().glob(".pyenv/versions/*/bin")]
    found = [place for room in rooms for place in room.glob("python3.*")]
    return [place for place in found if place.suffix[1:].isdigit() and int(place.suffix[1:]) >= OLDEST[1]]


def _run(python: Path | str, carried: bytes, then: str) -> str:
    source = f"{unpacking(carried)}\n{then}"
    done = subprocess.run([python, "-I", "-S", "-c", source], input=carried, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.mark.parametrize("module", _all_modules(), ids=lambda module: module.__name__.rpartition(".")[2])
def test_each_module_is_written_in_the_oldest_python(module: ModuleType) -> None:
    ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"), feature_version=OLDEST)


def test_every_python_that_is_here_reads_them_as_text() -> None:
    carried = packed(_all_modules(), compiled=False)
    imports = "\n".join(f"import {module.__name__}" for module in _all_modules())
    assert {_run(python, carried, f"{imports}\nprint('read')") for python in _pythons()} == {"read\n"}


@pytest.mark.parametrize("module", [executor, broker], ids=["executor", "broker"])
def test_the_wall_goes_up_without_the_heavy_modules(module: ModuleType) -> None:
    loaded = _run(
        sys.executable, packed(_all_modules(), compiled=True), f"import {module.__name__}\nprint(*sys.modules)"
    )
    assert HEAVY & set(loaded.split()) == set()


ANSWERS = st.recursive(
    st.text() | st.integers() | st.booleans(),
    lambda part: st.lists(part) | st.dictionaries(st.text(), part),
)


@given(answer=ANSWERS)
def test_an_answer_is_what_every_reader_of_json_takes_for_the_same(answer: object) -> None:
    assert json.loads(as_json(answer)) == answer
