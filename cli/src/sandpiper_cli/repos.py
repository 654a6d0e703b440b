"""How a repository is named on the command line."""

from __future__ import annotations

from pathlib import Path

from sandpiper_cli import exits


def repo_to_send(repo: str, *, endpoint_is_local: bool) -> str:
    """A checkout on this machine goes out as an absolute path; owner/repo and URLs as they are."""
    if not _is_path(repo):
        return repo
    path = Path(repo).expanduser().resolve()
    if not endpoint_is_local:
        raise exits.CliError(
            f"{repo} is on this machine, where a remote Sandpiper can't reach it: give owner/repo or an https URL",
            exits.USAGE,
        )
    if not path.is_dir():
        raise exits.CliError(f"{repo} is not a directory", exits.USAGE)
    return str(path)


def _is_path(repo: str) -> bool:
    return repo.startswith((".", "/", "~")) or ("/" not in repo and Path(repo).is_dir())
