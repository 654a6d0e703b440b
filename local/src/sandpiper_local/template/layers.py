"""Built layers as shared directories, named by their content. See `ministack_launcher`."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tempfile
import time
import zipfile
from pathlib import Path

from sandpiper_local.ministack_launcher import POINTER

_UNUSED_SECONDS = 7 * 24 * 60 * 60


def shared_layer(built: Path, layers: Path) -> bytes:
    """Keep a copy of the built layer, which the next build would replace; returns the zip that points to it.

    The caller holds the lock of the build, so no other stack is at work here.
    """
    layers.mkdir(parents=True, exist_ok=True)
    _forget_unused(layers)
    name = content_digest(built)
    if not (layers / name).exists():
        partial = Path(tempfile.mkdtemp(dir=layers))
        shutil.copytree(built, partial, dirs_exist_ok=True)
        partial.rename(layers / name)
    os.utime(layers / name)
    pointer = io.BytesIO()
    with zipfile.ZipFile(pointer, "w") as archive:
        archive.writestr(zipfile.ZipInfo(POINTER), name)
    return pointer.getvalue()


def keep_layer(pointer: bytes, layers: Path) -> bool:
    """As if it were new. False if it is there no more."""
    with zipfile.ZipFile(io.BytesIO(pointer)) as archive:
        layer = layers / archive.read(POINTER).decode()
    if layer.exists():
        os.utime(layer)
    return layer.exists()


def content_digest(directory: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(path for path in directory.rglob("*") if path.is_file()):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{file.relative_to(directory)}\0{content}\n".encode())
    return digest.hexdigest()


def _forget_unused(layers: Path) -> None:
    for entry in layers.iterdir():
        if entry.stat().st_mtime < time.time() - _UNUSED_SECONDS:
            shutil.rmtree(entry, ignore_errors=True)
