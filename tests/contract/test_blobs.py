from __future__ import annotations

import io
import urllib.error
import urllib.parse
import urllib.request
import uuid
from typing import TYPE_CHECKING

import pytest

from sandpiper.errors import NotFound

if TYPE_CHECKING:
    from sandpiper.ports import Blobs
    from tests.contract.worlds import Aws, Store


@pytest.fixture
def blobs(store: Store) -> Blobs:
    return store.blobs


@pytest.fixture
def key() -> str:
    return f"runs/{uuid.uuid4()}/log.txt"


def test_bytes_are_read_back_as_they_were_put(blobs: Blobs, key: str) -> None:
    blobs.put(key, b"\x00\xff text", content_type="text/plain; charset=utf-8")
    assert blobs.get(key) == b"\x00\xff text"


def test_a_file_is_stored_whole(blobs: Blobs, key: str) -> None:
    body = b"0123456789abcdef" * 400_000
    blobs.put_file(key, io.BytesIO(body), content_type="text/plain; charset=utf-8")
    assert blobs.get(key) == body


def test_the_last_write_wins(blobs: Blobs, key: str) -> None:
    blobs.put(key, b"one", content_type="text/plain")
    blobs.put(key, b"two", content_type="text/plain")
    assert blobs.get(key) == b"two"


def test_what_was_never_put_is_not_found(blobs: Blobs, key: str) -> None:
    with pytest.raises(NotFound):
        blobs.get(key)


def test_a_presigned_url_names_the_key(blobs: Blobs, key: str) -> None:
    assert key in urllib.parse.unquote(blobs.presign(key, filename="log.txt", seconds=60))


def test_whoever_has_the_presigned_url_gets_the_bytes_with_type_and_name(aws: Aws, key: str) -> None:
    blobs = aws.blobs()
    blobs.put(key, "é\n".encode(), content_type="text/plain; charset=utf-8")
    with urllib.request.urlopen(blobs.presign(key, filename="log.txt", seconds=60)) as answer:  # noqa: S310 - ours
        assert answer.read() == "é\n".encode()
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert answer.headers["Content-Disposition"] == 'inline; filename="log.txt"'


def test_a_presigned_url_that_was_tampered_with_is_refused(aws: Aws, key: str) -> None:
    blobs = aws.blobs()
    blobs.put(key, b"mine", content_type="text/plain")
    blobs.put(f"{key}.other", b"not yours", content_type="text/plain")
    url = blobs.presign(key, filename="log.txt", seconds=60).replace("log.txt?", "log.txt.other?")
    with pytest.raises(urllib.error.HTTPError, match="403") as refused:
        urllib.request.urlopen(url)  # noqa: S310 - ours
    refused.value.close()
