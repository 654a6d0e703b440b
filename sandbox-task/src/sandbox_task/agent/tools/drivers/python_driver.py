"""The Python behind `run_code`. It runs as B, given to B's interpreter as text: standard library only, Python ≥ 3.9.

A request is a line of JSON on descriptor 3: `mark` and `code`. The answer is what the code prints, and then the mark.
The mark is new for each request, so that what one piece of code prints can't be taken for the end of another.
"""

from __future__ import annotations

import ast
import contextlib
import json
import linecache
import os
import signal
import sys
import traceback
import types
from typing import Any

REQUESTS = 3


def main() -> None:
    os.set_inheritable(REQUESTS, False)  # noqa: FBT003 - takes no keyword
    answers, me = os.dup(1), os.getpid()
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(REQUESTS, "rb") as requests:
        for number, line in enumerate(requests, start=1):
            request = json.loads(line)
            ending = perform(request["code"], f"<call {number}>", module.__dict__)
            if os.getpid() != me:  # the code has forked and come back here
                os._exit(0)
            os.write(answers, f"\0{request['mark']} {ending}\n".encode())


def perform(code: str, name: str, names: dict[str, Any]) -> str:
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        run(ast.parse(code, name), name, names)
    except BaseException as error:  # noqa: BLE001 - whatever the code raises, SystemExit included, is its result
        tell(error)
        return "interrupted" if isinstance(error, KeyboardInterrupt) else "error"
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
    return "ok"


def run(tree: ast.Module, name: str, names: dict[str, Any]) -> None:
    """The value of the last expression is shown, as at a prompt."""
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), names)  # noqa: S102 - it is what this is for
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), name, "eval"), names)  # noqa: S307 - as above
        if value is not None:
            names["_"] = value
            sys.stdout.write(f"{value!r}\n")


def tell(error: BaseException) -> None:
    """Without our own frames."""
    frames = error.__traceback__
    while frames is not None and not frames.tb_frame.f_code.co_filename.startswith("<call "):
        frames = frames.tb_next
    with contextlib.suppress(Exception):
        sys.stderr.write("".join(traceback.format_exception(type(error), error, frames)))


if __name__ == "__main__":
    main()
