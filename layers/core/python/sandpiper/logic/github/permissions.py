"""What a token may do, cut down to what its bearer is there for. Every token may also read metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandpiper.models.spec import TaskType

    type Permissions = Mapping[str, Literal["read", "write"]]

# The control plane: who asked, what was said, reactions, the status comment.
TALK: Permissions = {"issues": "write", "pull_requests": "write", "checks": "read"}
# Also the control plane's: GitHub lets nobody resolve a remark who may not write contents.
RESOLVE: Permissions = {"contents": "write", "pull_requests": "write"}
_READ_ONLY: dict[str, Permissions] = {
    "code-review": {"contents": "read", "pull_requests": "write", "checks": "write", "issues": "write"},
    "test-suite": {"contents": "read", "pull_requests": "read", "checks": "write", "issues": "write"},
}
_WORK: Permissions = {
    "contents": "write",
    "pull_requests": "write",
    "issues": "write",
    "checks": "read",
    "actions": "read",
}


def permissions_for(task: TaskType) -> Permissions:
    return _READ_ONLY.get(task, _WORK)
