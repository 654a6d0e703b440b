"""How a repository is named on the command line."""

from __future__ import annotations

from pathlib import Path

from sandpiper_cli import exits


def repo_to_send(repo: str, *, endpoint_is_local: bool) -> str:
    """A checkout on this machine goes out as an absolute path; owner/repo and URLs as they are."""
    if not _is_path(repo) and not (endpoint_is_local and _is_checkout(repo)):
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


def _is_checkout(repo: str) -> bool:
    """`work/project` may be a path as well as owner/repo: the one that is in front of us is meant."""
    return "://" not in repo and (Path(repo) / ".git").exists()
