"""All that is deployed, in one directory: the adapted template, and what it names.

A bundle is kept as the build is: SAM's translator takes longer to load than all else takes that `up` does itself.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from sandpiper_local.template.layers import keep_layer
from sandpiper_local.template.packaging import LAYERS_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUCKET = "sandpiper-packages"
TEMPLATE = "template.json"


def make_bundle(built: Path, directory: Path, *, region: str, layers: Path) -> None:
    from sandpiper_local.template.adapter import adapt  # noqa: PLC0415 - a bundle that is there needs no translator

    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()

    def keep(key: str, content: bytes) -> str:
        (directory / key).parent.mkdir(exist_ok=True)
        (directory / key).write_bytes(content)
        return f"s3://{BUCKET}/{key}"

    template = adapt(built, region=region, layers=layers, upload=keep)
    (directory / TEMPLATE).write_text(json.dumps(template))


def objects(directory: Path) -> Iterator[tuple[str, bytes]]:
    """Everything in it, by the key under which the template names it."""
    for file in sorted(path for path in directory.rglob("*") if path.is_file()):
        yield str(file.relative_to(directory)), file.read_bytes()


def is_usable(directory: Path, layers: Path) -> bool:
    """Whether it is whole, and what its layers point to is still there."""
    if not (directory / TEMPLATE).exists():
        return False
    return all(keep_layer(pointer.read_bytes(), layers) for pointer in (directory / LAYERS_FOLDER).iterdir())
