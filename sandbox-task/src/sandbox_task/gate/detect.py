"""The tests that a repository declares, each known by its own marker. One command per ecosystem, best known first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from sandbox_task.gate import detect_node, detect_python
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox_task.workspace.repository import Repository

_MAKE_TARGET = re.compile(r"^(test|check)\s*:(?![:=])", re.MULTILINE)
_COMPOSER_TEST = re.compile(r'"scripts"\s*:\s*\{[^}]*"test"\s*:')
_RAKE_TEST = re.compile(r"Rake::TestTask|^\s*task\s+:?[\"']?test\b", re.MULTILINE)
_DOTNET_TESTS = re.compile(r"Microsoft\.NET\.Test\.Sdk")


@dataclass(frozen=True)
class Files:
    """The files of one tree, read only when a marker asks for them."""

    repository: Repository
    tree: str
    paths: frozenset[str]

    def has(self, *names: str) -> bool:
        return any(name in self.paths for name in names)

    def first(self, *names: str) -> str | None:
        return next((name for name in names if name in self.paths), None)

    def text(self, name: str) -> str:
        data = self.repository.show(self.tree, name) if name in self.paths else None
        return (data or b"").decode(errors="replace")

    def named(self, pattern: str) -> list[str]:
        return sorted(path for path in self.paths if re.fullmatch(pattern, path))


def detect(repository: Repository, tree: str) -> list[str]:
    """Commands. `make` is asked only when nothing better is known: it would run the same tests once more."""
    files = Files(repository, tree, frozenset(repository.paths(tree)))
    found = [command for find in _ECOSYSTEMS if (command := find(files))]
    return found or [command for command in [_make(files)] if command]


def _cargo(files: Files) -> str | None:
    return "cargo test" if files.has("Cargo.toml") else None


def _go(files: Files) -> str | None:
    return "go test ./..." if files.has("go.mod") else None


def _maven(files: Files) -> str | None:
    if not files.has("pom.xml"):
        return None
    return "./mvnw -B test" if files.has("mvnw") else "mvn -B test"


def _gradle(files: Files) -> str | None:
    if not files.has("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"):
        return None
    return "./gradlew test" if files.has("gradlew") else "gradle test"


def _php(files: Files) -> str | None:
    if _COMPOSER_TEST.search(files.text("composer.json")):
        return "composer test"
    return "vendor/bin/phpunit" if files.has("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml") else None


def _ruby(files: Files) -> str | None:
    prefix = "bundle exec " if files.has("Gemfile") else ""
    if files.has(".rspec") or files.named(r"spec/.*_spec\.rb"):
        return f"{prefix}rspec"
    return f"{prefix}rake test" if _RAKE_TEST.search(files.text("Rakefile")) else None


def _dotnet(files: Files) -> str | None:
    projects = files.named(r".*\.(cs|fs|vb)proj")
    return (
        "dotnet test"
        if any(_DOTNET_TESTS.search(files.text(path)) for path in projects[: limits.DETECT_FILES])
        else None
    )


def _elixir(files: Files) -> str | None:
    return "mix test" if files.has("mix.exs") and files.named(r"(apps/[^/]+/)?test/.*_test\.exs") else None


def _make(files: Files) -> str | None:
    makefile = files.first("GNUmakefile", "makefile", "Makefile")  # the order in which make itself looks
    targets = set(_MAKE_TARGET.findall(files.text(makefile))) if makefile else set()
    return next((f"make {target}" for target in ("test", "check") if target in targets), None)


def _python(files: Files) -> str | None:
    tests = [path for path in files.paths if detect_python.is_test(PurePosixPath(path))]
    return detect_python.command(files, sorted(tests))


_ECOSYSTEMS: tuple[Callable[[Files], str | None], ...] = (
    _python, detect_node.command, _cargo, _go, _maven, _gradle, _php, _ruby, _dotnet, _elixir,
)  # fmt: skip
