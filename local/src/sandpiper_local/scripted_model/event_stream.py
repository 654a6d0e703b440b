"""AWS's binary event stream: length, headers and payload, each with a checksum."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Mapping

_STRING = 7


def event(kind: str, data: Mapping[str, Any]) -> bytes:
    return _frame({":event-type": kind, ":content-type": "application/json", ":message-type": "event"}, data)


def exception(kind: str, message: str) -> bytes:
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return _frame(headers, {"message": message})


def _frame(headers: Mapping[str, str], data: Mapping[str, Any]) -> bytes:
    head = b"".join(_header(name.encode(), value.encode()) for name, value in headers.items())
    payload = json.dumps(data).encode()
    prelude = struct.pack(">II", 12 + len(head) + len(payload) + 4, len(head))
    checked = prelude + struct.pack(">I", crc32(prelude)) + head + payload
    return checked + struct.pack(">I", crc32(checked))


def _header(name: bytes, value: bytes) -> bytes:
    return struct.pack(">B", len(name)) + name + struct.pack(">BH", _STRING, len(value)) + value
