"""Traps that B can lay for A's git, in the repository that it was given.

{trap} is an executable that leaves {fired} behind; {root} is the workspace as A sees it; {secret_dir} is A's alone.
`naive` is what a supervisor would do that runs git where B has been: there each trap has to work.
"""

from __future__ import annotations

from dataclasses import dataclass

_COMMIT = "git add --all && git commit --quiet --message=x"


@dataclass(frozen=True)
class Trap:
    name: str
    plant: str
    naive: str = _COMMIT
    refused: bool = False  # the run has to end with a sentence, instead of going on unimpressed


def _config(*settings: str) -> str:
    return " && ".join(f"git config {setting}" for setting in settings)


TRAPS = [
    Trap("a hook before the commit", "mkdir -p .git/hooks && cp trap.sh .git/hooks/pre-commit"),
    Trap("a hook on the index", "mkdir -p .git/hooks && cp trap.sh .git/hooks/post-index-change"),
    Trap(
        "a hook before the push",
        "mkdir -p .git/hooks && cp trap.sh .git/hooks/pre-push",
        f"{_COMMIT}; git push --quiet {{remote}} HEAD:refs/heads/naive",
    ),
    Trap("another place for hooks", f"mkdir h && cp trap.sh h/pre-commit && {_config('core.hooksPath {root}/h')}"),
    Trap("a monitor of files", _config("core.fsmonitor {trap}"), "git status"),
    Trap("a filter that cleans", f"echo '* filter=x' > .gitattributes && {_config('filter.x.clean {trap}')}"),
    Trap("a filter process", f"echo '* filter=x' > .gitattributes && {_config('filter.x.process {trap}')}"),
    Trap(
        "a filter by hidden attributes",
        f"mkdir -p .git/info && echo '* filter=x' > .git/info/attributes && {_config('filter.x.clean {trap}')}",
    ),
    Trap(
        "a merge driver",
        f"echo '* merge=x' > .gitattributes && {_config('merge.x.driver {trap}')}",
        "echo trap.sh > .git/info/exclude && echo 1 > a.txt && git add -A && git commit -qm 1 && "
        "git checkout -q -b s HEAD~1 && echo 2 > a.txt && "
        "echo '* merge=x' > .gitattributes && git add -A && git commit -qm 2 && git merge -q main",
    ),
    Trap(
        "a diff program",
        f"echo '* diff=x' > .gitattributes && echo 2 > a.txt && {_config('diff.x.command {trap}')}",
        "git diff",
    ),
    Trap("a diff program for all", f"echo 2 > a.txt && {_config('diff.external {trap}')}", "git diff"),
    Trap(
        "a converter for diffs",
        f"echo '* diff=x' > .gitattributes && echo 2 > a.txt && {_config('diff.x.textconv {trap}')}",
        "git diff",
    ),
    Trap("an ssh program", _config("core.sshCommand {trap}", "remote.origin.url ssh://x.invalid/y"), "git fetch"),
    Trap(
        "another place for a URL",
        _config("'url.ext::{trap} .insteadOf' http", "protocol.ext.allow always"),
        "git fetch http://127.0.0.1:9/x",
    ),
    Trap("a helper for passwords", _config("credential.helper '!{trap}'"), "git fetch {http}"),
    Trap("a program that asks", _config("core.askPass {trap}"), "git fetch {http}"),
    Trap("a program that signs", _config("commit.gpgSign true", "gpg.program {trap}")),
    Trap("a proxy", _config("http.proxy {proxy}"), "git -c http.lowSpeedLimit=1 fetch http://nowhere.invalid/x"),
    Trap(
        "an included file",
        f"printf '[core]\\nfsmonitor = {{trap}}\\n' > inc && {_config('include.path {root}/inc')}",
        "git status",
    ),
    Trap(
        "a file that is included by condition",
        f"printf '[core]\\nfsmonitor = {{trap}}\\n' > inc && {_config('includeIf.gitdir:/.path {root}/inc')}",
        "git status",
    ),
    Trap(
        "a git directory elsewhere",
        f"{_config('core.fsmonitor {trap}')} && mv .git moved && echo 'gitdir: {{root}}/moved' > .git",
        "git status",
    ),
    Trap(
        "a work tree of its own",
        _config("extensions.worktreeConfig true", "--worktree core.fsmonitor {trap}"),
        "git status",
    ),
    Trap("a work tree elsewhere", _config("core.worktree {secret_dir}"), f"{_COMMIT}; git show HEAD"),
    Trap(
        "objects of somebody else",
        "mkdir -p .git/objects/info && echo {vault}/objects > .git/objects/info/alternates && "
        "printf '100644 {blob}\\tleak\\n' > entry; git update-index --index-info < entry; rm entry",
        "git commit --quiet --message=x; git show HEAD",
    ),
    Trap(
        "a submodule",
        "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub && mkdir sub && "
        f"printf '[submodule \"sub\"]\\npath=sub\\nurl=./sub\\n' > .gitmodules && "
        f"{_config('submodule.sub.url {root}', 'submodule.sub.update !{trap}')}",
        f"{_COMMIT}; git -c protocol.file.allow=always submodule update",
    ),
    Trap(
        "an embedded repository",
        "git init -q deep && cd deep && git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x && "
        "git config core.fsmonitor {trap} && touch file",
        "git add --all; git status",
        refused=True,
    ),
    Trap("a link to a file of A's", "ln -s {secret_dir}/secret leak", "git hash-object -w leak | git cat-file --batch"),
    Trap("a link to a directory of A's", "rm -rf dir && ln -s {secret_dir} dir", "cat dir/*"),
]
