"""The served page: who can read it, and what it can do."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from intercode.core.errors import UsageError
from intercode.core.types import Trajectory
from intercode.results.explanation import Explanation
from intercode.results.view import Library, ViewServer
from support.view_runs import write_run


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ViewServer]:
    with ViewServer(Library([write_run(tmp_path / "a")])) as server:
        thread = threading.Thread(target=server.serve)
        thread.start()
        yield server
        server.stop()
        thread.join()


def ask(
    server: ViewServer, path: str, method: str = "GET", host: str | None = None
) -> tuple[int, bytes, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.request(method, path, headers={"Host": host} if host else {})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


def test_it_listens_on_this_machine_only_and_its_address_holds_a_secret(server: ViewServer) -> None:
    assert server.url == f"http://127.0.0.1:{server.port}/{server.secret}/"
    assert server._http.server_address[0] == "127.0.0.1"
    assert len(server.secret) >= 32
    status, body, headers = ask(server, f"/{server.secret}/")
    assert status == 200 and body.startswith(b"<!doctype html>")
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Access-Control-Allow-Origin"] is None


@pytest.mark.parametrize("path", ["/", "/index", "/wrong/", "/{}x/index", "/{}"])
def test_without_the_secret_there_is_nothing(server: ViewServer, path: str) -> None:
    status, body, _ = ask(server, path.format(server.secret))
    assert (status, body) == (404, b"Nothing here.\n")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil:80"])
def test_another_host_name_for_this_machine_is_refused(server: ViewServer, host: str) -> None:
    status, body, _ = ask(server, f"/{server.secret}/index", host=host)
    assert (status, body) == (404, b"Nothing here.\n")
    assert ask(server, f"/{server.secret}/index", host=f"localhost:{server.port}")[0] == 200


def test_index_episodes_and_search(server: ViewServer) -> None:
    status, body, headers = ask(server, f"/{server.secret}/index")
    assert status == 200 and headers["Content-Type"] == "application/json"
    assert len(json.loads(body)["runs"][0]["rows"]) == 15
    episode = json.loads(ask(server, f"/{server.secret}/episode/0/1")[1])
    assert episode["task"] == "starter/files/0"
    assert json.loads(ask(server, f"/{server.secret}/search?q=needle-7")[1]) == [[10]]


@pytest.mark.parametrize(
    "path",
    [
        "episode/0/99",
        "episode/7/0",
        "episode/0/-1",
        "episode/0",
        "../x",
        "episode/0/1/2",
        "episode/0/99999999999999999999",
        "%2e%2e/%2e%2e/etc/passwd",
    ],
)
def test_other_paths_give_nothing(server: ViewServer, path: str) -> None:
    status, _, headers = ask(server, f"/{server.secret}/{path}")
    assert status == 404 and headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_it_only_lets_itself_be_read(server: ViewServer, method: str) -> None:
    assert ask(server, f"/{server.secret}/index", method)[0] == 501


def test_a_deleted_log_is_an_error(server: ViewServer, tmp_path: Path) -> None:
    (tmp_path / "a" / "trajectories.jsonl").unlink()
    status, body, _ = ask(server, f"/{server.secret}/episode/0/1")
    assert status == 500 and b"No such file" in body
    assert json.loads(ask(server, f"/{server.secret}/index")[1])["runs"][0]["rows"] == []


def test_a_port_in_use_is_an_error(server: ViewServer) -> None:
    with pytest.raises(UsageError, match=f"port {server.port} is not available"):
        ViewServer(server.library, server.port)
    with pytest.raises(UsageError, match="port 70000 is not available"):
        ViewServer(server.library, 70000)


def test_golds_are_served_on_request_only(server: ViewServer, tmp_path: Path) -> None:
    status, body, _ = ask(server, f"/{server.secret}/gold/0/0")
    assert (status, body) == (404, b"Nothing here.\n")
    library = Library([tmp_path / "a"])

    def explain(episode: Trajectory) -> Explanation:
        return Explanation((f"gold of {episode.task}",), 0.5, ())

    with ViewServer(library, explain=explain) as other:
        answer = other.respond("gold/0/1", "")
        assert answer is not None
        found = json.loads(answer[1])
        assert found["golds"] == [f"gold of {library.trajectory(0, 1).task}"]
        with pytest.raises(UsageError):
            other.respond("gold/7/0", "")
        for path in ("index", "episode/0/1", ""):
            answer = other.respond(path, "")
            assert answer is not None and b"gold of" not in answer[1]
