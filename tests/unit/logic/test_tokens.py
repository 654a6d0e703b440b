from __future__ import annotations

import base64
import json
import time
from typing import Any, Literal

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from sandpiper.errors import AuthenticationError
from sandpiper.logic.tokens import LEEWAY_SECONDS, KeySource, TokenRules, bearer_token, verify

SECRET = "a secret that is long enough for HS256 to be happy with it"
ANY = TokenRules()
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PUBLIC_PEM = RSA_KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)


class Keys:
    def __init__(self, algorithm: Literal["HS256", "RS256"], key: Any) -> None:
        self.algorithm = algorithm
        self._key = key

    def key_for(self, token: str) -> Any:
        return self._key


HS256: KeySource = Keys("HS256", SECRET)
RS256: KeySource = Keys("RS256", RSA_KEY.public_key())


def claims(**changes: Any) -> dict[str, Any]:
    given = {"sub": "ann", "org": "acme", "scope": "runs", "exp": int(time.time()) + 600, **changes}
    return {name: value for name, value in given.items() if value is not None}


def hs256(**changes: Any) -> str:
    return jwt.encode(claims(**changes), SECRET, algorithm="HS256")


def forged(header: dict[str, Any], body: dict[str, Any], signature: bytes = b"") -> str:
    parts = [json.dumps(header).encode(), json.dumps(body).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def test_a_good_hs256_token_names_user_org_and_scope() -> None:
    assert verify(hs256(), HS256, ANY) == {"user": "ann", "org": "acme", "scope": "runs"}


def test_a_good_rs256_token_is_taken_where_rs256_is_configured() -> None:
    token = jwt.encode(claims(), RSA_KEY, algorithm="RS256")
    assert verify(token, RS256, ANY)["user"] == "ann"


def test_org_and_scope_are_optional() -> None:
    assert verify(hs256(org=None, scope=None), HS256, ANY) == {"user": "ann", "org": "", "scope": ""}


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(hs256(exp=int(time.time()) - 31), id="expired"),
        pytest.param(hs256(exp=None), id="without an end"),
        pytest.param(hs256(sub=None), id="without a user"),
        pytest.param(hs256(sub=" "), id="blank user"),
        pytest.param(hs256(org=5), id="org that is no name"),
        pytest.param(hs256(sub="u" * 256), id="user that is too long for a key"),
        pytest.param(hs256(org="o" * 256), id="org that is too long for a key"),
        pytest.param(hs256(nbf=int(time.time()) + 3600), id="not valid yet"),
        pytest.param(hs256(iat=int(time.time()) + 3600), id="issued in the future"),
        pytest.param(hs256(exp="soon"), id="end that is no time"),
        pytest.param(jwt.encode(claims(), "x" * 40, algorithm="HS256"), id="another secret"),
        pytest.param(jwt.encode(claims(), SECRET * 2, algorithm="HS512"), id="another algorithm"),
        pytest.param(forged({"alg": "none", "typ": "JWT"}, claims()), id="none"),
        pytest.param(forged({"alg": "None"}, claims()), id="None"),
        pytest.param(forged({"alg": "HS256"}, claims()), id="no signature"),
        pytest.param(hs256()[:-3] + "abc", id="tampered signature"),
        pytest.param("rubbish", id="rubbish"),
        pytest.param("a.b.c", id="dots"),
        pytest.param("", id="empty"),
    ],
)
def test_a_token_that_proves_nothing_is_refused(token: str) -> None:
    with pytest.raises(AuthenticationError):
        verify(token, HS256, ANY)


def test_an_hs256_token_signed_with_the_public_key_is_refused_where_rs256_is_configured() -> None:
    header, body = {"alg": "HS256", "typ": "JWT"}, claims()
    unsigned = forged(header, body).rstrip(".")
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    signed = signature.sign(unsigned.encode(), PUBLIC_PEM)
    with pytest.raises(AuthenticationError):
        verify(forged(header, body, signed), RS256, ANY)


def test_an_rs256_token_is_refused_where_hs256_is_configured() -> None:
    with pytest.raises(AuthenticationError):
        verify(jwt.encode(claims(), RSA_KEY, algorithm="RS256"), HS256, ANY)


@pytest.mark.parametrize("claim", [{"exp": -10}, {"nbf": 10}, {"iat": 10}], ids=["exp", "nbf", "iat"])
def test_a_clock_that_is_a_little_off_is_forgiven(claim: dict[str, int]) -> None:
    moments = {name: int(time.time()) + seconds for name, seconds in claim.items()}
    assert verify(hs256(**moments), HS256, ANY)["user"] == "ann"


def test_no_clock_is_forgiven_more_than_a_minute() -> None:
    assert LEEWAY_SECONDS <= 60


@pytest.mark.parametrize("changes", [{}, {"iss": "them"}])
def test_the_issuer_is_checked_when_one_is_set(changes: dict[str, str]) -> None:
    rules = TokenRules(issuer="us")
    assert verify(hs256(iss="us"), HS256, rules)["user"] == "ann"
    with pytest.raises(AuthenticationError):
        verify(hs256(**changes), HS256, rules)


@pytest.mark.parametrize("changes", [{}, {"aud": "another"}])
def test_the_audience_is_checked_when_one_is_set(changes: dict[str, str]) -> None:
    rules = TokenRules(audience="sandpiper")
    assert verify(hs256(aud="sandpiper"), HS256, rules)["user"] == "ann"
    with pytest.raises(AuthenticationError):
        verify(hs256(**changes), HS256, rules)


def test_a_token_for_some_audience_is_taken_when_none_is_set() -> None:
    assert verify(hs256(aud="anything", iss="anyone"), HS256, ANY)["user"] == "ann"


@pytest.mark.parametrize("header", ["Bearer a.b.c", "bearer a.b.c", "Bearer  a.b.c "])
def test_the_token_is_taken_from_the_header(header: str) -> None:
    assert bearer_token(header) == "a.b.c"


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic a.b.c", "a.b.c", "Bearer a b"])
def test_a_header_without_a_bearer_token_is_refused(header: str | None) -> None:
    with pytest.raises(AuthenticationError):
        bearer_token(header)
