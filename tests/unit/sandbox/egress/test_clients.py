from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandbox_task.isolation.egress import clients
from sandbox_task.isolation.egress.clients import learn_registries

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory and a PATH of its own; nothing of this machine's configuration."""
    (tmp_path / "bin").mkdir()
    for name in ("_PIP_FILES", "_NPM_FILES"):
        files = getattr(clients, name)
        monkeypatch.setattr(clients, name, tuple(path for path in files if "{home}" in path))
    return tmp_path


def learn(image: Path, ecosystem: str, **variables: str) -> list[str]:
    environ = {"HOME": str(image), "PATH": str(image / "bin"), **variables}
    return learn_registries([ecosystem], environ)[ecosystem]


def install(image: Path, name: str, prints: str) -> None:
    program = image / "bin" / name
    program.write_text(f"#!/bin/sh\necho '{prints}'\n", encoding="utf-8")
    program.chmod(0o755)


def test_variables_name_registries(image: Path) -> None:
    hosts = learn(image, "python", PIP_INDEX_URL="https://me:pw@a.example/simple", PIP_EXTRA_INDEX_URL="file:///x")
    assert hosts == ["a.example:443"]


def test_files_of_pip_and_npm_name_registries(image: Path) -> None:
    (image / ".pip").mkdir()
    (image / ".pip" / "pip.conf").write_text("[global]\nindex-url = https://b.example/simple\n", encoding="utf-8")
    (image / ".npmrc").write_text("fund=false\n@corp:registry=https://c.example:8443/\n", encoding="utf-8")
    assert learn(image, "python") == ["b.example:443"]
    assert learn(image, "node") == ["c.example:8443"]


def test_a_client_says_itself_what_it_uses_by_default(image: Path) -> None:
    install(image, "go", "https://proxy.example,direct")
    assert learn(image, "go") == ["proxy.example:443"]


def test_what_is_not_installed_or_broken_names_nothing(image: Path) -> None:
    (image / ".pip").mkdir()
    (image / ".pip" / "pip.conf").write_text("index-url without a section", encoding="utf-8")
    assert [learn(image, ecosystem) for ecosystem in ("python", "node", "cobol")] == [[], [], []]
