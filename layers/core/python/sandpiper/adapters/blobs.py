"""Everything large, in S3."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from botocore.exceptions import ClientError

from sandpiper.adapters.aws import error_code
from sandpiper.errors import NotFound

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class S3Blobs:
    def __init__(self, s3: S3Client, *, bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def put(self, key: str, body: bytes, *, content_type: str) -> None:
        self._s3.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType=content_type)

    def put_file(self, key: str, body: BinaryIO, *, content_type: str) -> None:
        self._s3.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType=content_type)

    def get(self, key: str) -> bytes:
        try:
            return self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        except ClientError as error:
            if error_code(error) == "NoSuchKey":
                raise NotFound(f"There is no {key}.") from error
            raise

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
