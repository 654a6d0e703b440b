"""Where on GitHub a run was asked for, and where its answers go."""

from datetime import datetime
from typing import Literal

from sandpiper.models.base import Model

Command = Literal["implement", "review", "test", "fix"]
# Each kind of comment has a route of its own for reactions; `issue` is an issue's own text (label, assignment).
Origin = Literal["issue_comment", "review_comment", "review", "issue"]


class PullRequest(Model):
    """A pull request as it was when the run was asked for. The run works on `head_sha`, whatever comes later."""

    head_sha: str
    head_ref: str
    base_ref: str
    from_fork: bool = False


class Author(Model):
    """In whose name commits are made. On GitHub the address decides whose face stands beside them."""

    name: str
    email: str


class GitHubOrigin(Model):
    """A comment (or an issue) that became a run. Holds no secret: tokens are minted when they are needed."""

    installation_id: int
    repository: str  # owner/name, as it was then
    repository_id: int | None = None
    number: int  # of the issue or of the pull request
    command: Command
    sender: str
    origin: Origin
    comment_id: int | None = None
    pull: PullRequest | None = None
    follow_ci: bool = False
    author: Author | None = None


class Topic(Model):
    """An issue or a pull request, as GitHub shows it now."""

    number: int
    title: str
    body: str = ""
    author: str
    is_open: bool = True
    comments: int = 0
    pull: PullRequest | None = None


class RepositoryToken(Model):
    """Of an installation, for one repository. Never stored, never logged."""

    token: str
    expires_at: datetime
