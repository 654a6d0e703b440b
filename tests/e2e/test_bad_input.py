"""Whatever is wrong with a request, the answer says so in one shape, names the field, and nothing is started."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import shutil
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.e2e.conftest import JWT_SECRET
from tests.e2e.support import Case, Person, finishes, make_repository, new_task, plans, refusal, shell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.e2e.conftest import Stack

TASK = "Do something"
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PUBLIC_PEM = RSA_KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)


@pytest.fixture(scope="module")
def person(stack: Stack) -> Iterator[Person]:
    """Sends nothing but bad requests: at the end no run may be in its list."""
    with Person(stack) as person:
        yield person
        assert person.http.get("/runs").json()["runs"] == []


# ---- tokens


def _claims(**changes: Any) -> dict[str, Any]:
    now = int(time.time())
    claims = {"sub": "ann", "org": "acme", "scope": "", "iat": now, "exp": now + 600} | changes
    return {name: value for name, value in claims.items() if value is not None}


def _signed_with_the_public_key() -> str:
    """HS256 with a public key as the secret: what a server falls for that believes the token's own word."""
    parts = [json.dumps(part).encode() for part in ({"alg": "HS256", "typ": "JWT"}, _claims())]
    text = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    signature = base64.urlsafe_b64encode(hmac.new(PUBLIC_PEM, text, hashlib.sha256).digest()).rstrip(b"=")
    return (text + b"." + signature).decode()


FORGERIES: dict[str, Callable[[], str]] = {
    "signed with another secret": lambda: jwt.encode(_claims(), "another-secret-of-a-decent-length-42", "HS256"),
    "expired": lambda: jwt.encode(_claims(exp=int(time.time()) - 600), JWT_SECRET, "HS256"),
    "alg none": lambda: jwt.encode(_claims(), "", "none"),
    "another algorithm": lambda: jwt.encode(_claims(), JWT_SECRET + JWT_SECRET, "HS512"),
    "RS256 of an own key": lambda: jwt.encode(_claims(), RSA_KEY, "RS256"),
    "HS256 with a public key": _signed_with_the_public_key,
    "no sub": lambda: jwt.encode(_claims(sub=None), JWT_SECRET, "HS256"),
    "empty sub": lambda: jwt.encode(_claims(sub=" "), JWT_SECRET, "HS256"),
    "no exp": lambda: jwt.encode(_claims(exp=None), JWT_SECRET, "HS256"),
    "not valid yet": lambda: jwt.encode(_claims(nbf=int(time.time()) + 600), JWT_SECRET, "HS256"),
    "rubbish": lambda: "rubbish",
}


@pytest.mark.parametrize("what", FORGERIES)
def test_a_token_that_is_not_good_is_refused(stack: Stack, what: str) -> None:
    headers = {"Authorization": f"Bearer {FORGERIES[what]()}"}
    answer = httpx.post(f"{stack.api_url}/execute", json={"task": TASK}, headers=headers, timeout=40)
    refusal(answer, 403, "permission_error")


@pytest.mark.parametrize("headers", [{}, {"Authorization": ""}], ids=["none", "empty"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/execute"), ("GET", "/runs"), ("GET", "/runs/run-x"), ("GET", "/runs/run-x/events"),
        ("GET", "/runs/run-x/logs"), ("GET", "/runs/run-x/diff"), ("POST", "/runs/run-x/cancel"), ("POST", "/tickets"),
    ],
)  # fmt: skip
def test_every_route_needs_a_token(stack: Stack, method: str, path: str, headers: dict[str, str]) -> None:
    answer = httpx.request(method, stack.api_url + path, headers=headers, timeout=40)
    refusal(answer, 401, "authentication_error")


@pytest.mark.parametrize("scheme", ["Basic YW5uOmFubg==", "Token x", "Bearer"])
def test_another_kind_of_credential_is_refused(stack: Stack, scheme: str) -> None:
    answer = httpx.get(f"{stack.api_url}/runs", headers={"Authorization": scheme}, timeout=40)
    refusal(answer, 403, "permission_error")


# ---- bodies


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"task": TASK, "tusk": 1}, "tusk"),
        ({"task": TASK, "options": {"turns": 3}}, "options.turns"),
        ({"task": "bug-fix", "params": {"task": TASK, "shouldComit": True}}, "params.shouldComit"),
        ({"task": "bug-fix", "params": {"task": TASK}, "repo": "a/b"}, "repo"),
        ({}, "task"),
        ({"task": ""}, "task"),
        ({"task": " \n\t "}, "task"),
        ({"task": None}, "task"),
        ({"task": 5}, "task"),
        ({"task": ["x"]}, "task"),
        ({"task": "x" * 32_001}, "task"),
        ({"task": "no-such-type", "params": {"task": TASK}}, "task"),
        ({"task": "bug-fix", "params": {"task": ""}}, "params.task"),
        ({"task": "bug-fix", "params": []}, "params"),
        ({"task": TASK, "type": "no-such-type"}, "type"),
        ({"task": TASK, "max_turns": "5"}, "max_turns"),
        ({"task": TASK, "max_turns": 0}, "max_turns"),
        ({"task": TASK, "max_turns": 1.5}, "max_turns"),
        ({"task": TASK, "maxTurns": True}, "maxTurns"),
        ({"task": TASK, "max_cost_usd": -1}, "max_cost_usd"),
        ({"task": TASK, "timeoutSeconds": 29}, "timeoutSeconds"),
        ({"task": TASK, "timeoutSeconds": 7201}, "timeoutSeconds"),
        ({"task": TASK, "shouldCommit": "yes"}, "shouldCommit"),
        ({"task": TASK, "promptStrategy": "magic"}, "promptStrategy"),
        ({"task": TASK, "options": {"temperature": 3}}, "options.temperature"),
        ({"task": TASK, "callback_url": "http://127.0.0.1/x"}, "callback_url"),
        ({"task": TASK, "branch": "../../etc"}, "branch"),
        ({"task": TASK, "branch": "-d"}, "branch"),
        ({"task": TASK, "branch": "a b"}, "branch"),
        ({"task": TASK, "branch": "x.lock"}, "branch"),
        ({"task": TASK, "branch": "x\u0000y"}, "branch"),
        ({"task": TASK, "base": "refs/../x"}, "base"),
        ({"task": TASK, "paths": ["../secrets"]}, "paths.0"),
        ({"task": TASK, "paths": ["ok", "/etc/passwd"]}, "paths.1"),
        ({"task": TASK, "paths": ["a/../../b"]}, "paths.0"),
        ({"task": TASK, "paths": "src"}, "paths"),
        ({"task": TASK, "model": "../x y"}, "model"),
        ({"task": TASK, "allowed_tools": ["rm -rf"]}, "allowed_tools.0"),
    ],
)
def test_a_wrong_body_is_refused_by_field(person: Person, body: dict[str, Any], field: str) -> None:
    error = refusal(person.execute(body), 422, "validation_error")
    assert field in [detail["field"] for detail in error["details"]], error
    assert field in error["message"]


@pytest.mark.parametrize(
    "repo",
    [
        "repo", "a/b/c", "../x", "owner/..", "owner/-x", "-owner/x", "ssh://git@github.com/o/r",
        "git@github.com:o/r.git",
        "http://github.com/o/r", "https://user:pass@github.com/o/r", "https://127.0.0.1/o/r", "https://[::1]/o/r",
        "https://169.254.169.254/latest/meta-data", "https://github.com/o/r?x=1", "https://github.com/../r",
        "https://github.com", "ext::sh -c id", "file:///nowhere/at/all", "/nowhere/at/all", "", " ", "o/r\n",
        "--upload-pack=x",
    ],
)  # fmt: skip
@pytest.mark.parametrize("shape", ["flat", "params"])
def test_what_is_no_repository_is_refused_by_field(person: Person, repo: str, shape: str) -> None:
    bodies = {
        "flat": {"task": TASK, "repo": repo},
        "params": {"task": "bug-fix", "params": {"task": TASK, "repo": repo}},
    }
    error = refusal(person.execute(bodies[shape]), 422, "validation_error")
    assert [detail["field"] for detail in error["details"]] == ["repo" if shape == "flat" else "params.repo"]


@pytest.mark.parametrize("repo", [5, ["a/b"], {"url": "a/b"}, True])
def test_a_repository_that_is_no_text_is_refused(person: Person, repo: Any) -> None:
    error = refusal(person.execute({"task": TASK, "repo": repo}), 422, "validation_error")
    assert error["details"][0]["field"] == "repo"


@pytest.mark.parametrize("task", ["x" * 300_000, "ü" * 140_000], ids=["letters", "bytes"])
def test_a_body_over_256_kilobytes_is_refused(person: Person, task: str) -> None:
    content = json.dumps({"task": task}, ensure_ascii=False).encode()
    error = refusal(_post(person, content), 422, "validation_error")
    assert error["details"] == [{"field": "body", "message": "must be at most 256 KB"}]


@pytest.mark.parametrize("content", [b"{", b"", b"\xff\xfe", b'{"task": NaN}', b"{'task': 'x'}", b"[" * 100_000])
def test_what_is_no_json_is_refused(person: Person, content: bytes) -> None:
    answer = _post(person, content)
    error = refusal(answer, 422 if content == b"" else 400, "validation_error")
    assert error["details"]


def test_a_request_without_a_body_is_refused(person: Person) -> None:
    error = refusal(person.http.post("/execute"), 422, "validation_error")
    assert error["details"] == [{"field": "body", "message": "is required"}]


@pytest.mark.parametrize("content", [b"[]", b"5", b'"x"', b"null", b"true", b'[{"task": "x"}]'])
def test_json_that_is_no_object_is_refused(person: Person, content: bytes) -> None:
    error = refusal(_post(person, content), 422, "validation_error")
    assert error["details"][0]["field"] == "body"


def test_a_form_is_refused_with_a_word_about_its_type(person: Person) -> None:
    error = refusal(person.http.post("/execute", data={"task": "x"}), 400, "validation_error")
    assert error["details"][0]["field"] == "content-type"


@pytest.mark.parametrize(
    ("name", "value"), [("Idempotency-Key", "x" * 256), ("Idempotency-Key", "a b"), ("X-GitHub-Token", "a b")]
)
def test_a_wrong_header_is_refused_by_name(person: Person, name: str, value: str) -> None:
    answer = person.http.post("/execute", json={"task": TASK}, headers={name: value})
    error = refusal(answer, 422, "validation_error")
    assert error["details"][0]["field"].lower() == name.lower()


def test_what_a_secret_was_is_not_repeated_in_the_refusal(person: Person) -> None:
    answer = person.http.post("/execute", json={"task": TASK}, headers={"X-GitHub-Token": "secret token with blanks"})
    assert "blanks" not in answer.text


def _post(person: Person, content: bytes) -> httpx.Response:
    return person.http.post("/execute", content=content, headers={"Content-Type": "application/json"})


# ---- queries and addresses


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"), ("limit=201", "limit"), ("limit=x", "limit"), ("limit=-1", "limit"),
        ("status=asleep", "status"), ("limit=1.5", "limit"),
    ],
)  # fmt: skip
def test_a_wrong_query_is_refused_by_name(person: Person, query: str, field: str) -> None:
    error = refusal(person.http.get(f"/runs?{query}"), 422, "validation_error")
    assert error["details"][0]["field"] == field


@pytest.mark.parametrize("query", ["after=-1", "after=x", "limit=0", "limit=1000", "after=9999999999999"])
def test_a_wrong_query_for_events_is_refused_by_name(person: Person, query: str) -> None:
    error = refusal(person.http.get(f"/runs/run-x/events?{query}"), 422, "validation_error")
    assert error["details"][0]["field"] == query.partition("=")[0]


@pytest.mark.parametrize(
    "run_id",
    [
        "run-01m7ppnsw97wq52hdmq2xr3ewz",
        "..%2Fx",
        "%2e%2e",
        "x%00y",
        "RUN%23x",
        "run-*",
        "%F0%9F%92%A9",
        "x" * 1000,
        "x" * 3000,
        "'--",
    ],
)
@pytest.mark.parametrize("rest", ["", "/events", "/logs", "/diff"])
def test_a_run_that_does_not_exist_is_not_found(person: Person, run_id: str, rest: str) -> None:
    refusal(person.http.get(f"/runs/{run_id}{rest}"), 404, "not_found")


@pytest.mark.parametrize(
    "path", ["/", "/nothing", "/runs/a/b/c", "/execute/", "/RUNS", "/runs/x/events/1", "/.git/config"]
)
def test_an_address_where_nothing_is_is_not_found(person: Person, path: str) -> None:
    refusal(person.http.get(path), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/execute"), ("DELETE", "/runs"), ("PUT", "/runs/run-x"), ("GET", "/tickets")]
)
def test_a_wrong_method_has_the_one_shape(person: Person, method: str, path: str) -> None:
    answer = person.http.request(method, path)
    assert answer.status_code in {404, 405}
    refusal(answer, answer.status_code, "not_found" if answer.status_code == 404 else "validation_error")


# ---- other people's runs, and repositories that can't be read


@pytest.fixture(scope="module")
def cases(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Case]]:
    """Runs on repositories that can't be read. The model would have nothing to say: none of them gets that far."""
    there = make_repository(tmp_path_factory.mktemp("repository") / "project", {"a.txt": "a\n"})
    gone = make_repository(tmp_path_factory.mktemp("repository") / "gone", {"a.txt": "a\n"})
    with ExitStack() as people:
        found = {
            name: people.enter_context(Person(stack)) for name in ("wrong token", "no token", "gone", "away", "base")
        }
        url, token = _share(found["base"], there, base="no-such-branch")
        gone_url, gone_token = _share(found["gone"], gone, base="no-such-branch")
        shutil.rmtree(gone)
        started = {
            "wrong token": ({"repo": url}, {"X_GitHub_Token": "not-the-token-of-this"}),
            "no token": ({"repo": url}, {}),
            "gone": ({"repo": gone_url}, {"X_GitHub_Token": gone_token}),
            "away": ({"repo": "https://nowhere.invalid/owner/repo"}, {}),
            "base": ({"repo": url, "base": "no-such-branch"}, {"X_GitHub_Token": token}),
        }
        yield {
            name: Case(found[name], found[name].start({"task": TASK, **body}, **headers), there)
            for name, (body, headers) in started.items()
        }


def _share(person: Person, repository: Path, **options: str) -> tuple[str, str]:
    """The URL of a local repository, and a token that opens it."""
    token = "a-token-that-was-brought-along"
    run_id = person.start({"task": TASK, "repo": str(repository), **options}, X_GitHub_Token=token)
    person.cancel(run_id)
    return str(person.run(run_id)["repo"]), token


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("wrong token", "refused the access"), ("no token", "refused the access"), ("gone", "There is no repository"),
        ("away", "could not be reached"), ("base", "no-such-branch"),
    ],
)  # fmt: skip
def test_a_repository_that_can_not_be_read_fails_the_run_in_words(
    cases: dict[str, Case], name: str, words: str
) -> None:
    case = cases[name]
    assert case.outcome == ("failed", "repository_error")
    assert words in case.run["error"]["message"]
    assert case.run["error"]["retryable"] is (name == "away")
    assert case.run["error"]["message"] in case.person.download(case.run_id, "logs").text


@pytest.mark.parametrize(
    ("method", "rest"), [("GET", ""), ("GET", "/events"), ("GET", "/logs"), ("GET", "/diff"), ("POST", "/cancel")]
)
def test_a_run_of_somebody_else_is_not_found(person: Person, cases: dict[str, Case], method: str, rest: str) -> None:
    run_id = cases["away"].run_id
    error = refusal(person.http.request(method, f"/runs/{run_id}{rest}"), 404, "not_found")
    missing = refusal(person.http.request(method, f"/runs/run-{'0' * 26}{rest}"), 404, "not_found")
    assert error["message"].replace(run_id, "") == missing["message"].replace(f"run-{'0' * 26}", "")


def test_a_refused_request_does_not_shut_out_a_run_with_the_same_token(stack: Stack, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "project", {"a.txt": "a\n"})
    task = new_task(stack, plans("true"), shell("sleep 1; echo b > b.txt"), finishes())
    body = {"task": task, "repo": str(repository)}
    with Person(stack) as person:
        run_id = person.start(body, X_GitHub_Token="a-token-that-is-used-twice")
        person.event(run_id, "repo_clone_completed")
        refusal(
            person.execute({**body, "max_turns": 0}, X_GitHub_Token="a-token-that-is-used-twice"),
            422,
            "validation_error",
        )
        assert person.end_of(run_id)["error"] is None
