"""The report files that a command leaves behind, read as B: only those that are its own, and no more than fits."""

from __future__ import annotations

import re
import secrets
import shlex
from typing import TYPE_CHECKING

from sandbox_task.gate.reports.common import merged
from sandbox_task.gate.reports.junit import junit
from sandbox_task.isolation.wall import WallError
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sandbox_task.isolation.wall import Wall
    from sandpiper.models.run import ReportedTests

_BUILD_TOOLS = {
    re.compile(r"(?:\./)?mvnw?\b"): "**/target/surefire-reports/TEST-*.xml",
    re.compile(r"(?:\./)?gradlew?\b"): "**/build/test-results/**/TEST-*.xml",
}
_PRUNED = "\\( -path ./.git -o -name node_modules -o -name .venv \\) -prune"


def usual_pattern(command: str) -> str | None:
    """Where a build tool always writes its reports."""
    return next((pattern for tool, pattern in _BUILD_TOOLS.items() if tool.match(command)), None)


def place_outside() -> str:
    """For a report that nobody asked for but us: out of the tree, and not to be guessed. The shell completes it."""
    return f'"${{TMPDIR:-/tmp}}/sandpiper-{secrets.token_hex(8)}.report"'


def take(wall: Wall, place: str) -> bytes | None:
    """What is at `place`, which is gone afterwards; None if there is nothing, or too much of it."""
    data = bytearray()
    command = f"test -f {place} && head -c {limits.MAX_REPORT_BYTES + 1} -- {place}; rm -f -- {place}"
    wall.run(command, timeout=limits.GIT_SECONDS, on_output=data.extend)
    return bytes(data) if 0 < len(data) <= limits.MAX_REPORT_BYTES else None


def present(wall: Wall, pattern: str | None) -> Mapping[str, str]:
    """Files that match, each with what changes when it is written again."""
    if pattern is None:
        return {}
    listing = bytearray()
    match = shlex.quote(f"./{pattern.removeprefix('./').replace('**/', '*')}")
    command = f"find . {_PRUNED} -o -type f -path {match} -printf '%T@ %C@ %s %i/%P\\0' 2>/dev/null"
    wall.run(command, timeout=limits.GIT_SECONDS, on_output=listing.extend)
    rows = listing.decode(errors="surrogateescape").split("\0")
    return {path: stamp for stamp, _, path in (row.partition("/") for row in rows) if path}


def written(wall: Wall, pattern: str | None, before: Mapping[str, str]) -> ReportedTests | None:
    """What the reports say that were written since `before`: one from another time is not this command's."""
    now = present(wall, pattern)
    fresh = sorted(path for path, stamp in now.items() if before.get(path) != stamp)
    return merged(tests for path in fresh[: limits.MAX_REPORT_FILES] for tests in _read(wall, path))


def _read(wall: Wall, path: str) -> Iterable[ReportedTests]:
    try:
        part = wall.read_file(path, limit=limits.MAX_REPORT_BYTES)
    except WallError:  # gone again, or a link out of the workspace: no report
        return
    if part.size <= limits.MAX_REPORT_BYTES and (tests := junit(part.data)) is not None:
        yield tests
