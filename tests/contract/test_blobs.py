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
    from collections.abc import Iterator

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


@pytest.mark.parametrize("sizes", [[], [5, 7], [limits.UPLOAD_PART_BYTES], [3, limits.UPLOAD_PART_BYTES, 5, 9]])
def test_a_stream_is_stored_whole_however_long_it_is(blobs: Blobs, key: str, sizes: list[int]) -> None:
    pieces = [bytes([65 + number]) * size for number, size in enumerate(sizes)]
    assert blobs.put_stream(key, pieces, content_type="text/plain") == sum(sizes)
    assert blobs.get(key) == b"".join(pieces)


def test_a_stream_that_breaks_off_leaves_nothing(blobs: Blobs, key: str) -> None:
    def breaks() -> Iterator[bytes]:
        yield b"x" * limits.UPLOAD_PART_BYTES
        yield b"y" * limits.UPLOAD_PART_BYTES
        raise ConnectionError("cut")

    with pytest.raises(ConnectionError):
        blobs.put_stream(key, breaks(), content_type="text/plain")
    with pytest.raises(NotFound):
        blobs.get(key)


def test_keys_are_listed_in_order_page_by_page(blobs: Blobs, key: str) -> None:
    names = [f"{key}/{name}" for name in ("1", "10", "2", "3 é")]
    for name in (*reversed(names), f"{key}x", key):
        blobs.put(name, b"x", content_type="text/plain")
    assert blobs.keys(f"{key}/", limit=10) == names
    assert blobs.keys(f"{key}/", after=names[0], limit=2) == names[1:3]
    assert blobs.keys(f"{key}/", after=names[-1], limit=2) == []


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


def test_folders_are_listed_once_each_and_nothing_deeper(blobs: Blobs, key: str) -> None:
    for name in ("a/1", "a/2", "b/c/d", "file"):
        blobs.put(f"{key}/{name}", b"x", content_type="text/plain")
    assert sorted(blobs.folders(f"{key}/")) == ["a", "b"]
    assert list(blobs.folders(f"{key}/none/")) == []


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
