"""A whole review from what was found: which remarks stand at lines, which in its text, and what it asks for. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sandbox_task.github.diff_lines import side_of
from sandbox_task.github.remarks import Remark, is_ours, repeats
from sandpiper import limits
from sandpiper.adapters.github.reviews import LineComment
from sandpiper.logic.github.markdown import cut, prose

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sandbox_task.github.diff_lines import FileLines
    from sandpiper.adapters.github.reviews import Thread, Verdict
    from sandpiper.models.run import Finding, Severity

ReviewMode = Literal["comment", "request_changes"]
_SEVERITIES: tuple[Severity, ...] = ("critical", "major", "minor", "info")
SERIOUS: frozenset[Severity] = frozenset({"critical", "major"})


@dataclass(frozen=True)
class Review:
    at_lines: tuple[tuple[Remark, LineComment], ...]
    beside: tuple[Remark, ...]
    repeated: int
    fixed: tuple[Thread, ...]

    @property
    def comments(self) -> list[LineComment]:
        return [comment for _, comment in self.at_lines]

    def all_beside(self) -> Review:
        """The same for a GitHub that does not take the lines."""
        return Review((), (*(remark for remark, _ in self.at_lines), *self.beside), self.repeated, self.fixed)


def compose(findings: Sequence[Finding], lines: Mapping[str, FileLines], threads: Sequence[Thread]) -> Review:
    """`threads`: what was remarked before, by anybody."""
    ours = [thread for thread in threads if is_ours(thread) and not thread.is_resolved]
    remarks = [_remark(finding, lines) for finding in findings]
    again = [remark for remark in remarks if repeats(remark, ours)]
    new = [remark for remark in remarks if remark not in again]
    placed = [(remark, _comment(remark, lines)) for remark in new]
    return Review(
        at_lines=tuple((remark, comment) for remark, comment in placed if comment),
        beside=tuple(remark for remark, comment in placed if comment is None),
        repeated=len(again),
        fixed=tuple(thread for thread in ours if thread.is_outdated and not _is_said_again(thread, remarks)),
    )


def verdict(findings: Sequence[Finding], mode: ReviewMode) -> Verdict:
    is_serious = any(finding.severity in SERIOUS for finding in findings)
    return "REQUEST_CHANGES" if is_serious and mode == "request_changes" else "COMMENT"


def review_body(review: Review, *, summary: str, sha: str, run: str, marker: str) -> str:
    """`run` is how the run is named for people. What must not be cut stands last, so the rest is cut before."""
    ending = "\n\n".join((*_notes(review), f"<sub>{sha[:12]} · {run}</sub>", marker))
    listed = "\n".join(remark.listed for remark in review.beside)
    parts = [
        prose(summary, limits.STATUS_PROSE_CHARS) or "Looked through.",
        count_words([remark.finding for remark, _ in review.at_lines] + [remark.finding for remark in review.beside]),
        f"**Beside the diff**\n{listed}" if listed else "",
    ]
    text = "\n\n".join(filter(None, parts))
    return f"{cut(text, limits.GITHUB_BODY_CHARS - len(ending))}\n\n{ending}"


def count_words(findings: Sequence[Finding]) -> str:
    counts = ((name, sum(finding.severity == name for finding in findings)) for name in _SEVERITIES)
    told = ", ".join(f"{count} {name}" for name, count in counts if count)
    return f"New remarks: {told}." if told else "No new remarks."


def _notes(review: Review) -> list[str]:
    notes = []
    if review.repeated:
        notes.append(f"Not repeated, because still open: {_remarks(review.repeated)}.")
    if review.fixed:
        notes.append(f"Resolved, because fixed: {_remarks(len(review.fixed))}.")
    return notes


def _remarks(count: int) -> str:
    return f"{count} earlier remark{'' if count == 1 else 's'}"


def _remark(finding: Finding, lines: Mapping[str, FileLines]) -> Remark:
    shown = lines.get(finding.file)
    return Remark(finding, shown.right.get(finding.line) if shown and finding.line else None)


def _comment(remark: Remark, lines: Mapping[str, FileLines]) -> LineComment | None:
    finding = remark.finding
    side = side_of(lines.get(finding.file), finding.line)
    if side is None or finding.line is None:
        return None
    return LineComment(path=finding.file, line=finding.line, side=side, body=remark.body)


def _is_said_again(thread: Thread, remarks: Sequence[Remark]) -> bool:
    """Its line has moved, so where it stands says nothing."""
    return any(repeats(remark, [thread.model_copy(update={"line": remark.finding.line})]) for remark in remarks)
