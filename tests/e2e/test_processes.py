"""`sandpiper up` and `sandpiper down` as processes: no trace is left of either, whatever runs then."""

from __future__ import annotations

import contextlib
import json
import subprocess
import uuid
from typing import TYPE_CHECKING

from tests.e2e.command_line import SANDPIPER, bare_environment, call
from tests.e2e.support import finishes, plans, play, shell, wait_for
from tests.e2e.traces import traces_of, with_any_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.conftest import Stack


@contextlib.contextmanager
def up(stack: Stack, state_dir: Path) -> Iterator[subprocess.Popen[str]]:
    """A stack of the test's own, ready, with the model of the shared one."""
    environment = own_environment(state_dir) | {"ANTHROPIC_BASE_URL": stack.model.url}
    command = [str(SANDPIPER), "up", "--port", "0", "--json"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            next(line for line in process.stdout if json.loads(line)["event"] == "ready")
            yield process
        finally:
            process.terminate()
            process.communicate()


def own_environment(state_dir: Path) -> dict[str, str]:
    return bare_environment(SANDPIPER_STATE_DIR=str(state_dir))


def start_endless_run(stack: Stack, state_dir: Path) -> str:
    """Returns a word that is in the command line of what the run's sandbox is busy with."""
    word = uuid.uuid4().hex
    task = play(stack, f"Sleep {word}", plans(), shell(f"python3 -c 'import time; time.sleep(600)' {word}"), finishes())
    started = call("run", "--no-follow", task, environment=own_environment(state_dir))
    assert started.returncode == 0, started.stderr
    wait_for(lambda: with_any_of([word]) or None)
    return word


def test_one_up_at_a_time_and_down_ends_it_with_everything(stack: Stack, tmp_path: Path) -> None:
    environment = own_environment(tmp_path)
    with up(stack, tmp_path) as process:
        info = json.loads((tmp_path / "local.json").read_text())
        scratch, traces = traces_of(info)
        traces.append(start_endless_run(stack, tmp_path))

        second = call("up", "--port", "0", environment=environment)
        assert second.returncode == 3
        assert f"{process.pid}" in second.stderr
        assert info["api_url"] in second.stderr

        down = call("down", environment=environment)
        assert (down.returncode, down.stdout, down.stderr) == (0, "stopped\n", "")
        assert process.wait(timeout=10) == 0
        wait_for(lambda: None if with_any_of(traces) else True)
        assert not scratch.exists()
        assert not (tmp_path / "local.json").exists()

        again = call("down", environment=environment)
        assert again.returncode == 3
        assert "nothing is running" in again.stderr


def test_a_taken_port_is_exit_code_4_and_named(stack: Stack, tmp_path: Path) -> None:
    port = stack.api_url.rpartition(":")[2]
    done = call("up", "--port", port, environment=own_environment(tmp_path))
    assert (done.returncode, done.stdout) == (4, "")
    assert f"port {port} is taken" in done.stderr
