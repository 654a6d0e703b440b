"""Real smart-HTTP git on loopback: `git http-backend` behind GitHub's kind of Basic authentication."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "ghs_TokenOfTheTests0123456789"
_LOOK_EVERY_SECONDS = 0.01  # whether it is to stop: every test waits for that
_IDENTITY = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Somebody"), ("EMAIL", "somebody@example.com"))
}


class GitServer:
    """Bare repositories below `root`; `create` makes one from files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._renamed: dict[str, str] = {}
        self.refusals = 0  # so many tokens are not known, however good
        handler = type("Handler", (_Handler,), {"root": str(root), "renamed": self._renamed, "server_of": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_LOOK_EVERY_SECONDS,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/{name}.git"

    def create(self, name: str, files: dict[str, str] | None = None) -> str:
        """The repository's URL; without files it stays empty."""
        bare = self._bare(name)
        _git("init", "--quiet", "--bare", "--initial-branch=main", "--template=", str(bare))
        with (bare / "config").open("a", encoding="utf-8") as config:
            config.write("[http]\n\treceivepack = true\n[uploadpack]\n\tallowFilter = true\n")
        if files:
            self.push(name, files)
        return self.url(name)

    def rename(self, old: str, new: str) -> str:
        """Its URL from now on; under the old one there is only a hint at it."""
        self._bare(old).rename(self._bare(new))
        self._renamed[old] = self.url(new)
        return self.url(new)

    def push(self, name: str, files: dict[str, str], branch: str = "main") -> str:
        """A commit with these files on top of the branch; its id."""
        work = self._work(name, branch)
        for path, content in files.items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_text(content, encoding="utf-8", newline="")
        return self._commit(name, work, branch)

    def shell(self, name: str, script: str, branch: str = "main") -> str:
        """A commit of what the script makes of the files; its id."""
        work = self._work(name, branch)
        environment = {**os.environ, **_IDENTITY}
        subprocess.run(["bash", "-ec", script], cwd=work, env=environment, check=True, capture_output=True)
        return self._commit(name, work, branch)

    def branches(self, name: str) -> list[str]:
        return self.git(name, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()

    def blob(self, name: str, place: str) -> str:
        """One file as it is, line endings and all."""
        command = ["git", "-C", str(self._bare(name)), "cat-file", "blob", place]
        return subprocess.run(command, capture_output=True, check=True).stdout.decode()

    def git(self, name: str, *arguments: str) -> str:
        return _git("-C", str(self._bare(name)), *arguments)

    def _bare(self, name: str) -> Path:
        return self.root / f"{name}.git"

    def _work(self, name: str, branch: str) -> Path:
        """Its objects are the repository's, so that nothing has to be pushed: hundreds of tests begin here."""
        work = self.root / f"{name}-work"
        if not work.exists():
            (work / ".git" / "info").mkdir(parents=True)
            (work / ".git" / "objects").symlink_to(self._bare(name) / "objects")
            _git("init", "--quiet", "--initial-branch=main", "--template=", str(work))
        _git("-C", str(work), "checkout", "--quiet", "-B", branch)
        return work

    def _commit(self, name: str, work: Path, branch: str) -> str:
        _git("-C", str(work), "add", "--all", "--force")
        _git("-C", str(work), "-c", "maintenance.auto=0", "commit", "--quiet", "--allow-empty", "--message=base")
        commit = _git("-C", str(work), "rev-parse", "HEAD").strip()
        self.git(name, "update-ref", f"refs/heads/{branch}", commit)
        return commit


class _Handler(BaseHTTPRequestHandler):
    root = ""
    renamed: dict[str, str]
    server_of: GitServer

    def do_GET(self) -> None:
        body = self._body()
        name, _, rest = self.path.removeprefix("/").partition(".git")
        if moved := self.renamed.get(name):
            self._answer(301, [("Location", moved + rest)], b"")
            return
        if not self._is_let_in():
            self._answer(401, [("WWW-Authenticate", 'Basic realm="git"')], b"")
            return
        path, _, query = self.path.partition("?")
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": self.root,
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "REMOTE_USER": "x-access-token",
            "REMOTE_ADDR": "127.0.0.1",
            "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": self.headers.get("git-protocol", ""),
        }
        backend = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=False)
        head, _, data = backend.stdout.partition(b"\r\n\r\n")
        headers = [tuple(line.split(": ", 1)) for line in head.decode().split("\r\n")]
        status = next((int(value.split()[0]) for name, value in headers if name.lower() == "status"), 200)
        self._answer(status, [(name, value) for name, value in headers if name.lower() != "status"], data)

    do_POST = do_GET  # noqa: N815 - the base class's name

    def _is_let_in(self) -> bool:
        given = self.headers.get("authorization")
        if given and self.server_of.refusals:
            self.server_of.refusals -= 1
            return False
        return given == _basic(TOKEN)

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _answer(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _basic(token: str) -> str:
    return f"Basic {base64.b64encode(f'x-access-token:{token}'.encode()).decode()}"


def _git(*arguments: str) -> str:
    environment = {**os.environ, **_IDENTITY}
    done = subprocess.run(["git", *arguments], env=environment, capture_output=True, check=True)
    return done.stdout.decode(errors="surrogateescape")
