"""RS256 by JWKS: the keys of an identity provider, as its document gives them."""

from __future__ import annotations

import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from authorizer.keys import PublishedKeys
from sandpiper.errors import AuthenticationError
from sandpiper.logic.tokens import TokenRules, verify

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> PublishedKeys:
    published = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
    document = {"keys": [{**published, "kid": "k1", "use": "sig", "alg": "RS256"}]}
    monkeypatch.setattr(jwt.PyJWKClient, "fetch_data", lambda _: document)
    return PublishedKeys("https://id.test/jwks")


def token(kid: str, key: Any = KEY) -> str:
    claims = {"sub": "ann", "exp": int(time.time()) + 60}
    return jwt.encode(claims, key, algorithm="RS256", headers={"kid": kid})


def test_a_token_signed_with_a_published_key_is_taken(keys: PublishedKeys) -> None:
    assert verify(token("k1"), keys, TokenRules())["user"] == "ann"


def test_a_token_that_names_an_unknown_key_is_refused(keys: PublishedKeys) -> None:
    with pytest.raises(AuthenticationError):
        verify(token("k2"), keys, TokenRules())


def test_a_token_signed_with_another_key_under_the_same_name_is_refused(keys: PublishedKeys) -> None:
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    with pytest.raises(AuthenticationError):
        verify(token("k1", other), keys, TokenRules())


def test_an_hs256_token_is_refused_whatever_key_it_names(keys: PublishedKeys) -> None:
    claims = {"sub": "ann", "exp": int(time.time()) + 60}
    forged = jwt.encode(claims, "x" * 40, algorithm="HS256", headers={"kid": "k1"})
    with pytest.raises(AuthenticationError):
        verify(forged, keys, TokenRules())


@pytest.mark.parametrize("rubbish", ["", "a.b.c", "rubbish"])
def test_rubbish_is_refused(keys: PublishedKeys, rubbish: str) -> None:
    with pytest.raises(AuthenticationError):
        verify(rubbish, keys, TokenRules())
