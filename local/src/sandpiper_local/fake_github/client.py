"""What a test, or a person at the terminal, asks of a fake GitHub, wherever it runs."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import Mapping


class GitHubAdmin:
    """`call` goes to the API as a person, `fake` to what no person can do; the rest are those two in words."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.api_url = f"{url}/api/v3"
        # an empty context: loading authorities takes longer than any call, and there is no TLS on loopback
        self.http = httpx.Client(timeout=30, verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        self._tokens: dict[str, str] = {}

    def close(self) -> None:
        self.http.close()

    def fake(self, method: str, path: str, body: Any = None) -> Any:
        """One of the `/_fake` routes."""
        answer = self.http.request(method, f"{self.url}/_fake{path}", json=body)
        answer.raise_for_status()
        return answer.json()

    def call(self, method: str, path: str, body: Any = None, *, by: str) -> Any:
        """The API, as a person; raises httpx.HTTPStatusError."""
        headers = {"Authorization": f"Bearer {self._token_of(by)}"}
        url = f"{self.api_url}{path}"
        # a renamed repository answers from its new place
        answer = self.http.request(method, url, json=body, headers=headers, follow_redirects=True)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def token(self, login: str, **narrowed: Any) -> str:
        """A personal access token."""
        return str(self.fake("POST", "/tokens", {"login": login, **narrowed})["token"])

    def add_repository(
        self,
        full_name: str,
        files: Mapping[str, str] | None = None,
        *,
        permissions: Mapping[str, str] | None = None,
        private: bool = True,
    ) -> dict[str, Any]:
        body = {"full_name": full_name, "files": files, "private": private, "permissions": permissions or {}}
        created: dict[str, Any] = self.fake("POST", "/repos", body)
        return created

    def install(self, account: str, repositories: list[str] | None = None, **more: Any) -> int:
        body = {"account": account, "repositories": repositories, **more}
        return int(self.fake("POST", "/installations", body)["id"])

    def set_app(self, **settings: Any) -> None:
        """id, public_key, webhook_url, webhook_secret; what is not given stays as it is."""
        self.fake("PUT", "/app", settings)

    def open_issue(self, repository: str, title: str, body: str = "", *, by: str) -> int:
        return int(self.call("POST", f"/repos/{repository}/issues", {"title": title, "body": body}, by=by)["number"])

    def comment(self, repository: str, number: int, body: str, *, by: str) -> dict[str, Any]:
        path = f"/repos/{repository}/issues/{number}/comments"
        comment: dict[str, Any] = self.call("POST", path, {"body": body}, by=by)
        return comment

    def commit(self, repository: str, branch: str, files: Mapping[str, str | None], **more: Any) -> str:
        """Somebody pushes. `force=True` leaves what the branch had."""
        body = {"branch": branch, "files": files, **more}
        return str(self.fake("POST", f"/repos/{repository}/commits", body)["sha"])

    def open_pull(self, repository: str, head: str, *, by: str, base: str = "main", **more: Any) -> int:
        body = {"title": f"Merge {head}", "head": head, "base": base, **more}
        return int(self.call("POST", f"/repos/{repository}/pulls", body, by=by)["number"])

    def finish_ci(self, repository: str, sha: str, *, conclusion: str, log: str = "") -> dict[str, Any]:
        body = {"sha": sha, "conclusion": conclusion, "log": log}
        finished: dict[str, Any] = self.fake("POST", f"/repos/{repository}/ci", body)
        return finished

    def fail_next(self, path: str, **failure: Any) -> None:
        """method, status, message, headers, delay, cut, count: see failures.Failure."""
        self.fake("POST", "/failures", {"path": path, **failure})

    def advance(self, seconds: float) -> None:
        self.fake("POST", "/clock", {"advance": seconds})

    @property
    def calls(self) -> list[dict[str, Any]]:
        return list(self.fake("GET", "/calls"))

    @property
    def deliveries(self) -> list[dict[str, Any]]:
        return list(self.fake("GET", "/deliveries"))

    def settle(self) -> None:
        """Until every webhook has been answered."""
        self.fake("POST", "/settle")

    def _token_of(self, login: str) -> str:
        if login not in self._tokens:
            self._tokens[login] = self.token(login)
        return self._tokens[login]
