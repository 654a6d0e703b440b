"""Other agents, at pinned versions in .tools/peers, that play the same conversations as ours.

One that can't be installed, or does not play to the end, is left out; a line says so.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TOOLS = Path(__file__).parents[1] / ".tools"
MODEL = "claude-sonnet-5-5"
KEY = "sk-of-the-bench"
SECONDS = 180


@dataclass(frozen=True)
class Peer:
    """`command` gets what to say and the peer's home; its first word is a path in the place of its installation."""

    name: str
    packages: tuple[str, ...]
    install: Callable[[Path, tuple[str, ...]], None]
    command: Callable[[str, Path], list[str]]
    environment: Callable[[str], dict[str, str]]  # for a model at this URL
    tool: str
    arguments: Mapping[str, str] = field(default_factory=dict)  # besides the command
    last_command: str | None = None  # by which it is told to end; without one, words alone do it

    def call(self, command: str) -> dict[str, Any]:
        return {"name": self.tool, "input": {"command": command, **self.arguments}}

    @property
    def place(self) -> Path:
        return TOOLS / "peers" / self.name.replace(" ", "-")

    def play(self, words: str, model_url: str, repository: Path) -> bool:
        """A whole conversation that begins with these words; False if there was none."""
        with tempfile.TemporaryDirectory() as home:
            program, *options = self.command(words, Path(home))
            environment = {"PATH": os.environ["PATH"], "HOME": home, **self.environment(model_url)}
            try:
                self._ensure()
                _run([str(self.place / program), *options], env=environment, cwd=repository)
            except (OSError, subprocess.SubprocessError) as error:
                print(f"     {self.name} was not measured: {_reason(error)}")
                return False
        return True

    def _ensure(self) -> None:
        complete = self.place / "complete"
        if not complete.exists():
            self.place.mkdir(parents=True, exist_ok=True)
            self.install(self.place, self.packages)
            complete.touch()


def _run(command: list[str], **options: Any) -> None:
    subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=SECONDS, **options
    )


def _reason(error: Exception) -> str:
    said = str(getattr(error, "stderr", None) or "").strip().splitlines()
    return f"{type(error).__name__}: {said[-1] if said else error}"[:200]


def _by_npm(place: Path, packages: tuple[str, ...]) -> None:
    _run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(place), *packages])


def _by_uv(place: Path, packages: tuple[str, ...]) -> None:
    uv = str(TOOLS / "uv/bin/uv")
    _run([uv, "venv", "--clear", "--python", str(TOOLS.parent / ".venv/bin/python"), str(place)])
    _run([uv, "pip", "install", "--compile-bytecode", "--python", str(place / "bin/python"), *packages])


def _opencode_settings(url: str) -> str:
    provider = {"options": {"baseURL": f"{url}/v1", "apiKey": KEY}, "models": {MODEL: {"name": MODEL}}}
    return json.dumps({"provider": {"anthropic": provider}, "permission": {"bash": "allow"}, "share": "disabled"})


CLAUDE_CODE = Peer(
    name="Claude Code 2.1.327",
    packages=("@anthropic-ai/claude-code@2.1.327",),
    install=_by_npm,
    command=lambda words, _home: ["node_modules/.bin/claude", "-p", words, "--model", MODEL, "--allowedTools", "Bash"],
    environment=lambda url: {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    },
    tool="Bash",
)
OPENCODE = Peer(
    name="OpenCode 1.18.33",
    packages=("opencode-ai@1.18.33",),
    install=_by_npm,
    command=lambda words, _home: ["node_modules/.bin/opencode", "run", "--model", f"anthropic/{MODEL}", words],
    environment=lambda url: {
        "OPENCODE_CONFIG_CONTENT": _opencode_settings(url),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    },
    tool="bash",
    arguments={"description": "Say a number"},
)
MINI_SWE_AGENT = Peer(
    name="mini-swe-agent 2.4.6",
    packages=("mini-swe-agent==2.4.6", "litellm==1.106.2", "mcp==2.3.0"),  # litellm uses mcp without asking for it
    install=_by_uv,
    command=lambda words, home: [
        *("bin/mini", "--task", words, "--model", f"anthropic/{MODEL}", "--yolo", "--exit-immediately"),
        *("--output", str(home / "trajectory.json")),
    ],
    environment=lambda url: {
        "ANTHROPIC_API_BASE": url,
        "ANTHROPIC_API_KEY": KEY,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "MSWEA_CONFIGURED": "true",
        "MSWEA_COST_TRACKING": "ignore_errors",
    },
    tool="bash",
    last_command="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
)
ALL = (MINI_SWE_AGENT, CLAUDE_CODE, OPENCODE)
