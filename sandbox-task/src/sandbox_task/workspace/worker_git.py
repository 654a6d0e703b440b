"""B's own `.git`: an ordinary repository with the history that A has, without remote, token or hooks."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from sandpiper import limits

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox_task.workspace.git import Git
    from sandbox_task.workspace.narrowing import Narrowing

# Nothing is collected: contents that never came would make git fail.
_CONFIG = """[core]
\trepositoryformatversion = 0
\tbare = false
\tautocrlf = false
\tbigFileThreshold = {big}
\tsparseCheckout = {sparse}
[gc]
\tauto = 0
[maintenance]
\tauto = false
[user]
\tname = Sandpiper
\temail = sandpiper@sandbox.invalid
"""


def write_worker_git(
    git: Git, target: Path, *, branch: str, commit: str | None, narrowing: Narrowing, remote: str = ""
) -> None:
    """`remote` are lines of configuration: where B's git may read from."""
    kept_back = shutil.ignore_patterns("config", "hooks", "index", "sandpiper", "scratch*")
    shutil.copytree(git.git_dir, target, ignore=kept_back)
    sparse = "true" if narrowing else "false"
    if narrowing:
        patterns = narrowing.patterns().encode(errors="surrogateescape")
        (target / "info" / "sparse-checkout").write_bytes(patterns)
    config = _CONFIG.format(big=limits.BIG_FILE_BYTES, sparse=sparse)
    (target / "config").write_text(config + remote, encoding="utf-8")
    (target / "HEAD").write_text(f"ref: refs/heads/{branch}\n", encoding="utf-8")
    if commit:
        ref = target / "refs" / "heads" / branch
        ref.parent.mkdir(parents=True, exist_ok=True)
        ref.write_text(f"{commit}\n", encoding="utf-8")
