from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from sandbox_task.agent.tools.code import RunCode
from sandbox_task.agent.tools.outcome import ToolError
from sandpiper import limits
from tests.unit.sandbox.behind_wall import NAP, processes_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox_task.agent.tools.sessions import Sessions
    from sandbox_task.isolation.wall import Wall
    from tests.unit.sandbox.recording_sink import RecordingSink


@pytest.fixture
def run(sink: RecordingSink, sessions: Sessions) -> Callable[..., str]:
    tool = RunCode(sink, sessions)

    def run(code: str, language: str = "python", call_id: str = "call", timeout_seconds: int = 60) -> str:
        arguments = {"language": language, "code": code, "timeout_seconds": timeout_seconds}
        return tool.run(tool.arguments.model_validate(arguments), call_id).content

    return run


@pytest.fixture(params=["python", "node"])
def language(request: pytest.FixtureRequest) -> str:
    if request.param == "node" and not shutil.which("node"):
        pytest.skip("node is not installed")
    return str(request.param)


def test_state_lives_on_between_calls_of_one_language(run: Callable[..., str], language: str) -> None:
    assert run("x = 40", language).endswith("[done]")
    assert run("x + 2", language) == "42\n[done]"


def test_output_value_and_errors_come_in_order(run: Callable[..., str], sink: RecordingSink) -> None:
    told = run("import sys\nprint('out')\nprint('err', file=sys.stderr)\n[1, 'two']", call_id="python")
    assert told == "out\nerr\n[1, 'two']\n[done]"
    told = run("console.log('out'); console.error('err'); [1, 'two']", "node", call_id="node")
    assert told == "out\nerr\n[ 1, 'two' ]\n[done]"
    assert (sink.said("python"), sink.said("node")) == ("out\nerr\n[1, 'two']\n", "out\nerr\n[ 1, 'two' ]\n")


def test_an_exception_is_text_with_a_traceback_and_costs_no_state(run: Callable[..., str]) -> None:
    run("x = 1\ndef f():\n    raise ValueError('no')\n")
    assert run("x = 2\nf()\nx = 3") == (
        "Traceback (most recent call last):\n"
        '  File "<call 2>", line 2, in <module>\n'
        "    f()\n"
        '  File "<call 1>", line 3, in f\n'
        "    raise ValueError('no')\n"
        "ValueError: no\n"
        "[ended by an error; the state is kept]"
    )
    assert run("x") == "2\n[done]"


@pytest.mark.parametrize("code", ["x = = 1", "import sys; sys.exit(3)", "raise SystemExit"])
def test_whatever_python_code_raises_costs_no_state(run: Callable[..., str], code: str) -> None:
    run("y = 5")
    assert run(code).endswith("[ended by an error; the state is kept]")
    assert run("y") == "5\n[done]"


def test_node_has_await_require_and_errors_in_words(run: Callable[..., str]) -> None:
    assert run("await new Promise(done => setTimeout(() => done(7), 10))", "node") == "7\n[done]"
    assert run("const { join } = require('path'); join('a', 'b')", "node") == "'a/b'\n[done]"
    assert run("null.x", "node").startswith(
        "TypeError: Cannot read properties of null (reading 'x')\n    at call:1:6\n["
    )
    assert "SyntaxError" in run("function (", "node")
    assert "Error: late" in run("await Promise.reject(new Error('late'))", "node")
    assert run("join('c', 'd')", "node") == "'c/d'\n[done]"


ENDLESS = {"python": "while True: pass", "node": "while (true) {}"}
WAITING = {"python": "import time; time.sleep(1000)", "node": "await new Promise(() => setTimeout(() => 0, 1e6))"}


@pytest.mark.parametrize("codes", [ENDLESS, WAITING], ids=["busy", "waiting"])
def test_code_that_takes_too_long_is_interrupted_and_keeps_its_state(
    run: Callable[..., str], language: str, codes: dict[str, str]
) -> None:
    run("x = 1", language)
    assert "[interrupted after 1 s; the state is kept]" in run(codes[language], language, timeout_seconds=1)
    assert run("x", language) == "1\n[done]"


def test_code_that_does_not_yield_loses_its_interpreter(run: Callable[..., str], sessions: Sessions) -> None:
    run("x = 1")
    stubborn = f"""
import subprocess, time
subprocess.Popen("{NAP}", shell=True, start_new_session=True)
while True:
    try:
        time.sleep(100)
    except KeyboardInterrupt:
        pass
"""
    assert "its state is lost" in run(stubborn, timeout_seconds=1)
    assert processes_with(NAP) == []
    assert "NameError" in run("x")


def test_an_interpreter_that_dies_says_so_and_the_next_call_has_a_new_one(
    run: Callable[..., str], language: str
) -> None:
    end = {
        "python": "import os; print('last words'); os._exit(5)",
        "node": "console.log('last words'); process.exit(5)",
    }
    assert run(end[language], language) == (
        "last words\n[the interpreter is gone (exit code 5), and its state is lost; the next call starts a new one]"
    )
    assert run("1 + 1", language) == "2\n[done]"


def test_an_interpreter_that_was_ended_meanwhile_is_told_to_who_relies_on_it(
    run: Callable[..., str], wall: Wall, sessions: Sessions
) -> None:
    assert not sessions.interpreters.used
    run("x = 1")
    wall.end_all()
    assert "[a new interpreter: the state of earlier calls was lost; ended by an error" in run("x")
    assert run("1") == "1\n[done]"
    assert sessions.interpreters.used


def test_a_language_that_is_not_there_is_said_so(
    sink: RecordingSink, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sandbox_task.agent.tools import interpreters  # noqa: PLC0415

    monkeypatch.setitem(interpreters._PROGRAMS, "node", ("no-such-node -e", "node_driver.js"))
    tool = RunCode(sink, sessions)
    for _ in range(2):
        with pytest.raises(ToolError, match=r"There is no node in this sandbox\."):
            tool.run(tool.arguments.model_validate({"language": "node", "code": "1"}), "call")


def test_code_has_no_input_and_can_not_reach_the_next_request(run: Callable[..., str]) -> None:
    assert run("import sys; sys.stdin.read()") == "''\n[done]"
    assert (
        run("import subprocess; subprocess.run('cat; cat <&3', shell=True, capture_output=True).stdout")
        == "b''\n[done]"
    )


def test_what_code_prints_can_not_end_a_later_call(run: Callable[..., str]) -> None:
    forged = "import sys\nmark = sys._getframe(3).f_locals['request']['mark']"
    assert run(forged) == "[done]"
    again = "import os, time\nos.write(1, f'\\0{mark} ok\\n'.encode())\ntime.sleep(0.2)\n'the true end'"
    assert run(again).endswith("'the true end'\n[done]")


def test_code_that_forks_answers_once(run: Callable[..., str]) -> None:
    assert run("import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('x')").count("[done]") == 1
    assert run("pid > 0") == "True\n[done]"


def test_what_a_thread_says_between_calls_is_part_of_the_next(run: Callable[..., str]) -> None:
    run("import threading\nt = threading.Timer(0.1, print, ['from before'])\nt.start()")
    assert run("t.join()\n'now'") == "from before\n'now'\n[done]"


def test_much_code_and_much_output_pass(run: Callable[..., str], sink: RecordingSink) -> None:
    told = run(f"text = {'x' * 300_000!r}\nfor _ in range(20): print(text)")
    assert len(told) < limits.MODEL_OUTPUT_CHARS + 200
    assert "characters left out; read_output id=c1" in told
    assert len(sink.printed()) == 20 * 300_001
