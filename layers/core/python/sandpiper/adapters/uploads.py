"""One large object in parts, several of which are on their way at once."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

_AT_ONCE = 3


@dataclass
class Upload:
    """Nothing is there until it is completed."""

    s3: S3Client
    bucket: str
    key: str
    upload_id: str
    _parts: list[CompletedPartTypeDef] = field(default_factory=list, init=False)
    _sending: deque[Future[CompletedPartTypeDef]] = field(default_factory=deque, init=False)
    _pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="upload"), init=False
    )

    @classmethod
    def begin(cls, s3: S3Client, bucket: str, key: str, content_type: str) -> Upload:
        answer = s3.create_multipart_upload(Bucket=bucket, Key=key, ContentType=content_type)
        return cls(s3, bucket, key, answer["UploadId"])

    def add(self, data: bytes) -> None:
        """Waits while enough are on their way."""
        if len(self._sending) >= _AT_ONCE:
            self._parts.append(self._sending.popleft().result())
        number = len(self._parts) + len(self._sending) + 1
        self._sending.append(self._pool.submit(self._send, number, data))

    def complete(self) -> None:
        self._parts += [part.result() for part in self._sending]
        self._pool.shutdown()
        self.s3.complete_multipart_upload(
            Bucket=self.bucket, Key=self.key, UploadId=self.upload_id, MultipartUpload={"Parts": self._parts}
        )

    def abort(self) -> None:
        self._pool.shutdown(cancel_futures=True)  # a part that arrives after the end would stay
        self.s3.abort_multipart_upload(Bucket=self.bucket, Key=self.key, UploadId=self.upload_id)

    def _send(self, number: int, data: bytes) -> CompletedPartTypeDef:
        answer = self.s3.upload_part(
            Bucket=self.bucket, Key=self.key, UploadId=self.upload_id, PartNumber=number, Body=data
        )
        return {"ETag": answer["ETag"], "PartNumber": number}
