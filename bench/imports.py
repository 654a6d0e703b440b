"""Import time of each handler against the libraries it could have imported, by turns so that noise hits all alike."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.report import Report

ROOT = Path(__file__).parent.parent
BASELINE = "boto3, pydantic, aws_lambda_powertools"
GOALS = {
    "api": 1.3,
    "authorizer": 0.8,
    "websocket": 0.8,
    "broadcast": 0.8,
    "webhook": 0.8,
    "workflow": 1.3,
    "task_stopped": 1.3,
    "reconcile": 1.3,
}
ROUNDS = 9
# any value will do: nothing is called, settings are only read
SETTINGS = (
    "RUNS_TABLE", "EVENTS_TABLE", "CONNECTIONS_TABLE", "IDEMPOTENCY_TABLE", "ARTIFACTS_BUCKET", "STATE_MACHINE_ARN",
    "CLUSTER_ARN", "RUN_SECRETS_KEY_ID", "JWT_SECRET_ARN", "WEBSOCKET_URL", "WEBSOCKET_MANAGEMENT_URL", "GITHUB_URL",
    "GITHUB_API_URL", "MODEL_KEY_SECRET_ARN", "ANTHROPIC_BASE_URL", "MODEL_PROVIDER", "VERSION", "STAGE",
)  # fmt: skip


def environment() -> dict[str, str]:
    path = os.pathsep.join(str(ROOT / part) for part in ("functions", "layers/core/python"))
    settings = dict.fromkeys(SETTINGS, "https://bench.example")
    settings["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    return os.environ | settings | {"CONCURRENCY": "2", "PYTHONPATH": path, "AWS_DEFAULT_REGION": "eu-west-1"}


def import_seconds(modules: str, env: dict[str, str]) -> float:
    """How long the import takes inside a fresh interpreter, without the interpreter's own start."""
    code = f"import time; t = time.perf_counter(); import {modules}; print(time.perf_counter() - t)"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, cwd="/")
    return float(done.stdout.splitlines()[-1])


def loaded(module: str, env: dict[str, str]) -> set[str]:
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, cwd="/")
    return set(done.stdout.splitlines()[-1].split())


def run(report: Report) -> None:
    env = environment()
    # the environment's bytecode is compiled by setup; ours is compiled here, so that only imports are timed
    subprocess.run([sys.executable, "-m", "compileall", "-q", "functions", "layers/core/python"], cwd=ROOT, check=True)
    modules = {"baseline": BASELINE} | {name: f"{name}.handler" for name in GOALS}
    times: dict[str, list[float]] = {name: [] for name in modules}
    for _ in range(ROUNDS):
        for name, module in modules.items():
            times[name].append(import_seconds(module, env))
            time.sleep(0.02)
    baseline = statistics.median(times["baseline"])
    for name, goal in GOALS.items():
        seconds = statistics.median(times[name])
        heavy = "anthropic" in loaded(f"{name}.handler", env)
        report.add(
            f"import of `{name}`" + (" (imports anthropic!)" if heavy else ""),
            measured=f"{seconds * 1000:.0f} ms",
            baseline=f"{baseline * 1000:.0f} ms `import {BASELINE}`",
            ratio=f"{seconds / baseline:.2f}×",
            goal=f"≤ {goal}×",
            met=seconds / baseline <= goal and not heavy,
        )
