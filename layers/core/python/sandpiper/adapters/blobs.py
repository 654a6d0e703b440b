"""Everything large, in S3."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, BinaryIO

from botocore.exceptions import ClientError

from sandpiper import limits
from sandpiper.adapters.aws import error_code
from sandpiper.adapters.uploads import Upload
from sandpiper.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from botocore.response import StreamingBody
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef

_DELETED_AT_ONCE = 1_000  # S3 takes no more in one request
_PIECE_BYTES = 1 << 20


class S3Blobs:
    def __init__(self, s3: S3Client, *, bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def put(self, key: str, body: bytes, *, content_type: str) -> None:
        self._s3.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType=content_type)

    def put_file(self, key: str, body: BinaryIO, *, content_type: str) -> None:
        self._s3.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType=content_type)

    def get(self, key: str) -> bytes:
        return self._open(key).read()

    def get_file(self, key: str, file: BinaryIO) -> None:
        file.writelines(self._open(key).iter_chunks(_PIECE_BYTES))

    def put_stream(self, key: str, pieces: Iterable[bytes], *, content_type: str) -> int:
        blocks = _blocks(pieces)
        first, second = next(blocks, b""), next(blocks, None)
        if second is not None:
            return self._upload(key, itertools.chain((first, second), blocks), content_type)
        self.put(key, first, content_type=content_type)
        return len(first)

    def keys(self, prefix: str, *, after: str = "", limit: int) -> list[str]:
        answer = self._s3.list_objects_v2(Bucket=self._bucket, Prefix=prefix, StartAfter=after, MaxKeys=limit)
        return [item["Key"] for item in answer.get("Contents", [])]

    def presign(self, key: str, *, filename: str, seconds: int) -> str:
        return self._s3.generate_presigned_url(
            "get_object",
            Params={
                "Bucket": self._bucket,
                "Key": key,
                "ResponseContentDisposition": f'inline; filename="{filename}"',
            },
            ExpiresIn=seconds,
        )

    def folders(self, prefix: str) -> Iterator[str]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix, Delimiter="/")
        found = (folder["Prefix"] for page in pages for folder in page.get("CommonPrefixes", []))
        return (name.removeprefix(prefix).removesuffix("/") for name in found)

    def delete(self, keys: Iterable[str]) -> None:
        for batch in itertools.batched(keys, _DELETED_AT_ONCE, strict=False):
            self._delete(batch)

    def delete_prefix(self, prefix: str) -> int:
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        found = (item["Key"] for page in pages for item in page.get("Contents", []))
        return sum(self._delete(batch) for batch in itertools.batched(found, _DELETED_AT_ONCE, strict=False))

    def _upload(self, key: str, blocks: Iterable[bytes], content_type: str) -> int:
        upload = Upload.begin(self._s3, self._bucket, key, content_type)
        size = 0
        try:
            for block in blocks:
                upload.add(block)
                size += len(block)
            upload.complete()
        except BaseException:
            upload.abort()
            raise
        return size

    def _delete(self, keys: Sequence[str]) -> int:
        named: list[ObjectIdentifierTypeDef] = [{"Key": key} for key in keys]
        answer = self._s3.delete_objects(Bucket=self._bucket, Delete={"Objects": named, "Quiet": True})
        if refused := answer.get("Errors"):
            # S3 says so inside a good answer.
            message = f"{len(refused)} objects could not be deleted, {refused[0].get('Key')}: {refused[0].get('Code')}"
            raise Unavailable(message)
        return len(keys)

    def _open(self, key: str) -> StreamingBody:
        try:
            return self._s3.get_object(Bucket=self._bucket, Key=key)["Body"]
        except ClientError as error:
            if error_code(error) == "NoSuchKey":
                raise NotFound(f"There is no {key}.") from error
            raise


def _blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in blocks as large as a multipart upload wants them; only the last is smaller."""
    gathered = bytearray()
    for piece in pieces:
        gathered += piece
        if len(gathered) >= limits.UPLOAD_PART_BYTES:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)
