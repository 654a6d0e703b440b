"""What `sam package` does, without its round trip: what was built goes straight to the embedded S3."""

from __future__ import annotations

import hashlib
import io
import zipfile
from typing import TYPE_CHECKING, Any

from sandpiper_local.errors import DeployFailed
from sandpiper_local.template.layers import shared_layer
from sandpiper_local.template.state_machine import with_fixed_timeouts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    type Upload = Callable[[str, bytes], str]

_LOCATION = {
    "AWS::Serverless::Function": "CodeUri",
    "AWS::Serverless::LayerVersion": "ContentUri",
    "AWS::Serverless::StateMachine": "DefinitionUri",
}
LAYERS_FOLDER = "layers"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def package(template: dict[str, Any], base: Path, *, layers: Path, upload: Upload) -> None:
    """Replace every local path of the built template by where `upload(key, content)` says it went."""
    for resource in template["Resources"].values():
        name = _LOCATION.get(resource["Type"])
        if name is None or resource["Properties"][name].startswith("s3://"):  # a YAML alias of one that is done
            continue
        content = _content(resource["Type"], (base / resource["Properties"][name]).resolve(), layers)
        folder = LAYERS_FOLDER if resource["Type"] == "AWS::Serverless::LayerVersion" else "code"
        key = f"{folder}/{hashlib.sha256(content).hexdigest()}"
        resource["Properties"][name] = upload(key, content)


def _content(resource_type: str, path: Path, layers: Path) -> bytes:
    if not path.exists():
        raise DeployFailed(f"the built template names {path}, which does not exist")
    if resource_type == "AWS::Serverless::LayerVersion":
        return shared_layer(path, layers)
    if resource_type == "AWS::Serverless::StateMachine":
        return with_fixed_timeouts(path.read_bytes())
    return zipped(path)


def zipped(directory: Path) -> bytes:
    """The same bytes for the same files. Stored, not deflated: it only travels through loopback."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for file in sorted(_files(directory)):
            entry = zipfile.ZipInfo(str(file.relative_to(directory)), _EPOCH)
            entry.external_attr = (file.stat().st_mode & 0o777) << 16
            archive.writestr(entry, file.read_bytes())
    return buffer.getvalue()


def _files(directory: Path) -> Iterator[Path]:
    return (path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
