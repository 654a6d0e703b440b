"""Collects figures and writes them as one table, each beside its baseline and its goal."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).parent / "results.md"


@dataclass(frozen=True)
class Figure:
    name: str
    measured: str
    baseline: str
    ratio: str
    goal: str
    met: bool


@dataclass
class Report:
    figures: list[Figure] = field(default_factory=list)

    def add(self, name: str, *, measured: str, goal: str, met: bool, baseline: str = "–", ratio: str = "–") -> None:
        figure = Figure(name, measured, baseline, ratio, goal, met)
        self.figures.append(figure)
        print(f"{'ok ' if met else 'NOT'}  {name}: {measured} (baseline {baseline}, ratio {ratio}, goal {goal})")

    def write(self) -> None:
        RESULTS.write_text(self.markdown())

    def markdown(self) -> str:
        rows = [
            f"| {f.name} | {f.measured} | {f.baseline} | {f.ratio} | {f.goal} | {'yes' if f.met else '**no**'} |"
            for f in self.figures
        ]
        when = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, Python {platform.python_version()}, {platform.machine()}"
        head = [
            "# Figures",
            "",
            f"Written by `make bench`: {when}. Machines are noisy: read the ratios, not the milliseconds.",
            "",
            "| what | measured | baseline, same run | ratio | goal | met |",
            "|---|---|---|---|---|---|",
        ]
        return "\n".join([*head, *rows, ""])
