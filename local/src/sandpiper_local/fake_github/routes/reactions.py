"""A thumb, a rocket, a pair of eyes: on issues and on both kinds of comments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandpiper_local.fake_github.calls import Answer, Call, Page, Route, no_content
from sandpiper_local.fake_github.errors import invalid, not_found
from sandpiper_local.fake_github.routes.issues import find_comment
from sandpiper_local.fake_github.routes.review_comments import find_review_comment
from sandpiper_local.fake_github.state import Reaction
from sandpiper_local.fake_github.views.issues import REACTIONS, reaction_view

if TYPE_CHECKING:
    from collections.abc import Callable

    type Reactions = list[Reaction]


def _of_issue(call: Call) -> Reactions:
    return call.issue.reactions


def _of_comment(call: Call) -> Reactions:
    return find_comment(call.repo, call.number("comment_id"))[1].reactions


def _of_review_comment(call: Call) -> Reactions:
    return find_review_comment(call.repo, call.number("comment_id"))[1].reactions


def _listing(find: Callable[[Call], Reactions]) -> Callable[[Call], Any]:
    return lambda call: Page([reaction_view(call.hub, one) for one in find(call)])


def _creating(find: Callable[[Call], Reactions]) -> Callable[[Call], Any]:
    def create(call: Call) -> Answer:
        content, user, reactions = call.body.get("content"), call.actor.person, find(call)
        if content not in REACTIONS:
            raise invalid("Reaction", "content")
        if known := next((one for one in reactions if (one.content, one.user) == (content, user)), None):
            return Answer(reaction_view(call.hub, known), 200)
        reaction = Reaction(call.hub.new_id(), user, content, call.hub.clock.now())
        reactions.append(reaction)
        return Answer(reaction_view(call.hub, reaction), 201)

    return create


def _deleting(find: Callable[[Call], Reactions]) -> Callable[[Call], Any]:
    def delete(call: Call) -> Answer:
        reactions, wanted = find(call), call.number("reaction_id")
        found = next((one for one in reactions if one.id == wanted), None)
        if found is None:
            raise not_found()
        reactions.remove(found)
        return no_content()

    return delete


def _routes(path: str, find: Callable[[Call], Reactions], name: str) -> list[Route]:
    return [
        Route("GET", f"{path}/reactions", _listing(find), f"{name}:read"),
        Route("POST", f"{path}/reactions", _creating(find), f"{name}:write", by_anyone=True),
        Route("DELETE", f"{path}/reactions/{{reaction_id}}", _deleting(find), f"{name}:write", by_anyone=True),
    ]


_REPO = "/repos/{owner}/{repo}"
ROUTES = [
    *_routes(f"{_REPO}/issues/comments/{{comment_id}}", _of_comment, "issues"),
    *_routes(f"{_REPO}/issues/{{issue_number}}", _of_issue, "issues"),
    *_routes(f"{_REPO}/pulls/comments/{{comment_id}}", _of_review_comment, "pull_requests"),
]
