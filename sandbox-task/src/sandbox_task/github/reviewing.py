"""A review of a pull request, from its diff and earlier remarks to ONE review on GitHub."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sandbox_task.agent.context.marking import as_data
from sandbox_task.github import review_text
from sandbox_task.github.diff_lines import commentable, of_patch
from sandbox_task.github.doing import made
from sandbox_task.github.remarks import is_ours
from sandpiper import limits
from sandpiper.errors import GitHubError, RunError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from sandbox_task.agent.ports import Sink
    from sandbox_task.github.diff_lines import FileLines
    from sandbox_task.github.pull_diff import PullDiff
    from sandbox_task.github.review_text import Review, ReviewMode
    from sandbox_task.intents import Intents, Result
    from sandbox_task.progress import Progress
    from sandbox_task.workspace.repository import Repository
    from sandpiper.adapters.github.reviews import Reviews, Thread, Verdict

_REFUSED = 422

type Variant = tuple[Review, Verdict, str | None]


def marker(run_id: str) -> str:
    return f"<!-- sandpiper:review {run_id} -->"


@dataclass
class Reviewing:
    reviews: Reviews
    diff: PullDiff
    run_id: str
    named: str  # the run, for people
    intents: Intents
    sink: Sink
    told_before: Callable[[], Collection[str]]  # the types of the events that earlier attempts have told
    resolve: Callable[[Sequence[str]], None]  # threads, by those who may
    _threads: list[Thread] | None = field(default=None, init=False)

    def told_first(self, repository: Repository) -> str:
        """For the model, as data: what is to be reviewed, and what was said about it before."""
        diff = self.diff.told(repository, tokens=limits.REVIEW_DIFF_TOKENS)
        return "\n\n".join((diff, *self._told_remarks()))

    def submit(self, repository: Repository, progress: Progress, mode: ReviewMode) -> None:
        """Raises RunError in words, Fenced."""
        review = review_text.compose(progress.findings, self._lines(repository), self._earlier())
        event = review_text.verdict(progress.findings, mode)
        try:
            done = self.intents.once(
                "review",
                do=lambda: made(lambda: self._send(review, progress, event), self._find),
                find=self._find,
            )
        except GitHubError as error:
            complaint = f"The review could not be submitted: {error.message}"
            raise RunError("repository_error", complaint, retryable=error.retryable) from error
        if "review_submitted" not in self.told_before():
            self.sink.emit("review_submitted", **done, repeated=review.repeated)
        self._resolve(review.fixed)

    def _send(self, review: Review, progress: Progress, event: Verdict) -> Result:
        """GitHub takes no request for changes from a pull request's own author, no line that it does not show, and no
        commit that was thrown away: then less is asked of it, and nothing left out."""
        tried, refusal = set[Variant](), GitHubError("nothing was sent", code=0)
        for variant in self._variants(review, progress, event):
            if variant not in tried:
                tried.add(variant)
                try:
                    return self._sent(*variant, progress.summary)
                except GitHubError as error:
                    if error.code != _REFUSED:
                        raise
                    refusal = error
        raise refusal

    def _variants(self, review: Review, progress: Progress, event: Verdict) -> Iterator[Variant]:
        for shape in self._shapes(review, progress):
            yield shape, event, self.diff.pull.head_sha
            yield shape, "COMMENT", self.diff.pull.head_sha
        yield review.all_beside(), "COMMENT", None

    def _shapes(self, review: Review, progress: Progress) -> Iterator[Review]:
        yield review
        if review.at_lines and (lines := self._shown_by_github()):
            yield review_text.compose(progress.findings, lines, self._earlier())
        yield review.all_beside()

    def _lines(self, repository: Repository) -> Mapping[str, FileLines]:
        diff = self.diff.text(repository)
        return self._shown_by_github() if diff is None else commentable(diff)

    def _shown_by_github(self) -> Mapping[str, FileLines]:
        """Its diff leaves out what is too large, and need not be ours in every line."""
        try:
            return {path: of_patch(patch) for path, patch in self.reviews.patches()}
        except GitHubError as error:
            self.sink.emit("warning", message=f"The lines that remarks can stand at are not known: {error.message}")
            return {}

    def _sent(self, review: Review, event: Verdict, commit: str | None, summary: str) -> dict[str, Any]:
        body = review_text.review_body(
            review, summary=summary, sha=self.diff.pull.head_sha, run=self.named, marker=marker(self.run_id)
        )
        sent = self.reviews.submit(commit=commit, body=body, event=event, comments=review.comments)
        counts = {"comments": len(review.comments), "beside": len(review.beside)}
        return _told(sent) | counts | {"event": event}

    def _find(self) -> dict[str, Any] | None:
        mark = marker(self.run_id)
        return next((_told(review) for review in self.reviews.list() if mark in (review.get("body") or "")), None)

    def _earlier(self) -> Sequence[Thread]:
        """Without them a remark may be repeated, which is no reason to make none."""
        if self._threads is None:
            try:
                self._threads = list(self.reviews.threads())
            except GitHubError as error:
                self.sink.emit("warning", message=f"Earlier remarks could not be read: {error.message}")
                self._threads = []
        return self._threads

    def _resolve(self, threads: Sequence[Thread]) -> None:
        if not threads:
            return
        try:
            self.resolve([thread.id for thread in threads[: limits.RESOLVED_THREADS]])
        except (GitHubError, Unavailable) as error:
            self.sink.emit("warning", message=f"Remarks that were fixed could not be resolved: {error.message}")

    def _told_remarks(self) -> list[str]:
        ours = [thread for thread in self._earlier() if is_ours(thread) and not thread.is_resolved]
        if not ours:
            return []
        told = "\n".join(_remark_line(thread) for thread in ours[: limits.REVIEW_REMARKS_TOLD])
        heading = (
            "Remarks that you made before and that are still open. Do not repeat them. Only if one is marked as "
            "changed since and its problem is still there, report it again; else it is taken as fixed:"
        )
        return [f"{heading}\n{told}"]


def _remark_line(thread: Thread) -> str:
    changed = " (its lines have changed since)" if thread.is_outdated else ""
    said = " ".join(thread.body.partition("<!--")[0].split())[: limits.REVIEW_REMARK_CHARS]
    return as_data(f"- {thread.path}:{thread.line or '?'}{changed}: {said}")


def _told(review: dict[str, Any]) -> dict[str, Any]:
    return {"id": review["id"], "url": review.get("html_url")}
