"""`make bench`: every figure that the issues ask for, written to bench/results.md. Exit 1 if a goal is missed."""

from __future__ import annotations

import sys

from bench import (
    api,
    caching,
    context,
    durability,
    egress,
    events,
    first_request,
    github,
    imports,
    turns,
    walls,
    webhook,
)
from bench.report import Report
from bench.stack import running_stack


def main() -> int:
    report = Report()
    imports.run(report)
    context.run(report)
    egress.run(report)
    walls.run(report)
    turns.run(report)
    with running_stack() as stack:
        first_request.run(report, stack)
        caching.run(report, stack)
        durability.run(report, stack)
        events.run(report, stack)
        webhook.run(report, stack)
        api.run(report, stack)  # last: its runs stay in line for good
    with running_stack(github="fake") as stack:
        github.run(report, stack)
    report.write()
    return 0 if all(figure.met for figure in report.figures) else 1


sys.exit(main())
