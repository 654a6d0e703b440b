"""The sample repository and the script that plays its task belong together: neither may drift."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from sandpiper_local.sample_repository import SCENARIOS_DIR, create_sample_repository, git, sample_task
from sandpiper_local.scripted_model.scenario import Scenario, load_scenarios

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return create_sample_repository(tmp_path / "tillroll")


@pytest.fixture
def script() -> Scenario:
    (found,) = load_scenarios([SCENARIOS_DIR])
    return found


def run_tests(repository: Path) -> subprocess.CompletedProcess[str]:
    (check,) = yaml.safe_load((repository / ".sandpiper.yml").read_text())["checks"]
    command = [sys.executable, "-B", *check.split()[1:]]
    return subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)


def play(repository: Path, name: str, arguments: dict[str, Any]) -> str:
    """What each tool does, without the sandbox."""
    if name == "run_command":
        return run_tests(repository).stderr
    if name not in {"read_file", "write_file", "edit_file"}:
        return "ok"
    path: Path = repository / arguments["path"]
    if name == "write_file":
        path.write_text(arguments["content"])
    for edit in arguments.get("edits", ()):
        assert path.read_text().count(edit["old"]) == 1
        path.write_text(path.read_text().replace(edit["old"], edit["new"]))
    return path.read_text()


def test_exactly_one_test_fails_at_base(repository: Path) -> None:
    before = run_tests(repository)
    assert "FAILED (failures=1)" in before.stderr
    assert git(repository, "status", "--short") == ""


def test_the_script_takes_the_repository_from_red_to_green(repository: Path, script: Scenario) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Context first.\n{sample_task().task}"}]
    request = {"model": "claude-sonnet-5-5", "messages": messages}
    assert script.match.fits(request)
    for _ in script.replies:
        reply = script.reply_to(request)
        calls = [{"type": "tool_use", "id": str(n)} for n, _ in enumerate(reply.tools)]
        results = [
            {"type": "tool_result", "tool_use_id": str(n), "content": play(repository, call.name, call.input)}
            for n, call in enumerate(reply.tools)
        ]
        messages += [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]
    assert run_tests(repository).returncode == 0
    assert git(repository, "status", "--short").split() == ["M", "tillroll/basket.py", "??", "tests/test_discounts.py"]


def test_another_task_on_the_sample_is_not_taken_for_the_sample_task(script: Scenario) -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "Print a receipt (US-3) for tillroll"}]}
    assert not script.match.fits(request)
