from __future__ import annotations

import io
import urllib.error
import urllib.parse
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from sandpiper import limits
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


def test_a_blob_is_written_to_a_file_piece_by_piece(blobs: Blobs, key: str) -> None:
    body, file = bytes(range(256)) * 10_000, io.BytesIO()
    blobs.put(key, body, content_type="application/octet-stream")
    blobs.get_file(key, file)
    assert file.getvalue() == body


def test_a_blob_that_is_not_there_is_not_written_to_a_file(blobs: Blobs, key: str) -> None:
    file = io.BytesIO()
    with pytest.raises(NotFound):
        blobs.get_file(key, file)
    assert file.getvalue() == b""


def test_bytes_are_read_back_as_they_were_put(blobs: Blobs, key: str) -> None:
    blobs.put(key, b"\x00\xff text", content_type="text/plain; charset=utf-8")
    assert blobs.get(key) == b"\x00\xff text"


def test_a_file_is_stored_whole(blobs: Blobs, key: str) -> None:
    body = b"0123456789abcdef" * 400_000
    blobs.put_file(key, io.BytesIO(body), content_type="text/plain; charset=utf-8")
    assert blobs.get(key) == body


@pytest.mark.parametrize("size", [0, 1000, limits.SNAPSHOT_PART_BYTES, limits.SNAPSHOT_PART_BYTES * 5 // 2])
def test_a_stream_of_unknown_size_is_stored_whole(blobs: Blobs, key: str, size: int) -> None:
    body = (bytes(range(251)) * (size // 251 + 1))[:size]
    blobs.put_stream(key, InPieces(body), content_type="application/zstd")
    assert blobs.get(key) == body


@pytest.mark.parametrize("size", [1000, limits.SNAPSHOT_PART_BYTES * 3 // 2])
def test_nothing_is_stored_of_a_stream_that_breaks_off(blobs: Blobs, key: str, size: int) -> None:
    with pytest.raises(ConnectionError):
        blobs.put_stream(key, InPieces(bytes(size), breaks=True), content_type="application/zstd")
    with pytest.raises(NotFound):
        blobs.get(key)


class InPieces(io.BytesIO):
    """Can't be told its size, and gives less than it is asked for."""

    def __init__(self, body: bytes, *, breaks: bool = False) -> None:
        super().__init__(body)
        self._breaks = breaks

    def seekable(self) -> bool:
        return False

    def read(self, size: int | None = -1) -> bytes:
        piece = super().read(min(size or 0, 1_000_000))
        if self._breaks and not piece:
            raise ConnectionError("broken off")
        return piece


def test_named_blobs_are_deleted_and_no_others(blobs: Blobs, key: str) -> None:
    for name in (key, f"{key}.other", f"{key}.third"):
        blobs.put(name, b"x", content_type="text/plain")
    for _ in range(2):
        blobs.delete([key, f"{key}.third"])
    assert blobs.get(f"{key}.other") == b"x"
    for name in (key, f"{key}.third"):
        with pytest.raises(NotFound):
            blobs.get(name)


def test_the_last_write_wins(blobs: Blobs, key: str) -> None:
    blobs.put(key, b"one", content_type="text/plain")
    blobs.put(key, b"two", content_type="text/plain")
    assert blobs.get(key) == b"two"


def test_what_was_never_put_is_not_found(blobs: Blobs, key: str) -> None:
    with pytest.raises(NotFound):
        blobs.get(key)


def test_what_begins_with_a_prefix_is_deleted_and_nothing_else(blobs: Blobs, key: str) -> None:
    run = key.removesuffix("/log.txt")
    gone = [f"{run}/checkpoint.json", f"{run}/checkpoints/1/tree", f"{run}/checkpoints/with space and é"]
    kept = [key, f"{run}x/checkpoint.json"]
    for name in gone + kept:
        blobs.put(name, b"x", content_type="text/plain")
    assert [blobs.delete_prefix(f"{run}/checkpoint") for _ in range(2)] == [3, 0]
    assert [blobs.get(name) for name in kept] == [b"x", b"x"]
    for name in gone:
        with pytest.raises(NotFound):
            blobs.get(name)


def test_more_than_one_page_is_deleted(blobs: Blobs, key: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: blobs.put(f"{key}/{n}", b"x", content_type="text/plain"), range(1_001)))
    assert blobs.delete_prefix(f"{key}/") == 1_001
    assert blobs.delete_prefix(f"{key}/") == 0


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
