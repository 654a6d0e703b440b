"""Which ecosystems a repository uses, by the names of the files in its base commit. No I/O."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_MARKS = {
    "python": ("pyproject.toml", "setup.py", "setup.cfg", "requirements*.txt", "Pipfile", "uv.lock", "*.py"),
    "node": ("package.json", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock"),
    "rust": ("Cargo.toml", "Cargo.lock"),
    "go": ("go.mod", "go.sum"),
    "ruby": ("Gemfile", "Gemfile.lock", "*.gemspec"),
    "java": ("pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
    "php": ("composer.json", "composer.lock"),
    "dotnet": ("*.csproj", "*.fsproj", "*.sln", "nuget.config"),
    "elixir": ("mix.exs", "mix.lock"),
    "dart": ("pubspec.yaml",),
    "swift": ("Package.swift",),
}


def find_ecosystems(paths: Iterable[str]) -> set[str]:
    """`paths` are those of the base commit: what the work adds opens nothing."""
    names = {path.rpartition("/")[2] for path in paths}
    return {
        ecosystem
        for ecosystem, marks in _MARKS.items()
        if any(fnmatchcase(name, mark) for mark in marks for name in names)
    }
