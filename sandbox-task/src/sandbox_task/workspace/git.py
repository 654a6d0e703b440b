"""Git as A runs it: with its own git directory, outside the tree that B writes, and deaf to every setting in there.

Each setting here answers an attack that worked without it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast, runtime_checkable
from urllib.parse import urlsplit

from sandbox_task.stopping import Stop
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

_CONFIG = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "credential.helper=",
    "protocol.allow=never",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "diff.external=",
    "diff.ignoreSubmodules=all",
    "http.proxy=",
    "http.followRedirects=false",
    "gc.auto=0",
    "commit.gpgSign=false",
    "transfer.fsckObjects=true",
    "advice.detachedHead=false",
    "core.quotePath=false",
    "core.autocrlf=false",
    f"core.bigFileThreshold={limits.BIG_FILE_BYTES}",
    "fetch.unpackLimit=1",  # always one pack, never loose files: quick to copy, and its size can be bounded
)
# For a command that would otherwise ask the remote for what is missing.
OFFLINE = {"GIT_ALLOW_PROTOCOL": "none"}
_REACHING_OUT = frozenset({"fetch", "ls-remote", "push"})
REFUSED = (
    "authentication failed",
    "could not read username",
    "could not read password",
    "error: 401",
    "error: 403",
)
MOVED = ("error: 301", "error: 302", "error: 307", "error: 308")  # not followed: the token goes where it was meant to


@runtime_checkable
class Minted(Protocol):
    """Has a token that is good when it is needed: those of an installation live for an hour."""

    def __call__(self) -> str | None: ...

    def is_new(self) -> bool:
        """Whether it may not be known everywhere yet."""


# The one there is, or who has one.
type Token = str | Callable[[], str | None] | Minted | None
# Who knows the URL of a repository that answers from elsewhere; None if nobody does.
type MovedTo = Callable[[], str | None] | None
type OnStart = Callable[[subprocess.Popen[bytes]], AbstractContextManager[None]]


def current(token: Token) -> str | None:
    return token() if callable(token) else token


class GitError(Exception):
    def __init__(self, action: str, complaint: str) -> None:
        super().__init__(f"git {action}: {complaint}")
        self.complaint = complaint


class Git:
    """`stop` breaks off what is read from elsewhere, and nothing else."""

    def __init__(
        self,
        git_dir: Path,
        work_tree: Path,
        *,
        url: str | None = None,
        token: Token = None,
        stop: Stop | None = None,
        moved_to: MovedTo = None,
    ) -> None:
        self.git_dir, self.work_tree, self._stop = git_dir, work_tree, stop or Stop()
        self._scheme = "http" if url and urlsplit(url).scheme == "http" else "https"  # and never anything else
        self._url, self._token = url, token
        self._moved_to, self._now_at = moved_to, url
        self._askpass: Path | None = None

    def run(
        self,
        *arguments: str,
        seconds: float = limits.GIT_SECONDS,
        stdin: bytes | BinaryIO | None = None,
        extra_env: Mapping[str, str] | None = None,
        work_tree: Path | None = None,
        stdout: BinaryIO | None = None,
        most_bytes: int | None = None,
        on_start: OnStart = lambda _: nullcontext(),
    ) -> bytes:
        """What git printed. Raises GitError with what it complained about.

        A git that would write a file of more than `most_bytes` is ended.
        """
        if not _REACHING_OUT.isdisjoint(arguments):
            self._renew_askpass()
        given = stdin if isinstance(stdin, bytes) else None
        bound = ["prlimit", f"--fsize={most_bytes}", "--core=0", "--"] if most_bytes else []
        process = subprocess.Popen(
            [*bound, *self._program(work_tree or self.work_tree), *arguments],
            stdin=subprocess.PIPE if isinstance(stdin, bytes) else stdin or subprocess.DEVNULL,
            stdout=stdout or subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**self._env(), **(extra_env or {})},
            cwd="/",
            start_new_session=True,
        )
        try:
            with on_start(process):
                printed, complaint = process.communicate(given, timeout=seconds)
        except subprocess.TimeoutExpired as error:
            _kill(process)
            process.communicate()
            raise GitError(arguments[0], f"timed out after {seconds:.0f} s") from error
        if process.returncode != 0:
            raise GitError(arguments[0], complaint.decode(errors="replace").strip() or f"exit {process.returncode}")
        return printed or b""

    def read_remote(
        self, *arguments: str, seconds: float, stdin: bytes | None = None, most_bytes: int | None = None
    ) -> bytes:
        """The same for what comes from elsewhere. Raises Stopped, too: then git has been ended."""

        def until_stopped(process: subprocess.Popen[bytes]) -> AbstractContextManager[None]:
            return self._stop.listening(lambda: _kill(process))

        self._stop.check()
        try:
            return self.reach(*arguments, seconds=seconds, stdin=stdin, most_bytes=most_bytes, on_start=until_stopped)
        except GitError:
            self._stop.check()
            raise

    def reach(
        self,
        *arguments: str,
        seconds: float = limits.GIT_SECONDS,
        stdin: bytes | None = None,
        most_bytes: int | None = None,
        on_start: OnStart = lambda _: nullcontext(),
    ) -> bytes:
        """Like `run`, of the repository elsewhere: one that was renamed is looked for, and asked again; so is one that
        does not know a new token yet."""
        ask = partial(self.run, *arguments, seconds=seconds, stdin=stdin, most_bytes=most_bytes, on_start=on_start)
        for pause in limits.GITHUB_PAUSES_SECONDS:
            try:
                return ask()
            except GitError as error:
                if self._finds_again(error):
                    continue
                if not self._is_early(error):
                    raise
            self._stop.wait(pause)
        return ask()

    def _is_early(self, error: GitError) -> bool:
        said = error.complaint.lower()
        return isinstance(self._token, Minted) and self._token.is_new() and any(sign in said for sign in REFUSED)

    def _finds_again(self, error: GitError) -> bool:
        if self._moved_to is None or not any(sign in error.complaint for sign in MOVED):
            return False
        before, self._now_at = self._now_at, self._moved_to() or self._now_at
        return self._now_at != before

    def text(self, *arguments: str, stdin: bytes | None = None, extra_env: Mapping[str, str] | None = None) -> str:
        return self.run(*arguments, stdin=stdin, extra_env=extra_env).decode(errors="surrogateescape").strip()

    @contextmanager
    def stream(self, *arguments: str, stdin: bytes = b"") -> Iterator[BinaryIO]:
        """What git prints, as it prints it; who has read enough may leave. Its complaints are not heard."""
        with tempfile.TemporaryFile(dir=self.git_dir.parent) as questions:
            questions.write(stdin)
            questions.seek(0)
            process = subprocess.Popen(
                [*self._program(self.work_tree), *arguments],
                stdin=questions,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=1 << 20,
                env=self._env(),
                cwd="/",
                start_new_session=True,
            )
        try:
            yield cast("BinaryIO", process.stdout)
        finally:
            _kill(process)
            process.communicate()

    def _renew_askpass(self) -> None:
        if self._url and (token := current(self._token)):
            self._askpass = _write_askpass(self.git_dir.parent, self._url, token)

    def _program(self, work_tree: Path) -> list[str]:
        settings = [*_CONFIG, f"protocol.{self._scheme}.allow=always"]
        if self._now_at != self._url:
            settings.append(f"url.{self._now_at}.insteadOf={self._url}")
        return [
            "git",
            f"--git-dir={self.git_dir}",
            f"--work-tree={work_tree}",
            *(part for setting in settings for part in ("-c", setting)),
        ]

    def _env(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.git_dir.parent),
            "LANG": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": self._scheme,
            "GIT_SSH_COMMAND": "/bin/false",
            "GIT_ASKPASS": str(self._askpass or "/bin/false"),
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
        }


def _kill(process: subprocess.Popen[bytes]) -> None:
    """With everything that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _write_askpass(private: Path, url: str, token: str) -> Path:
    """Answers git's question for this one host and no other; the token is in a file of A's, in no argument."""
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    with_user = f"{parts.scheme}://x-access-token@{parts.netloc.rpartition('@')[2]}"
    secret, script = private / "token", private / "askpass"
    _write_private(secret, token, 0o600)
    _write_private(
        script,
        f"""#!/bin/sh
case "$1" in
{shlex.quote(f"Username for '{origin}': ")}) echo x-access-token ;;
{shlex.quote(f"Password for '{with_user}': ")}) cat {shlex.quote(str(secret))} ;;
*) exit 1 ;;
esac
""",
        0o700,
    )
    return script


def _write_private(path: Path, content: str, mode: int) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        file.write(content)
