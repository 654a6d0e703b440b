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
    from collections.abc import Iterable, Sequence

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

    def put_stream(self, key: str, body: BinaryIO, *, content_type: str) -> None:
        part = _read_part(body)
        if len(part) < limits.SNAPSHOT_PART_BYTES:
            self.put(key, part, content_type=content_type)
            return
        upload = Upload.begin(self._s3, self._bucket, key, content_type)
        try:
            while part:
                upload.add(part)
                part = _read_part(body)
            upload.complete()
        except BaseException:
            upload.abort()
            raise

    def get(self, key: str) -> bytes:
        return self._open(key).read()

    def get_file(self, key: str, file: BinaryIO) -> None:
        file.writelines(self._open(key).iter_chunks(_PIECE_BYTES))

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

    def delete(self, keys: Iterable[str]) -> None:
        for batch in itertools.batched(keys, _DELETED_AT_ONCE, strict=False):
            self._delete(batch)

    def delete_prefix(self, prefix: str) -> int:
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        found = (item["Key"] for page in pages for item in page.get("Contents", []))
        return sum(self._delete(batch) for batch in itertools.batched(found, _DELETED_AT_ONCE, strict=False))

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


def _read_part(body: BinaryIO) -> bytes:
    """A full one, unless it is the last: S3 takes no small ones in between."""
    part = bytearray()
    while len(part) < limits.SNAPSHOT_PART_BYTES and (piece := body.read(limits.SNAPSHOT_PART_BYTES - len(part))):
        part += piece
    return bytes(part)
