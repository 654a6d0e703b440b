"""Signatures of GitHub, by vectors of its own library, and our own proofs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sandpiper.logic.github.signatures import is_proven, is_signed, proof, signature

VECTORS = json.loads((Path(__file__).parents[3] / "fixtures/github/signatures.json").read_text())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["body"][:20])
def test_a_body_that_github_signed_is_known(vector: dict[str, str]) -> None:
    assert is_signed(vector["secret"], vector["body"].encode(), vector["signature"])


@pytest.mark.parametrize(
    "header",
    [None, "", "sha256=", "sha1=" + "0" * 40, "0" * 64, "sha256=" + "0" * 64, "sha256=é", "SHA256=" + "0" * 64],
)
def test_any_other_signature_is_wrong(header: str | None) -> None:
    assert not is_signed("secret", b"{}", header)


def test_one_other_byte_is_another_body() -> None:
    assert not is_signed("secret", b"{} ", signature("secret", b"{}"))


def test_an_empty_secret_signs_nothing() -> None:
    assert not is_signed("", b"{}", signature("", b"{}"))


def test_a_signature_of_github_is_no_proof_and_a_proof_no_signature() -> None:
    assert is_proven("secret", "delivery", proof("secret", "delivery"))
    assert not is_proven("secret", "delivery", signature("secret", b"delivery"))
    assert not is_signed("secret", b"delivery", proof("secret", "delivery"))
    assert not is_proven("secret", "another", proof("secret", "delivery"))
