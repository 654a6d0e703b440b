"""Blobs and secrets of runs, in memory."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import quote

from sandpiper import limits
from sandpiper.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class FakeBlobs:
    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self.content_types: dict[str, str] = {}

    def put(self, key: str, body: bytes, *, content_type: str) -> None:
        self.bodies[key] = body
        self.content_types[key] = content_type

    def put_file(self, key: str, body: BinaryIO, *, content_type: str) -> None:
        self.put(key, body.read(), content_type=content_type)

    def get(self, key: str) -> bytes:
        if key not in self.bodies:
            raise NotFound(f"There is no {key}.")
        return self.bodies[key]

    def get_file(self, key: str, file: BinaryIO) -> None:
        file.write(self.get(key))

    def put_stream(self, key: str, pieces: Iterable[bytes], *, content_type: str) -> int:
        self.put(key, b"".join(pieces), content_type=content_type)
        return len(self.bodies[key])

    def keys(self, prefix: str, *, after: str = "", limit: int) -> list[str]:
        found = (key for key in sorted(self.bodies) if key.startswith(prefix) and key > after)
        return list(islice(found, limit))

    def presign(self, key: str, *, filename: str, seconds: int) -> str:
        return f"https://blobs.test/{quote(key)}?filename={quote(filename)}&expires={seconds}"

    def folders(self, prefix: str) -> list[str]:
        deeper = (key.removeprefix(prefix) for key in self.bodies if key.startswith(prefix))
        return sorted({rest.partition("/")[0] for rest in deeper if "/" in rest})

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.bodies.pop(key, None)
            self.content_types.pop(key, None)

    def delete_prefix(self, prefix: str) -> int:
        found = [key for key in self.bodies if key.startswith(prefix)]
        for key in found:
            del self.bodies[key], self.content_types[key]
        return len(found)


class FakeRunSecrets:
    def __init__(self) -> None:
        self.stored: dict[str, dict[str, str]] = {}

    def put(self, run_id: str, secrets: Mapping[str, str]) -> None:
        size = len(json.dumps(dict(secrets)).encode())
        if size > limits.MAX_RUN_SECRETS_BYTES:
            message = f"{size} bytes of secrets; KMS encrypts {limits.MAX_RUN_SECRETS_BYTES}"
            raise ValueError(message)
        self.stored[run_id] = dict(secrets)

    def get(self, run_id: str) -> dict[str, str]:
        return dict(self.stored.get(run_id, {}))

    def delete(self, run_id: str) -> None:
        self.stored.pop(run_id, None)
