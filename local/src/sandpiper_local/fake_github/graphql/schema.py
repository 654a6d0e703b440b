"""`POST /graphql`: what REST does not have, the threads of a review and drafts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandpiper_local.fake_github.auth import check_access
from sandpiper_local.fake_github.errors import Refusal
from sandpiper_local.fake_github.graphql.query import Execution, QueryError, parse
from sandpiper_local.fake_github.views.common import node_id, time_of
from sandpiper_local.fake_github.views.issues import page_of
from sandpiper_local.fake_github.views.pulls import pull_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandpiper_local.fake_github.calls import Call
    from sandpiper_local.fake_github.state import Issue, Repository, Review, ReviewComment, Thread, User

type Node = dict[str, Any]


def graphql(call: Call) -> Any:
    try:
        document = parse(str(call.body.get("query", "")))
        root = Schema(call).mutation() if document.operation == "mutation" else Schema(call).query()
        execution = Execution(document.fragments, call.body.get("variables") or {})
        return {"data": execution.pick(root, document.selection)}
    except QueryError as error:
        return {"data": None, "errors": [{"message": str(error)}]}
    except Refusal as refusal:
        if refusal.status == 401:
            raise
        kind = "NOT_FOUND" if refusal.status == 404 else "FORBIDDEN"
        return {"data": None, "errors": [{"type": kind, "message": str(refusal)}]}


class Schema:
    def __init__(self, call: Call) -> None:
        self._call, self._hub = call, call.hub

    def query(self) -> Node:
        viewer = {"__typename": "User", "login": self._call.actor.person.login}
        return {"__typename": "Query", "repository": self._repository, "viewer": viewer}

    def mutation(self) -> Node:
        return {
            "__typename": "Mutation",
            "resolveReviewThread": self._resolving(is_resolved=True),
            "unresolveReviewThread": self._resolving(is_resolved=False),
            "markPullRequestReadyForReview": self._drafting(is_draft=False),
            "convertPullRequestToDraft": self._drafting(is_draft=True),
        }

    def _repository(self, owner: str, name: str) -> Node:
        full_name = f"{owner}/{name}"
        repository = self._hub.renamed.get(full_name) or self._hub.repository(full_name)  # as `followRenames` has it
        self._check(repository, "read")

        def pull_request(number: int) -> Node:
            issue = self._hub.issue(repository, number)
            if issue.pull is None:
                raise QueryError(f"Could not resolve to a PullRequest with the number of {number}.")
            return self._pull(repository, issue)

        return {
            "__typename": "Repository", "id": node_id("R", repository.id), "name": repository.name,
            "nameWithOwner": repository.full_name, "pullRequest": pull_request,
        }  # fmt: skip

    def _check(self, repository: Repository, level: str) -> None:
        check_access(self._call.actor, repository, f"pull_requests:{level}", by_anyone=False)

    def _pull(self, repository: Repository, issue: Issue) -> Node:
        pull = pull_of(issue)
        threads = [self._thread(repository, issue, thread) for thread in pull.threads]
        return {
            "__typename": "PullRequest", "id": node_id("PR", issue.id), "number": issue.number, "title": issue.title,
            "isDraft": pull.draft, "headRefOid": pull.head_sha, "url": page_of(self._hub, repository, issue),
            "state": "MERGED" if pull.merged_at else issue.state.upper(), "reviewThreads": _connection(threads),
            "reviews": _connection([self._review(review) for review in pull.reviews]),
        }  # fmt: skip

    def _review(self, review: Review) -> Node:
        return {
            "__typename": "PullRequestReview", "id": node_id("PRR", review.id), "body": review.body,
            "state": review.state, "author": self._person(review.user),
            "submittedAt": time_of(review.submitted_at) if review.submitted_at else None,
        }  # fmt: skip

    def _thread(self, repository: Repository, issue: Issue, thread: Thread) -> Node:
        pull = pull_of(issue)
        comments = [one for one in pull.comments if thread.first_comment in {one.id, one.in_reply_to}]
        first = comments[0] if comments else None
        outdated = first is not None and _changed(repository, first, pull.head_sha)
        line, start = (first.line, first.start_line) if first else (None, None)
        return {
            "__typename": "PullRequestReviewThread", "id": thread.id, "isResolved": thread.is_resolved,
            "isOutdated": outdated, "isCollapsed": thread.is_resolved, "path": first.path if first else None,
            "line": None if outdated else line, "originalLine": line, "startLine": None if outdated else start,
            "diffSide": first.side if first else "RIGHT", "resolvedBy": self._person(thread.resolved_by),
            "viewerCanResolve": True,
            "comments": _connection([self._comment(repository, issue, one) for one in comments]),
        }  # fmt: skip

    def _comment(self, repository: Repository, issue: Issue, comment: ReviewComment) -> Node:
        url = f"{page_of(self._hub, repository, issue)}#discussion_r{comment.id}"
        return {
            "__typename": "PullRequestReviewComment", "id": node_id("PRRC", comment.id), "databaseId": comment.id,
            "fullDatabaseId": str(comment.id), "body": comment.body, "path": comment.path, "line": comment.line,
            "originalLine": comment.line, "diffHunk": comment.diff_hunk, "author": self._person(comment.user),
            "viewerDidAuthor": comment.user is self._call.actor.user,
            "createdAt": time_of(comment.created_at), "updatedAt": time_of(comment.updated_at), "url": url,
            "commit": {"__typename": "Commit", "oid": comment.commit_id},
            "originalCommit": {"__typename": "Commit", "oid": comment.commit_id},
        }  # fmt: skip

    @staticmethod
    def _person(user: User | None) -> Node | None:
        if user is None:
            return None
        # GraphQL leaves the suffix out, by which REST tells a bot
        return {"__typename": user.type, "login": user.login.removesuffix("[bot]")}

    def _resolving(self, *, is_resolved: bool) -> Callable[..., Node]:
        def resolve(input: dict[str, Any]) -> Node:  # noqa: A002 - GitHub's name
            repository, issue, thread = self._find_thread(input["threadId"])
            self._check(repository, "write")
            # GitHub wants this of an App, too, although nothing in the repository changes
            check_access(self._call.actor, repository, "contents:write", by_anyone=False)
            thread.is_resolved = is_resolved
            thread.resolved_by = self._call.actor.user if is_resolved else None
            return {"__typename": "Payload", "thread": self._thread(repository, issue, thread)}

        return resolve

    def _drafting(self, *, is_draft: bool) -> Callable[..., Node]:
        def change(input: dict[str, Any]) -> Node:  # noqa: A002 - GitHub's name
            for repository, issue in self._pulls():
                if node_id("PR", issue.id) == input["pullRequestId"]:
                    self._check(repository, "write")
                    pull_of(issue).draft = is_draft
                    return {"__typename": "Payload", "pullRequest": self._pull(repository, issue)}
            raise QueryError(f"Could not resolve to a node with the global id of '{input['pullRequestId']}'")

        return change

    def _pulls(self) -> Iterator[tuple[Repository, Issue]]:
        for repository in self._hub.repositories.values():
            for issue in repository.pulls:
                yield repository, issue

    def _find_thread(self, wanted: str) -> tuple[Repository, Issue, Thread]:
        for repository, issue in self._pulls():
            for thread in pull_of(issue).threads:
                if thread.id == wanted:
                    return repository, issue, thread
        raise QueryError(f"Could not resolve to a node with the global id of '{wanted}'")


def _changed(repository: Repository, comment: ReviewComment, head: str) -> bool:
    """Whether the file is another than the one that was remarked on."""
    then, now = (repository.git.blob_at(sha, comment.path) for sha in (comment.commit_id, head))
    return then != now


def _connection(nodes: list[Node]) -> Callable[..., Node]:
    def pages(first: int | None = None, last: int | None = None, after: str | None = None) -> Node:
        start = int(after or 0)
        shown = nodes[-last:] if last else nodes[start : start + (first or len(nodes))]
        end = start + len(shown)
        page = {
            "__typename": "PageInfo", "hasNextPage": not last and end < len(nodes), "endCursor": str(end),
            "hasPreviousPage": start > 0, "startCursor": str(start),
        }  # fmt: skip
        return {"__typename": "Connection", "nodes": shown, "totalCount": len(nodes), "pageInfo": page}

    return pages
