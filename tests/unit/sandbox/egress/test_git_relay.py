from __future__ import annotations

import http.client
import shlex
import socket
from typing import TYPE_CHECKING

import pytest

from sandbox_task.isolation.choose import put_up_wall
from sandbox_task.isolation.egress.gateway import Gateway
from sandbox_task.workspace.git_relay import GitRelay, remote_config, remote_url
from tests.unit.sandbox.egress.conftest import WORKER, Inside
from tests.unit.sandbox.git_server import TOKEN, GitServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox_task.isolation.launch import Rooms


@pytest.fixture
def private(git_server: GitServer) -> GitServer:
    """A private repository with some history, and another one that B must not see."""
    git_server.create("mine", {"a.txt": "one\n"})
    git_server.push("mine", {"a.txt": "two\n"})
    git_server.push("mine", {"a.txt": "three\n"})
    git_server.git("mine", "config", "uploadpack.allowAnySHA1InWant", "true")
    git_server.create("other", {"secret.txt": "not yours"})
    return git_server


@pytest.fixture
def relayed(backend: str, rooms: Rooms, private: GitServer) -> Iterator[Inside]:
    relay = GitRelay(private.url("mine"), token=TOKEN, moved_to=lambda: private.url("renamed"))
    gateway = Gateway(on_refusal=lambda *_: None, git=relay.server)
    wall = put_up_wall(backend, rooms, tools=None, worker_uid=WORKER, gateway=gateway)  # type: ignore[arg-type]
    yield Inside(wall, gateway)
    wall.close()
    gateway.close()


def partial_clone(inside: Inside) -> None:
    """As A leaves it to B: all commits, the contents of none but the base."""
    port = inside.gateway.git_port
    assert port is not None
    said = inside.shell(f"git clone -q --no-local --filter=blob:none {remote_url(port)} work 2>&1")
    assert said == ""
    config = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n" + remote_config(port)
    inside.wall.write_file("work/.git/config", config.encode())


def test_history_with_contents_that_never_came_is_fetched_without_a_token(relayed: Inside) -> None:
    partial_clone(relayed)
    assert relayed.shell("cd work && git rev-list --all --objects --missing=print | grep -c '^?'") == "2\n"
    log = relayed.shell("cd work && git log -p --format=%s 2>&1")
    assert [line for line in log.splitlines() if line.startswith(("+", "-")) and line[1] not in "+-"] == [
        *("-two", "+three", "-one", "+two", "+one"),
    ]
    assert "three" in relayed.shell("cd work && git blame a.txt 2>&1")


def test_what_is_pushed_meanwhile_can_be_fetched(relayed: Inside, private: GitServer) -> None:
    partial_clone(relayed)
    sha = private.push("mine", {"b.txt": "new"}, branch="later")
    assert relayed.shell("cd work && git fetch -q 2>&1; git rev-parse origin/later") == f"{sha}\n"


def test_a_repository_that_was_renamed_meanwhile_is_still_read(relayed: Inside, private: GitServer) -> None:
    partial_clone(relayed)
    private.rename("mine", "renamed")
    assert "+two" in relayed.shell("cd work && git log -p --format=%s 2>&1")


def test_pushing_is_refused_in_words_and_changes_nothing(relayed: Inside, private: GitServer) -> None:
    partial_clone(relayed)
    before = private.git("mine", "for-each-ref")
    said = relayed.shell("cd work && GIT_CURL_VERBOSE=0 git push origin HEAD:refs/heads/stolen 2>&1")
    assert "403" in said
    assert private.git("mine", "for-each-ref") == before


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/repository.git/info/refs?service=git-receive-pack"),
        ("GET", "/repository.git/info/refs"),
        ("POST", "/repository.git/git-receive-pack"),
        ("GET", "/other.git/info/refs?service=git-upload-pack"),
        ("GET", "/repository.git/../other.git/info/refs?service=git-upload-pack"),
        ("GET", "/repository.git/info/refs?service=git-upload-pack&service=git-receive-pack"),
        ("GET", "/repository.git/HEAD"),
        ("GET", "http://127.0.0.1/other.git/info/refs?service=git-upload-pack"),
    ],
)
def test_anything_but_reading_this_repository_is_refused(private: GitServer, method: str, path: str) -> None:
    with served(private.url("mine"), TOKEN) as port:
        status, said = request(port, method, path)
    assert status == 403
    assert b"only reading the run's own repository" in said


def test_a_token_that_is_refused_and_a_repository_that_is_away_are_said_without_details(private: GitServer) -> None:
    with served(private.url("mine"), "wrong") as port:
        status, said = request(port, "GET", "/repository.git/info/refs?service=git-upload-pack")
    assert (status, said) == (502, b"Sandpiper: the repository answers 401.\n")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        away = f"http://127.0.0.1:{closed.getsockname()[1]}/mine.git"
    with served(away, TOKEN) as port:
        status, said = request(port, "GET", "/repository.git/info/refs?service=git-upload-pack")
    assert (status, said) == (502, b"Sandpiper: the repository does not answer.\n")


@pytest.mark.parametrize("length", ["", "-1", "99999999999", "1e3"])
def test_a_request_of_a_wrong_length_is_refused(private: GitServer, length: str) -> None:
    with served(private.url("mine"), TOKEN) as port, socket.create_connection(("127.0.0.1", port), timeout=10) as line:
        kind = "application/x-git-upload-pack-request"
        head = f"POST /repository.git/git-upload-pack HTTP/1.1\r\nContent-Type: {kind}\r\nContent-Length: {length}"
        line.sendall(f"{head}\r\n\r\n".encode())
        assert line.recv(1000).startswith(b"HTTP/1.1 400")


def test_the_token_is_nowhere_in_what_the_worker_gets(relayed: Inside) -> None:
    partial_clone(relayed)
    said = relayed.shell(f"cd work && GIT_TRACE_CURL=1 git fetch 2>&1; env; grep -r {shlex.quote(TOKEN[:12])} .")
    assert "GET /repository.git/info/refs" in said
    assert TOKEN not in said


class served:  # noqa: N801 - reads as a word
    """A relay on a loopback port of this process."""

    def __init__(self, url: str, token: str) -> None:
        self._relay = GitRelay(url, token=token)

    def __enter__(self) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        self._relay.server.serve(listener)
        return int(listener.getsockname()[1])

    def __exit__(self, *_: object) -> None:
        self._relay.server.close()


def request(port: int, method: str, path: str) -> tuple[int, bytes]:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    line.request(method, path)
    answer = line.getresponse()
    said = answer.read()
    line.close()
    return answer.status, said
