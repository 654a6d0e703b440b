"""Which registries the package managers of this image use, as they are configured themselves.

Asked before anything of the repository is there, from `/`, so that nothing of it can answer.
"""

from __future__ import annotations

import configparser
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox_task.isolation.egress.policy import hosts_of
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_VARIABLES = {
    "python": ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL"),
    "node": ("npm_config_registry", "NPM_CONFIG_REGISTRY", "YARN_NPM_REGISTRY_SERVER", "YARN_REGISTRY"),
    "go": ("GOPROXY",),
    "rust": ("CARGO_REGISTRIES_CRATES_IO_INDEX",),
    "ruby": ("BUNDLE_MIRROR__ALL",),
}
_PIP_FILES = ("/etc/pip.conf", "{home}/.pip/pip.conf", "{home}/.config/pip/pip.conf")
_NPM_FILES = ("/etc/npmrc", "/usr/etc/npmrc", "{home}/.npmrc")
_NPM_REGISTRY = re.compile(r"^\s*(?:@[\w.-]+:)?registry\s*=\s*(\S+)", re.MULTILINE)
# What a client does by itself, asked of the client: it prints URLs.
_PIP_DEFAULT = "from pip._internal.models.index import PyPI as p; print(p.url, 'https://' + p.file_storage_domain)"
_DEFAULTS = {
    "python": ("python3", "-c", _PIP_DEFAULT),
    "node": ("npm", "config", "get", "registry"),
    "go": ("go", "env", "GOPROXY", "GOSUMDB"),
    "ruby": ("gem", "env", "remotesources"),
}
_URL = re.compile(r"https://[^\s,|'\"]+")


def learn_registries(ecosystems: Iterable[str], environ: Mapping[str, str]) -> dict[str, list[str]]:
    """The hosts for each of the ecosystems, as patterns that a policy takes."""
    home = environ.get("HOME", "/")
    return {ecosystem: _hosts(ecosystem, environ, home) for ecosystem in ecosystems}


def _hosts(ecosystem: str, environ: Mapping[str, str], home: str) -> list[str]:
    settings = [environ.get(name, "") for name in _VARIABLES.get(ecosystem, ())]
    if ecosystem == "python":
        settings += [value for path in _PIP_FILES for value in _pip_settings(Path(path.format(home=home)))]
    if ecosystem == "node":
        settings += [value for path in _NPM_FILES for value in _npm_settings(Path(path.format(home=home)))]
    settings.append(_default(ecosystem, environ))
    return sorted(set(hosts_of(_URL.findall(" ".join(settings)))))


def _pip_settings(path: Path) -> list[str]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(_text(path))
    except configparser.Error:
        return []  # pip itself would not take it either
    names = ("index-url", "extra-index-url")
    return [parser.get(section, name, fallback="") for section in parser.sections() for name in names]


def _npm_settings(path: Path) -> list[str]:
    return _NPM_REGISTRY.findall(_text(path))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _default(ecosystem: str, environ: Mapping[str, str]) -> str:
    command = _DEFAULTS.get(ecosystem)
    if command is None:
        return ""
    env = {"PATH": environ.get("PATH", ""), "HOME": environ.get("HOME", "/")}
    try:
        done = subprocess.run(
            command, env=env, cwd="/", capture_output=True, text=True, check=False, timeout=limits.KILL_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""  # not installed, so nothing of it is needed
    return done.stdout
