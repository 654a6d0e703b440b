"""What a turn costs beyond the model: a model that answers at once, and a trivial command, another one each turn.

Ours runs on a stack with events, log and wall on. The baseline is a bare loop on the same SDK that streams as ours does
and runs the command with `subprocess`; other agents run beside it. All get the same replies from the same server, and
all are timed by it: from an answer to the next request.

What makes it fair:
- Everybody plays a short conversation first, for what is slow only once; the first turns of each are left out, too.
- A conversation is compared with those of the bare loop right before and after it, so that whatever else the machine
  does hits both alike. Each round gives one ratio, of medians; the figure is the median of the rounds.
- Nobody asks how our run is doing more than twice a second: the answer would come from the same cores.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import peers
from bench.instant_model import InstantModel, instant_model
from bench.stack import new_user, running_stack, wait_until
from sandpiper_local.sample_repository import create_sample_repository

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bench.report import Report
    from bench.stack import Stack

TURNS = 40
ROUNDS = 7
PEER_ROUNDS = 2  # they have no goal to meet, and take long
WARM_UP = 5
GOAL = 2.5
FINISH = {"name": "finish", "input": {"status": "done", "summary": "Done."}}
BARE = """
import subprocess, sys, anthropic
client = anthropic.Anthropic(api_key="sk", base_url=sys.argv[1])
tool = {"name": "run_command", "description": "Run a shell command.", "input_schema": {
    "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}
finish = {"name": "finish", "description": "End.", "input_schema": {"type": "object", "properties": {}}}
messages = [{"role": "user", "content": sys.argv[2]}]
while True:
    asked = {"model": "claude-sonnet-5-5", "max_tokens": 1024, "tools": [tool, finish], "messages": messages}
    with client.messages.stream(**asked) as stream:
        reply = stream.get_final_message()
    messages.append({"role": "assistant", "content": reply.content})
    results = []
    for block in reply.content:
        if block.type != "tool_use":
            continue
        if block.name == "finish":
            sys.exit()
        done = subprocess.run(["bash", "-c", block.input["command"]], capture_output=True, text=True)
        told = done.stdout + f"[exit code {done.returncode}]"
        results.append({"type": "tool_result", "tool_use_id": block.id, "content": told})
    messages.append({"role": "user", "content": results})
"""


@dataclass(frozen=True)
class Round:
    """The seconds of each turn, and of each turn of the bare loop around it."""

    own: list[float]
    bare: list[float]

    @property
    def ratio(self) -> float:
        return statistics.median(self.own) / statistics.median(self.bare)


@dataclass
class Contender:
    """`play` begins a conversation with the given words and returns whether it was played to its end."""

    name: str
    play: Callable[[str], bool]
    call: Callable[[str], dict[str, Any]]  # of the tool that runs a command
    last: dict[str, Any] | None
    rounds: list[Round] = field(default_factory=list)

    def converse(self, model: InstantModel, turns: int) -> list[float]:
        """The time of each turn; nothing of a conversation that did not get to its end."""
        script = f"script-{uuid.uuid4().hex}"
        calls = [self.call(f"echo {number}") for number in range(turns)]
        model.play(script, [_content(number, call) for number, call in enumerate([*calls, self.last])])
        times = model.own_times(script) if self.play(script) else []
        return times if len(times) == turns else []

    def measure(self, model: InstantModel, bare: Contender) -> None:
        before = bare.converse(model, TURNS)[WARM_UP:]
        own = self.converse(model, TURNS)[WARM_UP:]
        after = bare.converse(model, TURNS)[WARM_UP:]
        if own:
            self.rounds.append(Round(own, [*before, *after]))


def run(report: Report) -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        instant_model() as model,
        running_stack(model_url=model.url) as stack,
    ):
        repository = create_sample_repository(Path(directory) / "repository")
        bare, ours, *others = contenders(stack, model, repository)
        others = [other for other in others if other.converse(model, WARM_UP)]
        for contender in (bare, ours):
            contender.converse(model, WARM_UP)
        for contender in [*[ours] * ROUNDS, *others * PEER_ROUNDS]:
            contender.measure(model, bare)
    tell(report, ours, goal=GOAL)
    for other in others:
        tell(report, other)


def contenders(stack: Stack, model: InstantModel, repository: Path) -> list[Contender]:
    def bare(words: str) -> bool:
        subprocess.run([sys.executable, "-c", BARE, model.url, words], check=True, timeout=120)
        return True

    def ours(words: str) -> bool:
        api = stack.api(new_user())
        asked = {"task": words, "repo": str(repository), "type": "code-review"}
        run_id = api.start(asked, headers={})["run_id"]
        wait_until(lambda: api.run(run_id)["status"] in {"completed", "failed"}, seconds=120, every=0.5)
        return bool(api.run(run_id)["status"] == "completed")

    return [
        Contender("bare", bare, _run_command, FINISH),
        Contender("ours", ours, _run_command, FINISH),
        *(_contender(peer, model, repository) for peer in peers.ALL),
    ]


def _contender(peer: peers.Peer, model: InstantModel, repository: Path) -> Contender:
    last = peer.call(peer.last_command) if peer.last_command else None
    return Contender(peer.name, lambda words: peer.play(words, model.url, repository), peer.call, last)


def _run_command(command: str) -> dict[str, Any]:
    return {"name": "run_command", "input": {"command": command}}


def _content(number: int, call: dict[str, Any] | None) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": f"toolu_{number:024}", **call} if call else {"type": "text", "text": "Done."}]


def tell(report: Report, contender: Contender, *, goal: float | None = None) -> None:
    rounds = contender.rounds
    if not rounds:
        print(f"     {contender.name} was not measured: it played no conversation to its end")
        return
    ratios = sorted(each.ratio for each in rounds)
    ratio = statistics.median(ratios)
    early, late = (median_ms(each.own[part] for each in rounds) for part in (slice(10), slice(-10, None)))
    report.add(
        f"overhead of a turn, {contender.name} (median of {len(rounds)} × {TURNS - WARM_UP} turns)",
        measured=f"{median_ms(each.own for each in rounds):.1f} ms (turns {WARM_UP + 1}–{WARM_UP + 10}: {early:.1f}, "
        f"{TURNS - 9}–{TURNS}: {late:.1f})",
        baseline=f"{median_ms(each.bare for each in rounds):.1f} ms, a bare loop on the same SDK",
        ratio=f"{ratio:.2f}× ({ratios[0]:.2f}–{ratios[-1]:.2f})",
        goal=f"≤ {goal:g}×" if goal else "–",
        met=goal is None or ratio <= goal,
    )


def median_ms(parts: Iterable[list[float]]) -> float:
    return statistics.median(itertools.chain.from_iterable(parts)) * 1000
