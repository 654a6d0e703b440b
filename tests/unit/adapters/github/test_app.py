"""The App's own JWT, the tokens it mints, and how a sandbox gets one."""

from __future__ import annotations

import contextlib
import io
import json
from datetime import timedelta
from typing import Any

import jwt
import pytest
from botocore.exceptions import EndpointConnectionError
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from sandpiper import limits
from sandpiper.adapters.github.announcer import LambdaAnnouncer
from sandpiper.adapters.github.app import GitHubApp
from sandpiper.adapters.github.tokens import LambdaRepositoryTokens
from sandpiper.errors import Fenced, GitHubError, Unavailable
from sandpiper.logic.github.permissions import permissions_for
from sandpiper.models.github import Author, GitHubOrigin
from sandpiper.testing.clock import FakeClock
from tests.unit.adapters.github.loopback import Loopback, Reply

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
MINT = "POST /app/installations/42/access_tokens"
REVIEW = permissions_for("code-review")
SHOP = GitHubOrigin(
    installation_id=42, repository="acme/shop", repository_id=7, number=1, command="review", sender="ann",
    origin="issue",
)  # fmt: skip
OTHER = SHOP.model_copy(update={"repository_id": 8})


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def app(github: Loopback, clock: FakeClock) -> GitHubApp:
    return an_app(github, clock)


def an_app(github: Loopback, clock: FakeClock, pem: str = PEM, app_id: str = "123") -> GitHubApp:
    return GitHubApp(api_url=github.url, app_id=app_id, read_key=lambda: pem, clock=clock, sleep=lambda _: None)


def minted(clock: FakeClock) -> Reply:
    return Reply(201, {"token": "ghs_1", "expires_at": (clock.now() + timedelta(hours=1)).isoformat()})


def test_a_token_is_asked_for_as_the_app_for_one_repository_and_few_rights(
    github: Loopback, app: GitHubApp, clock: FakeClock
) -> None:
    github.reply(MINT, minted(clock))
    assert app.token(SHOP, REVIEW).token == "ghs_1"
    (asked,) = github.asked
    assert asked.body == {"repository_ids": [7], "permissions": REVIEW}
    signed = asked.headers["authorization"].removeprefix("Bearer ")
    claims = jwt.decode(
        signed, KEY.public_key(), algorithms=["RS256"], options={"verify_exp": False, "verify_iat": False}
    )
    now = int(clock.now().timestamp())
    assert claims == {"iat": now - 60, "exp": now + 540, "iss": "123"}


def test_a_repository_without_a_number_is_asked_for_by_its_name(
    github: Loopback, app: GitHubApp, clock: FakeClock
) -> None:
    github.reply(MINT, minted(clock))
    app.token(SHOP.model_copy(update={"repository_id": None}), REVIEW)
    assert github.asked[0].body["repositories"] == ["shop"]


def test_a_token_is_kept_until_shortly_before_it_runs_out(github: Loopback, app: GitHubApp, clock: FakeClock) -> None:
    github.reply(MINT, minted(clock))
    app.token(SHOP, REVIEW)
    clock.advance(3600 - limits.GITHUB_TOKEN_SPARE_SECONDS - 1)
    app.token(SHOP, REVIEW)
    assert len(github.asked) == 1
    clock.advance(1)
    app.token(SHOP, REVIEW)
    assert len(github.asked) == 2


def test_another_repository_or_other_rights_are_another_token(
    github: Loopback, app: GitHubApp, clock: FakeClock
) -> None:
    github.reply(MINT, minted(clock))
    app.token(SHOP, REVIEW)
    app.token(OTHER, REVIEW)
    app.token(SHOP, permissions_for("bug-fix"))
    assert len(github.asked) == 3


def test_a_client_for_a_repository_uses_such_a_token(github: Loopback, app: GitHubApp, clock: FakeClock) -> None:
    github.reply(MINT, minted(clock))
    github.reply("GET /repos/acme/shop", Reply(200, {"id": 1}))
    app.client_for(SHOP, REVIEW).call("GET", "/repos/acme/shop")
    assert github.asked[1].headers["authorization"] == "Bearer ghs_1"


REFUSED = Reply(401, {"message": "Bad credentials"})
FORBIDDEN = Reply(403, {"message": "Resource not accessible by integration"})


@pytest.mark.parametrize("refusal", [REFUSED, FORBIDDEN])
def test_a_new_token_that_github_does_not_know_everywhere_yet_is_tried_again(
    github: Loopback, app: GitHubApp, clock: FakeClock, refusal: Reply
) -> None:
    github.reply(MINT, minted(clock))
    github.reply("GET /x", refusal, refusal, Reply(200, {"id": 1}))
    assert app.client_for(SHOP, REVIEW).call("GET", "/x") == {"id": 1}
    assert github.paths.count(MINT) == 1


def test_a_token_that_github_knows_no_more_gives_way_to_another(
    github: Loopback, app: GitHubApp, clock: FakeClock
) -> None:
    github.reply(MINT, minted(clock))
    app.token(SHOP, REVIEW)
    clock.advance(limits.GITHUB_NEW_TOKEN_SECONDS)
    github.reply("GET /x", REFUSED, Reply(200, {"id": 1}))
    assert app.client_for(SHOP, REVIEW).call("GET", "/x") == {"id": 1}
    assert github.paths.count(MINT) == 2


def test_what_an_old_token_may_not_do_is_not_tried_again(github: Loopback, app: GitHubApp, clock: FakeClock) -> None:
    github.reply(MINT, minted(clock))
    app.token(SHOP, REVIEW)
    clock.advance(limits.GITHUB_NEW_TOKEN_SECONDS)
    github.reply("GET /x", FORBIDDEN)
    with pytest.raises(GitHubError, match="not accessible"):
        app.client_for(SHOP, REVIEW).call("GET", "/x")
    assert github.paths == [MINT, "GET /x"]


@pytest.mark.parametrize("pem", ["set-me", "", "-----BEGIN RSA PRIVATE KEY-----\nx\n-----END RSA PRIVATE KEY-----"])
def test_a_key_that_is_none_is_told_without_showing_it(github: Loopback, clock: FakeClock, pem: str) -> None:
    with pytest.raises(GitHubError, match="private key can't be read") as raised:
        an_app(github, clock, pem).token(SHOP, REVIEW)
    assert not pem or pem not in str(raised.value)


def test_a_key_that_was_written_on_one_line_is_read(github: Loopback, clock: FakeClock) -> None:
    github.reply(MINT, minted(clock))
    assert an_app(github, clock, PEM.replace("\n", "\\n")).token(SHOP, REVIEW).token == "ghs_1"


BOT = {"id": 9, "login": "piper[bot]", "html_url": "https://github.example.com/apps/piper"}


def test_the_apps_account_is_known_by_the_address_that_github_links_to_it_and_asked_for_once(
    github: Loopback, app: GitHubApp, clock: FakeClock
) -> None:
    github.reply(MINT, minted(clock))
    github.reply("GET /app", Reply(200, {"slug": "piper"}))
    github.reply("GET /users/piper%5Bbot%5D", Reply(200, BOT))
    expected = Author(name="piper[bot]", email="9+piper[bot]@users.noreply.github.example.com")
    assert [app.author(SHOP), app.author(OTHER)] == [expected, expected]
    assert github.paths.count("GET /app") == 1


@pytest.mark.parametrize(("reply", "is_error"), [(Reply(404, {"message": "Not Found"}), False), (Reply(502), True)])
def test_an_account_that_is_not_there_is_done_without_and_one_that_may_be_is_waited_for(
    github: Loopback, app: GitHubApp, clock: FakeClock, reply: Reply, *, is_error: bool
) -> None:
    github.reply(MINT, minted(clock))
    github.reply("GET /app", Reply(200, {"slug": "piper"}))
    github.reply("GET /users/piper%5Bbot%5D", reply)
    with pytest.raises(GitHubError) if is_error else contextlib.nullcontext():
        assert app.author(SHOP) is None


def test_without_an_app_there_are_neither_tokens_nor_deliveries(github: Loopback, clock: FakeClock) -> None:
    nobody = an_app(github, clock, app_id="")
    with pytest.raises(GitHubError, match="No GitHub App"):
        nobody.token(SHOP, REVIEW)
    assert list(nobody.deliveries(10)) == []
    assert not github.asked


def test_a_suspended_installation_is_told_in_githubs_words(github: Loopback, app: GitHubApp) -> None:
    github.reply(MINT, Reply(403, {"message": "This installation has been suspended"}))
    with pytest.raises(GitHubError, match="has been suspended"):
        app.token(SHOP, REVIEW)


def test_deliveries_are_listed_and_asked_for_again_as_the_app(github: Loopback, app: GitHubApp) -> None:
    github.reply("GET /app/hook/deliveries", Reply(200, [{"id": 9}]))
    github.reply("POST /app/hook/deliveries/9/attempts", Reply(202, {}))
    assert list(app.deliveries(10)) == [{"id": 9}]
    app.redeliver(9)
    assert github.paths[-1] == "POST /app/hook/deliveries/9/attempts"


class Functions:
    """As botocore's client of Lambda, as far as it is used."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers, self.asked = list(answers), list[dict[str, Any]]()
        self.failed = False

    def invoke(self, **request: Any) -> dict[str, Any]:
        self.asked.append({**request, "Payload": json.loads(request["Payload"])})
        answer = self.answers.pop(0) if self.answers else {}
        failed = {"FunctionError": "Unhandled"} if self.failed else {}
        return {"Payload": io.BytesIO(json.dumps(answer).encode()), **failed}


class Gone:
    def invoke(self, **_: Any) -> None:
        raise EndpointConnectionError(endpoint_url="lambda")


def tokens(functions: Functions, clock: FakeClock) -> LambdaRepositoryTokens:
    return LambdaRepositoryTokens(functions, function="github", clock=clock)  # type: ignore[arg-type]


def test_a_sandbox_asks_with_its_run_and_attempt_and_again_before_the_token_runs_out(clock: FakeClock) -> None:
    later = clock.now() + timedelta(hours=1)
    functions = Functions(
        {"token": "ghs_1", "expires_at": later.isoformat()},
        {"token": "ghs_2", "expires_at": (later + timedelta(hours=1)).isoformat()},
    )
    source = tokens(functions, clock)
    given = [source.token("run-1", 2), source.token("run-1", 2)]
    clock.advance(3600 - limits.GITHUB_TOKEN_SPARE_SECONDS)
    given.append(source.token("run-1", 2))
    assert [token and token.token for token in given] == ["ghs_1", "ghs_1", "ghs_2"]
    assert functions.asked[0] == {
        "FunctionName": "github", "Payload": {"action": "token", "run_id": "run-1", "attempt": 2},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        ({"type": "sandbox_lost", "message": "over"}, Fenced),
        ({"type": "repository_error", "message": "no", "code": 404, "retryable": False}, GitHubError),
        ({"type": "not_found", "message": "no run"}, GitHubError),
    ],
)
def test_a_refusal_is_the_same_error_on_both_sides(clock: FakeClock, error: Any, raised: type[Exception]) -> None:
    with pytest.raises(raised, match=error["message"]):
        tokens(Functions({"error": error}), clock).token("run-1", 1)


def test_a_run_without_github_has_no_token(clock: FakeClock) -> None:
    assert tokens(Functions({"token": None}), clock).token("run-1", 1) is None


def test_a_function_that_failed_may_be_asked_again(clock: FakeClock) -> None:
    functions = Functions({"errorMessage": "x"})
    functions.failed = True
    with pytest.raises(Unavailable):
        tokens(functions, clock).token("run-1", 1)


def test_a_function_that_can_not_be_reached_may_be_asked_again(clock: FakeClock) -> None:
    with pytest.raises(Unavailable):
        tokens(Gone(), clock).token("run-1", 1)  # type: ignore[arg-type]


def test_remarks_are_resolved_by_the_function_and_its_refusal_is_told(clock: FakeClock) -> None:
    refusal = {"error": {"type": "repository_error", "message": "not accessible", "code": 403}}
    functions = Functions({"resolved": 1}, refusal)
    tokens(functions, clock).resolve("run-1", 2, ["T1"])
    assert functions.asked[0]["Payload"] == {"action": "resolve", "run_id": "run-1", "attempt": 2, "threads": ["T1"]}
    with pytest.raises(GitHubError, match="not accessible"):
        tokens(functions, clock).resolve("run-1", 2, ["T1"])


def test_github_is_told_without_waiting() -> None:
    functions = Functions()
    LambdaAnnouncer(functions, function="github").tell("run-1")  # type: ignore[arg-type]
    assert functions.asked == [
        {"FunctionName": "github", "InvocationType": "Event", "Payload": {"action": "tell", "run_id": "run-1"}}
    ]


def test_a_word_that_could_not_be_sent_stops_no_run(caplog: pytest.LogCaptureFixture) -> None:
    LambdaAnnouncer(Gone(), function="github").tell("run-1")  # type: ignore[arg-type]
    assert "GitHub could not be told" in caplog.text
