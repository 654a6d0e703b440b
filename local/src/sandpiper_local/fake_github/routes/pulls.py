"""Pull requests: opened, changed, merged, and what is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandpiper_local.fake_github.calls import Answer, Call, Page, Route, created, no_content
from sandpiper_local.fake_github.errors import Refusal, invalid, not_found
from sandpiper_local.fake_github.git_store import Person
from sandpiper_local.fake_github.pushes import after_push, close, keep_head, tell_pull
from sandpiper_local.fake_github.routes.issues import set_state
from sandpiper_local.fake_github.state import Issue, Pull
from sandpiper_local.fake_github.views.common import time_of
from sandpiper_local.fake_github.views.git import commit_view, file_views
from sandpiper_local.fake_github.views.pulls import diff_base, pull_of, pull_view, simple_pull_view

if TYPE_CHECKING:
    from sandpiper_local.fake_github.state import Repository

MAX_BODY_CHARS = 65_536


def list_pulls(call: Call) -> Page:
    state, head, base = call.query.get("state", "open"), call.query.get("head"), call.query.get("base")
    chosen = [
        issue for issue in reversed(call.repo.pulls)
        if state in {issue.state, "all"} and base in {None, pull_of(issue).base_ref} and head in {None, _label(issue)}
    ]  # fmt: skip
    return Page([simple_pull_view(call.hub, call.repo, issue) for issue in chosen])


def _label(issue: Issue) -> str:
    pull = pull_of(issue)
    return f"{pull.head_repo.owner.login if pull.head_repo else ''}:{pull.head_ref}"


def create_pull(call: Call) -> Answer:
    hub, repo, now = call.hub, call.repo, call.hub.clock.now()
    title, pull = call.text("title", resource="PullRequest"), _new_pull(call)
    body = call.body.get("body")
    if body and len(body) > MAX_BODY_CHARS:
        raise invalid("PullRequest", "body", message=f"body is too long (maximum is {MAX_BODY_CHARS} characters)")
    issue = Issue(
        id=hub.new_id(), number=hub.next_number(repo), title=title, body=body, user=call.actor.person,
        created_at=now, updated_at=now, by_app=call.actor.is_app, pull=pull,
    )  # fmt: skip
    repo.issues[issue.number] = issue
    keep_head(repo, issue)
    tell_pull(hub, repo, issue, "opened", call.actor.person)
    return created(pull_view(hub, repo, issue))


def _new_pull(call: Call) -> Pull:
    home, head_ref = _head(call)
    base_ref, draft = call.text("base", resource="PullRequest"), bool(call.body.get("draft"))
    head_sha, base_sha = home.git.resolve(f"refs/heads/{head_ref}"), call.repo.git.resolve(f"refs/heads/{base_ref}")
    if head_sha is None:
        raise invalid("PullRequest", "head")
    if base_sha is None:
        raise invalid("PullRequest", "base")
    pull = Pull(home, head_ref, head_sha, base_ref, base_sha, draft)
    _check_new(call, pull)
    return pull


def _head(call: Call) -> tuple[Repository, str]:
    owner, _, ref = call.text("head", resource="PullRequest").rpartition(":")
    if not owner or owner == call.repo.owner.login:
        return call.repo, ref
    family = (one for one in call.hub.repositories.values() if one.fork_of is call.repo and one.owner.login == owner)
    if fork := next(family, None):
        return fork, ref
    raise invalid("PullRequest", "head")


def _check_new(call: Call, pull: Pull) -> None:
    ends = (pull.head_repo, pull.head_ref, pull.base_ref)
    for issue in call.repo.pulls:
        other = pull_of(issue)
        if issue.state == "open" and (other.head_repo, other.head_ref, other.base_ref) == ends:
            words = f"A pull request already exists for {_label(issue)}."
            error = {"resource": "PullRequest", "code": "custom", "message": words}
            raise Refusal(422, "Validation Failed", errors=[error])
    if pull.head_repo is call.repo and call.repo.git.is_ancestor(pull.head_sha, pull.base_sha):
        words = f"No commits between {pull.base_ref} and {pull.head_ref}"
        raise Refusal(
            422, "Validation Failed", errors=[{"resource": "PullRequest", "code": "custom", "message": words}]
        )


def get_pull(call: Call) -> Any:
    if "diff" in call.accept:
        pull = pull_of(call.pull)
        text = call.repo.git.diff(diff_base(call.repo, pull), pull.head_sha)
        return Answer(text, headers={"Content-Type": "application/vnd.github.diff; charset=utf-8"})
    return pull_view(call.hub, call.repo, call.pull)


def update_pull(call: Call) -> Any:
    issue, body = call.pull, call.body
    issue.title, issue.body = body.get("title", issue.title), body.get("body", issue.body)
    if base := body.get("base"):
        pull_of(issue).base_ref = base
    set_state(call, issue)
    issue.updated_at = call.hub.clock.now()
    return pull_view(call.hub, call.repo, issue)


def list_files(call: Call) -> Page:
    pull = pull_of(call.pull)
    return Page(file_views(call.hub, call.repo, diff_base(call.repo, pull), pull.head_sha))


def list_commits(call: Call) -> Page:
    pull = pull_of(call.pull)
    shas = call.repo.git.commits_between(diff_base(call.repo, pull), pull.head_sha)
    return Page([commit_view(call.hub, call.repo, sha) for sha in shas])


def is_merged(call: Call) -> Answer:
    if pull_of(call.pull).merged_at is None:
        raise not_found()
    return no_content()


def merge_pull(call: Call) -> Any:
    issue, pull, repo = call.pull, pull_of(call.pull), call.repo
    if issue.state != "open" or pull.draft:
        raise Refusal(405, "Pull Request is not mergeable")
    if call.body.get("sha", pull.head_sha) != pull.head_sha:
        raise Refusal(409, "Head branch was modified. Review and try the merge again.")
    tree = repo.git.merged_tree(f"refs/heads/{pull.base_ref}", pull.head_sha)
    if tree is None:
        raise Refusal(405, "Pull Request is not mergeable")
    sha = _merge(call, issue, tree)
    pull.merged_at, pull.merged_by, pull.merge_commit_sha = call.hub.clock.now(), call.actor.person, sha
    close(call.hub, repo, issue, call.actor.person)
    return {"sha": sha, "merged": True, "message": "Pull Request successfully merged"}


def _merge(call: Call, issue: Issue, tree: str) -> str:
    repo, pull, person = call.repo, pull_of(issue), call.actor.person
    before = repo.git.refs()
    author = Person(person.login, call.hub.email_of(person), time_of(call.hub.clock.now()))
    ref = f"refs/heads/{pull.base_ref}"
    message = f"Merge pull request #{issue.number} from {_label(issue).replace(':', '/')}\n\n{issue.title}"
    sha = repo.git.write_commit(tree, [before[ref], pull.head_sha], message, author, author)
    repo.git.update_ref(ref, sha, before[ref])
    after_push(call.hub, repo, before, person)
    return sha


def request_reviewers(call: Call) -> Answer:
    pull = pull_of(call.pull)
    wanted = [call.hub.user(name) for name in call.body.get("reviewers") or []]
    if call.pull.user in wanted:
        raise Refusal(422, "Review cannot be requested from pull request author.")
    pull.requested_reviewers += [user for user in wanted if user not in pull.requested_reviewers]
    return created(simple_pull_view(call.hub, call.repo, call.pull))


_PULLS = "/repos/{owner}/{repo}/pulls"
_PULL = f"{_PULLS}/{{pull_number}}"
ROUTES = [
    Route("GET", _PULLS, list_pulls, "pull_requests:read"),
    Route("POST", _PULLS, create_pull, "pull_requests:write", by_anyone=True),
    Route("GET", _PULL, get_pull, "pull_requests:read"),
    Route("PATCH", _PULL, update_pull, "pull_requests:write"),
    Route("GET", f"{_PULL}/files", list_files, "pull_requests:read"),
    Route("GET", f"{_PULL}/commits", list_commits, "pull_requests:read"),
    Route("GET", f"{_PULL}/merge", is_merged, "contents:read"),
    Route("PUT", f"{_PULL}/merge", merge_pull, "contents:write"),
    Route("POST", f"{_PULL}/requested_reviewers", request_reviewers, "pull_requests:write"),
]
