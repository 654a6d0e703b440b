"""POST /github/commit"""

from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Body, Header

from api.requests import VISIBLE, Caller, CurrentWorld, IdempotencyKey, RequestId
from api.resolver import new_router
from api.world import World
from sandpiper import limits
from sandpiper.errors import AuthenticationError, Conflict, GitHubError, NotFound, PermissionDenied, SandpiperError
from sandpiper.models.commits import CommitAnswer, CommitRequest, CommitView

# What GitHub's refusal means to our caller. Anything else is a failure between GitHub and us.
_REFUSALS: dict[int, type[SandpiperError]] = {
    401: PermissionDenied,
    403: PermissionDenied,
    404: NotFound,
    409: Conflict,
    422: Conflict,
}

router = new_router()


@router.post("/github/commit", summary="Commit files", operation_id="commitFiles", tags=["github"])
def commit(
    *,
    body: Annotated[CommitRequest, Body()],
    world: CurrentWorld,
    caller: Caller,
    request_id: RequestId,
    idempotency_key: IdempotencyKey = None,
    github_token: Annotated[
        str | None, Header(alias="X-GitHub-Token", pattern=VISIBLE, max_length=limits.MAX_GITHUB_TOKEN_CHARS)
    ] = None,
) -> CommitAnswer:
    if github_token is None:
        raise AuthenticationError("Send a token of GitHub that may write contents: X-GitHub-Token: <token>.")

    def work() -> str:
        return _commit(world, github_token, body).model_dump_json()

    if idempotency_key is None:
        view = work()
    else:
        view = world.idempotency().once(
            operation="commit",
            owner=caller.user,
            key=idempotency_key,
            body=body.model_dump(mode="json"),
            start=work,
            context=router.lambda_context,
        )
    return CommitAnswer(commit=CommitView.model_validate_json(view), request_id=request_id)


def _commit(world: World, token: str, request: CommitRequest) -> CommitView:
    # An HTTP client costs a tenth of all imports, and few requests need one.
    from sandpiper.adapters.github.client import GitHubClient  # noqa: PLC0415
    from sandpiper.adapters.github.commits import GitHubCommits, Patience  # noqa: PLC0415
    from sandpiper.logic.github_commit import commit_files  # noqa: PLC0415

    client = GitHubClient(
        world.github_api_url, lambda: token, sleep=Patience(limits.GITHUB_COMMIT_WAIT_SECONDS, world.sleep)
    )
    try:
        return commit_files(GitHubCommits(client, request.repo), request)
    except GitHubError as error:
        refusal = None if error.retryable else _REFUSALS.get(error.code)
        if refusal is None:
            raise
        raise refusal(error.message) from error
