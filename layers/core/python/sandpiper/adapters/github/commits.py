"""A commit by the Git data API: objects first, which nobody sees, and then one step of the branch."""

from __future__ import annotations

import base64
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sandpiper.errors import Conflict, GitHubError, Unavailable, ValidationError
from sandpiper.github_ports import Tip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sandpiper.adapters.github.client import GitHubClient

_FILE = "100644"
_EXECUTABLE = "100755"
_DIRECTORY = "040000"


class GitHubCommits:
    """Implements `CommitTarget`."""

    def __init__(self, client: GitHubClient, repo: str) -> None:
        self._client, self._repo = client, f"/repos/{repo}"
        self._owner = repo.partition("/")[0]

    def default_branch(self) -> str:
        return str(self._call("GET", "")["default_branch"])

    def tip(self, branch: str) -> Tip | None:
        ref = self._or_none("GET", f"/git/ref/heads/{quote(branch)}")
        if ref is None:
            return None
        commit = self._call("GET", f"/git/commits/{ref['object']['sha']}")
        return Tip(commit["sha"], commit["tree"]["sha"], commit["message"])

    def tree(self, base: str, files: Mapping[str, bytes | None]) -> str:
        modes = self._modes(base, files)
        _refuse_clashes(files, modes)
        entries = [
            self._entry(path, content, modes.get(path))
            for path, content in files.items()
            if content is not None or path in modes
        ]
        if not entries:
            return base
        return str(self._call("POST", "/git/trees", {"base_tree": base, "tree": entries})["sha"])

    def _entry(self, path: str, content: bytes | None, mode: str | None) -> dict[str, Any]:
        # a script stays executable; a link or a submodule is replaced by what was sent
        entry = {"path": path, "mode": _EXECUTABLE if mode == _EXECUTABLE else _FILE, "type": "blob"}
        if content is None:
            return entry | {"sha": None}
        blob = {"content": base64.b64encode(content).decode(), "encoding": "base64"}
        return entry | {"sha": self._call("POST", "/git/blobs", blob)["sha"]}

    def _modes(self, tree: str, paths: Iterable[str]) -> dict[str, str]:
        """Of those that exist, and of files that stand where their directories would be.

        One directory at a time: the whole tree of a large repository comes cut off.
        """
        below: dict[str, list[str]] = {}
        for path in paths:
            first, _, rest = path.partition("/")
            below.setdefault(first, []).append(rest)
        found: dict[str, str] = {}
        for entry in self._call("GET", f"/git/trees/{tree}")["tree"]:
            name, rests = entry["path"], below.get(entry["path"], [])
            deeper = [rest for rest in rests if rest]
            if entry["type"] == "tree" and deeper:
                modes = self._modes(entry["sha"], deeper)
                found |= {f"{name}/{rest}": mode for rest, mode in modes.items()}
            if "" in rests or (deeper and entry["type"] != "tree"):
                found[name] = entry["mode"]
        return found

    def commit(self, message: str, *, tree: str, parent: str) -> str:
        return str(self._call("POST", "/git/commits", {"message": message, "tree": tree, "parents": [parent]})["sha"])

    def create_branch(self, branch: str, sha: str) -> None:
        self._place(branch, "POST", "/git/refs", {"ref": f"refs/heads/{branch}", "sha": sha})

    def move_branch(self, branch: str, sha: str) -> None:
        self._place(branch, "PATCH", f"/git/refs/heads/{quote(branch)}", {"sha": sha, "force": False})

    def _place(self, branch: str, method: str, path: str, body: dict[str, Any]) -> None:
        try:
            self._call(method, path, body)
        except GitHubError as error:
            if error.code in {409, 422}:
                raise Conflict(f"{branch} could not be updated. {error.message}") from error
            raise

    def url_of(self, sha: str) -> str:
        return str(self._call("GET", f"/git/commits/{sha}")["html_url"])

    def open_pull(self, branch: str, base: str) -> str | None:
        query = {"state": "open", "head": f"{self._owner}:{branch}", "base": base}
        found = self._client.call("GET", f"{self._repo}/pulls", query=query)
        return str(found[0]["html_url"]) if found else None

    def create_pull(self, branch: str, base: str, *, title: str, body: str) -> str:
        pull = {"title": title, "body": body, "head": branch, "base": base}
        return str(self._call("POST", "/pulls", pull)["html_url"])

    def _or_none(self, method: str, path: str) -> Any:
        try:
            return self._call(method, path)
        except GitHubError as error:
            if error.code == 404:
                return None
            raise

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        return self._client.call(method, f"{self._repo}{path}", body)


def _refuse_clashes(files: Mapping[str, bytes | None], modes: Mapping[str, str]) -> None:
    """GitHub would put a file in place of a whole directory, or the other way round."""
    for path, content in files.items():
        if modes.get(path) == _DIRECTORY:
            raise _about_files(f"names {path}, which is a directory")
        above = next((other for other in modes if path.startswith(f"{other}/") and other not in files), None)
        if content is not None and above:
            raise _about_files(f"names {path}, but {above} is a file")


def _about_files(message: str) -> ValidationError:
    return ValidationError(f"files {message}.", details=[{"field": "files", "message": message}])


class Patience:
    """A `sleep` for somebody who waits for our answer: gives up before they do."""

    def __init__(self, seconds: float, sleep: Callable[[float], None] = time.sleep) -> None:
        self._left, self._sleep = seconds, sleep

    def __call__(self, seconds: float) -> None:
        if seconds > self._left:
            raise Unavailable(f"GitHub asks to wait for {seconds:.0f} s. Try again then.")
        self._left -= seconds
        self._sleep(seconds)
