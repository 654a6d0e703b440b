"""`sam build`, and the bundle of what is deployed, only when a source changed."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from typing import TYPE_CHECKING

from sandpiper_local import paths
from sandpiper_local.errors import BuildFailed, ToolMissing
from sandpiper_local.template.bundle import is_usable, make_bundle

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from sandpiper_local.parts import Parts
    from sandpiper_local.paths import StateDir

_SOURCES = ("template.yaml", "functions", "layers", "statemachine")
_MAKERS = ("local/src/sandpiper_local/template", "local/src/sandpiper_local/ministack_launcher.py", "uv.lock")
_NOT_SOURCES = {"__pycache__", ".mypy_cache", ".ruff_cache"}
_SECRETS = ("ANTHROPIC_", "AWS_", "GITHUB_", "SANDBOX_JWT_SECRET")


def check_tools() -> None:
    for tool in (paths.SAM, paths.MINISTACK_PYTHON):
        if not tool.exists():
            raise ToolMissing(f"{tool} is missing; `make setup` in {paths.REPOSITORY} installs it")


@contextlib.contextmanager
def up_to_date_bundle(parts: Parts, state: StateDir, environment: Mapping[str, str], *, region: str) -> Iterator[Path]:
    """What is deployed, which no other stack of this checkout replaces while it is in use."""
    paths.BUILD.mkdir(exist_ok=True)
    with (paths.BUILD / "build.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        built = _build_if_changed(parts, state, environment)
        yield _bundle_if_changed(built, region)


def _build_if_changed(parts: Parts, state: StateDir, environment: Mapping[str, str]) -> Path:
    template = paths.BUILD / "build" / "template.yaml"
    with _stamped("build", _SOURCES) as is_fresh:
        if not (is_fresh and template.exists()):
            _build(parts, state, environment)
    return template


def _bundle_if_changed(built: Path, region: str) -> Path:
    directory = paths.BUILD / "bundle"
    with _stamped("bundle", _SOURCES + _MAKERS) as is_fresh:
        if not (is_fresh and is_usable(directory, paths.LAYERS)):
            make_bundle(built, directory, region=region, layers=paths.LAYERS)
    return directory


@contextlib.contextmanager
def _stamped(name: str, sources: tuple[str, ...]) -> Iterator[bool]:
    """Tells whether `name` was made of these sources as they are. If the block succeeds, it is now."""
    stamp = paths.BUILD / f"{name}.sha256"
    digest = source_digest(paths.REPOSITORY, sources)
    is_fresh = stamp.exists() and stamp.read_text() == digest
    if not is_fresh:
        stamp.unlink(missing_ok=True)
    yield is_fresh
    stamp.write_text(digest)


def _build(parts: Parts, state: StateDir, environment: Mapping[str, str]) -> None:
    command: list[str | Path] = [
        paths.SAM, "build",
        "--template-file", paths.REPOSITORY / "template.yaml",
        "--base-dir", paths.REPOSITORY,
        "--build-dir", paths.BUILD / "build",
        "--cached", "--cache-dir", paths.BUILD / "cache",
    ]  # fmt: skip
    if parts.run("sam-build", command, _build_environment(environment)) != 0:
        raise BuildFailed(state.log("sam-build"))


def _build_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """A build needs the operator's settings (package index, certificates), but none of the secrets."""
    kept = {name: value for name, value in environment.items() if not name.startswith(_SECRETS)}
    # `sam build` looks for python3.13 by name; ours comes first
    path = os.pathsep.join((str(paths.SAM.parent), kept.get("PATH", os.defpath)))
    return kept | {"SAM_CLI_TELEMETRY": "0", "PATH": path, "AWS_DEFAULT_REGION": "us-east-1"}


def source_digest(repository: Path, sources: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for file in sorted(_files(repository, sources)):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{file.relative_to(repository)}\0{content}\n".encode())
    return digest.hexdigest()


def _files(repository: Path, sources: tuple[str, ...]) -> Iterator[Path]:
    for source in sources:
        path = repository / source
        found = path.rglob("*") if path.is_dir() else iter((path,))
        yield from (file for file in found if file.is_file() and not _NOT_SOURCES & set(file.parts))
