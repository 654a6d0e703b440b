"""What GitHub remembers, in memory. Repositories lie on the disk, as real git repositories."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from datetime import datetime

    from sandpiper_local.fake_github.git_store import GitStore

LEVELS = {"none": 0, "read": 1, "triage": 2, "write": 3, "maintain": 4, "admin": 5}

type Kind = Literal["User", "Bot", "Organization"]
type Permissions = dict[str, str]


@dataclass
class User:
    id: int
    login: str
    type: Kind = "User"


@dataclass
class Reaction:
    id: int
    user: User
    content: str
    created_at: datetime


@dataclass
class Comment:
    id: int
    user: User
    body: str
    created_at: datetime
    updated_at: datetime
    by_app: bool = False
    reactions: list[Reaction] = field(default_factory=list)


@dataclass
class Label:
    id: int
    name: str
    color: str = "ededed"
    description: str | None = None


@dataclass
class Review:
    id: int
    user: User
    body: str
    state: str
    commit_id: str
    submitted_at: datetime | None


@dataclass
class ReviewComment(Comment):
    review_id: int | None = None
    path: str = ""
    commit_id: str = ""
    line: int | None = None
    side: str = "RIGHT"
    start_line: int | None = None
    start_side: str | None = None
    position: int | None = None
    diff_hunk: str = ""
    in_reply_to: int | None = None
    subject_type: str = "line"


@dataclass
class Thread:
    """A remark and the replies to it, which is what can be resolved."""

    id: str
    first_comment: int
    is_resolved: bool = False
    resolved_by: User | None = None


@dataclass
class Pull:
    head_repo: Repository | None
    head_ref: str
    head_sha: str
    base_ref: str
    base_sha: str
    draft: bool = False
    merged_at: datetime | None = None
    merged_by: User | None = None
    merge_commit_sha: str | None = None
    requested_reviewers: list[User] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    comments: list[ReviewComment] = field(default_factory=list)
    threads: list[Thread] = field(default_factory=list)


@dataclass
class Issue:
    """An issue or, with `pull`, a pull request: they share numbers, comments and labels."""

    id: int
    number: int
    title: str
    body: str | None
    user: User
    created_at: datetime
    updated_at: datetime
    by_app: bool = False
    state: str = "open"
    state_reason: str | None = None
    closed_at: datetime | None = None
    closed_by: User | None = None
    labels: list[Label] = field(default_factory=list)
    assignees: list[User] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    reactions: list[Reaction] = field(default_factory=list)
    pull: Pull | None = None


@dataclass
class CheckSuite:
    id: int
    head_sha: str
    head_branch: str | None
    app_id: int
    created_at: datetime
    updated_at: datetime


@dataclass
class CheckRun:
    id: int
    suite: CheckSuite
    name: str
    status: str
    started_at: datetime | None
    conclusion: str | None = None
    completed_at: datetime | None = None
    details_url: str | None = None
    external_id: str | None = None
    output: dict[str, Any] = field(default_factory=dict)
    annotations: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class CommitStatus:
    id: int
    sha: str
    creator: User
    state: str
    context: str
    description: str | None
    target_url: str | None
    created_at: datetime


@dataclass
class Job:
    """One job of an Actions run; it shows on the commit as a check run."""

    id: int
    check_run: CheckRun
    log: str


@dataclass
class WorkflowRun:
    id: int
    number: int
    name: str
    suite: CheckSuite
    actor: User
    created_at: datetime
    jobs: list[Job] = field(default_factory=list)


@dataclass
class Repository:
    id: int
    owner: User
    name: str
    git: GitStore
    created_at: datetime
    private: bool = True
    archived: bool = False
    default_branch: str = "main"
    fork_of: Repository | None = None
    protected: set[str] = field(default_factory=set)
    permissions: dict[str, str] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    issues: dict[int, Issue] = field(default_factory=dict)
    suites: list[CheckSuite] = field(default_factory=list)
    check_runs: list[CheckRun] = field(default_factory=list)
    statuses: list[CommitStatus] = field(default_factory=list)
    workflow_runs: list[WorkflowRun] = field(default_factory=list)

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    @property
    def pulls(self) -> list[Issue]:
        return [issue for issue in self.issues.values() if issue.pull]

    def permission_of(self, login: str) -> str:
        """The highest that the user has; a public repository can be read by all."""
        if login == self.owner.login:
            return "admin"
        return self.permissions.get(login) or ("none" if self.private else "read")


@dataclass
class App:
    id: int
    slug: str
    name: str
    owner: User
    bot: User
    public_key: str
    created_at: datetime
    permissions: Permissions
    webhook_url: str = ""
    webhook_secret: str = ""


@dataclass
class Installation:
    id: int
    account: User
    permissions: Permissions
    repositories: list[Repository]
    created_at: datetime
    suspended_at: datetime | None = None
    all_repositories: bool = False


@dataclass
class Token:
    """`permissions` and `repositories` None: as far as the user's own access goes."""

    value: str
    user: User
    installation: Installation | None = None
    permissions: Permissions | None = None
    repositories: list[Repository] | None = None
    expires_at: datetime | None = None
    limit: int = 5000
    used: int = 0
    window_ends: datetime | None = None


@dataclass
class Delivery:
    id: int
    guid: str
    event: str
    action: str | None
    installation_id: int | None
    repository_id: int | None
    body: bytes
    headers: dict[str, str]
    delivered_at: datetime
    redelivery: bool = False
    status_code: int = 0
    status: str = "pending"
    duration: float = 0.0
    response_headers: dict[str, str] = field(default_factory=dict)
    response_body: str = ""
