"""GitHub's webhooks → what they ask of us, small enough to be handed on. No I/O, no heavy imports.

| event | asks |
|---|---|
| issue_comment, pull_request_review_comment (created), pull_request_review (submitted) | what its command says |
| issues (labeled, assigned) | to implement the issue, if label or assignee are the configured ones |
| check_suite (completed), not our own | to wake a run that waits for it |
| installation, installation_repositories | nothing; it is logged |
| anything else, edits, bots | nothing |
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from sandpiper import limits
from sandpiper.errors import BadRequest
from sandpiper.logic import ids
from sandpiper.logic.github.grammar import Order, order_of, reply_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Verb = Literal["implement", "review", "test", "fix", "cancel", "status", "approve", "reject", "say", "checks"]
Origin = Literal["issue_comment", "review_comment", "review", "issue"]
COMMITTING: frozenset[Verb] = frozenset({"implement", "fix"})
STARTING = COMMITTING | {"review", "test"}


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """One wish from GitHub. `id` is shared by all its redeliveries."""

    id: str
    verb: Verb
    text: str = ""
    installation_id: int
    repository: str
    repository_id: int | None = None
    default_branch: str = ""
    sender: str
    number: int = 0
    is_pull: bool = False
    origin: Origin = "issue_comment"
    comment_id: int | None = None
    said_at: str = ""
    path: str = ""  # of the file that a review comment is about, with its part of the diff
    hunk: str = ""
    is_reply: bool = False  # to something that it quotes
    run_id: str = ""  # that a reply quotes
    quoted: str = ""  # by a reply that names no run: ours, or somebody else's words
    head_sha: str = ""  # whose checks are complete
    conclusion: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def owner_of(login: str) -> str:
    return f"github:{login}"


def run_id_of(delivery: Delivery) -> str:
    """Of the run that the delivery starts, if its sender may: the same for every redelivery."""
    return ids.run_id_for_key(owner_of(delivery.sender), delivery.id)


@dataclass(frozen=True)
class Triggers:
    label: str
    assignee: str
    app_id: str = ""  # whose check suites say nothing that we don't know


@dataclass(frozen=True)
class Ignored:
    reason: str


def read_delivery(name: str, delivery_id: str, payload: Any, triggers: Triggers) -> Delivery | Ignored:
    """Raises BadRequest for what is no such event."""
    reader = _READERS.get(name)
    if reader is None:
        return Ignored("unknown event")
    try:
        return reader(delivery_id, payload, triggers)
    except (KeyError, TypeError, AttributeError) as error:
        raise BadRequest(f"This is no {name} event.") from error


def _issue_comment(delivery_id: str, payload: Mapping[str, Any], _: Triggers) -> Delivery | Ignored:
    issue = payload["issue"]
    about = {"number": issue["number"], "is_pull": "pull_request" in issue, "origin": "issue_comment"}
    return _comment(delivery_id, payload, payload["comment"], about) if _is(payload, "created") else _EDITED


def _review_comment(delivery_id: str, payload: Mapping[str, Any], _: Triggers) -> Delivery | Ignored:
    comment = payload["comment"]
    about = {
        "number": payload["pull_request"]["number"],
        "is_pull": True,
        "origin": "review_comment",
        "path": str(comment.get("path") or ""),
        "hunk": str(comment.get("diff_hunk") or "")[-limits.GITHUB_ENTRY_CHARS :],
    }
    return _comment(delivery_id, payload, comment, about) if _is(payload, "created") else _EDITED


def _review(delivery_id: str, payload: Mapping[str, Any], _: Triggers) -> Delivery | Ignored:
    about = {"number": payload["pull_request"]["number"], "is_pull": True, "origin": "review"}
    return _comment(delivery_id, payload, payload["review"], about) if _is(payload, "submitted") else _EDITED


def _comment(
    delivery_id: str, payload: Mapping[str, Any], comment: Mapping[str, Any], about: dict[str, Any]
) -> Delivery | Ignored:
    if comment["user"] is None:
        return Ignored("written by nobody")
    if _is_bot(comment["user"]) or comment.get("performed_via_github_app"):
        return Ignored("written by a bot")
    body = comment["body"] or ""
    at = comment.get("created_at") or comment.get("submitted_at") or ""
    said = {"comment_id": comment["id"], "sender": comment["user"]["login"], "said_at": at, **about}
    if order := order_of(body):
        return _delivery(delivery_id, payload, order, said)
    reply = reply_of(body)
    if reply and order_of(reply.text) is None:  # else a command that is shown as part of the quote
        to = {"run_id": reply.run_id} if reply.run_id else {"quoted": reply.quoted}
        return _delivery(delivery_id, payload, Order("say", reply.text), said | to | {"is_reply": True})
    return Ignored("no command")


def _issues(delivery_id: str, payload: Mapping[str, Any], triggers: Triggers) -> Delivery | Ignored:
    label = _is(payload, "labeled") and _is_called(payload.get("label"), "name", triggers.label)
    if not label and not (_is(payload, "assigned") and _is_called(payload.get("assignee"), "login", triggers.assignee)):
        return Ignored("no trigger")
    if _is_bot(payload["sender"]):
        return Ignored("done by a bot")
    about = {"number": payload["issue"]["number"], "origin": "issue"}
    return _delivery(delivery_id, payload, None, about)


def _check_suite(delivery_id: str, payload: Mapping[str, Any], triggers: Triggers) -> Delivery | Ignored:
    if not _is(payload, "completed"):
        return Ignored("not completed")
    suite = payload["check_suite"]
    if str((suite.get("app") or {}).get("id")) == triggers.app_id:
        return Ignored("a check of our own")
    about = {"verb": "checks", "head_sha": suite["head_sha"], "conclusion": suite["conclusion"] or ""}
    return _delivery(delivery_id, payload, None, about)


def _nothing(_id: str, payload: Mapping[str, Any], _: Triggers) -> Ignored:
    return Ignored(f"noted: {payload['action']}")


def _delivery(
    delivery_id: str, payload: Mapping[str, Any], order: Order | None, about: dict[str, Any]
) -> Delivery | Ignored:
    if "installation" not in payload:
        return Ignored("not sent by the App")
    repository = payload["repository"]
    fields: dict[str, Any] = {
        "verb": order.verb if order else "implement",
        "text": order.text if order else "",
        "sender": payload["sender"]["login"],
        **about,
    }
    return Delivery(
        id=delivery_id,
        installation_id=payload["installation"]["id"],
        repository=repository["full_name"],
        repository_id=repository["id"],
        default_branch=repository["default_branch"],
        **fields,
    )


def _is(payload: Mapping[str, Any], action: str) -> bool:
    return bool(payload["action"] == action)


def _is_called(thing: Mapping[str, Any] | None, key: str, name: str) -> bool:
    """GitHub leaves out what is gone by now."""
    return bool(name) and thing is not None and str(thing[key]).casefold() == name.casefold()


def _is_bot(user: Mapping[str, Any]) -> bool:
    return user.get("type") == "Bot" or str(user["login"]).endswith("[bot]")


_EDITED = Ignored("only new comments count")
_READERS: dict[str, Callable[[str, Mapping[str, Any], Triggers], Delivery | Ignored]] = {
    "issue_comment": _issue_comment,
    "pull_request_review_comment": _review_comment,
    "pull_request_review": _review,
    "issues": _issues,
    "check_suite": _check_suite,
    "installation": _nothing,
    "installation_repositories": _nothing,
}
