"""Who may use a server of environments: its token, web pages, and answers to broken requests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("openenv", reason="pip install 'intercode-gym[openenv]'")

from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

import intercode
from intercode.core.errors import ConfigError
from intercode.integrations.openenv.imports import without_gradio
from intercode.integrations.openenv.server import build_app
from intercode_sandbox.remote.access import Access
from support.serving import serving

with without_gradio():
    from openenv.core.generic_client import GenericEnvClient

TOKEN = "a-secret-of-this-test"
OWN = {"host": "127.0.0.1:8000"}
FOREIGN_ORIGINS = (
    "http://evil.example",
    "null",
    "http://127.0.0.1:3000",
    "http://localhost:8000",
    "",
    "http://127.0.0.1:8000.evil.example",
)


def _client(access: Access | None = None) -> TestClient:
    app = build_app(lambda: intercode.make("sql"), "sql", 2, access=access)
    return TestClient(app, raise_server_exceptions=False)


def _connects(client: TestClient, headers: dict[str, str]) -> bool:
    try:
        with client.websocket_connect("/ws", headers=headers):
            return True
    except WebSocketDisconnect:
        return False


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"action": {"code": "SELECT 1"}}', 409),  # there is no episode
        (b'{"action": {"code": "", "metadata": {"request": "score"}}}', 409),
        (b"[]", 422),
        (b"{", 422),
        (b"\xff", 400),
        (b'{"action": {"code": {"a": "\\ud800"}}}', 422),
        (b'{"action": {"code": {"a": Infinity}}}', 422),
        (b'{"action": "\\ud800"}', 422),
        (b'{"action": {"code": "x"}, "timeout_s": -Infinity}', 422),
    ],
)
def test_a_bad_step_is_refused_with_a_message(body: bytes, status: int) -> None:
    response = _client().post(
        "/step", content=body, headers={**OWN, "content-type": "application/json"}
    )
    assert response.status_code == status and response.json()["detail"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/reset", {"task": "nope"}),
        ("/reset", {"no-option": 1}),
        ("/sql/tasks", {"split": "nope"}),
        ("/sql/task", {"split": "starter", "index": 10**6}),
    ],
)
def test_unknown_names_are_refused_with_a_message(path: str, body: dict[str, Any]) -> None:
    response = _client().post(path, json=body, headers=OWN)
    assert response.status_code in (400, 404) and response.json()["detail"]


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
def test_web_pages_of_other_origins_are_refused(origin: str) -> None:
    client, headers = _client(), {**OWN, "origin": origin}
    assert client.post("/reset", json={}, headers=headers).status_code == 403
    assert client.get("/schema", headers=headers).status_code == 403
    assert not _connects(client, headers)


def test_a_name_that_is_pointed_to_this_machine_is_not_the_servers_own() -> None:
    """DNS rebinding: a stranger's page and its requests then have the same host."""
    headers = {"host": "evil.example:8000", "origin": "http://evil.example:8000"}
    client = _client()
    assert client.post("/reset", json={}, headers=headers).status_code == 403
    assert not _connects(client, headers)


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("localhost:8000", "http://localhost:8000"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("trainer.example", "https://pages.example"),
    ],
)
def test_own_and_allowed_origins_may_use_the_server(host: str, origin: str) -> None:
    client = _client(Access(origins=("https://pages.example",)))
    headers = {"host": host, "origin": origin}
    assert client.post("/reset", json={}, headers=headers).status_code == 200
    assert _connects(client, headers)


@pytest.mark.parametrize(
    "authorization", ["", "Bearer", "Bearer no", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x"]
)
def test_every_request_needs_the_token(authorization: str) -> None:
    client = _client(Access(TOKEN))
    headers = {**OWN, "authorization": authorization}
    for path in ("/state", "/schema", "/metadata", "/docs", "/openapi.json", "/nothing"):
        assert client.get(path, headers=headers).status_code == 401, path
    assert client.post("/step", json={}, headers=headers).status_code == 401
    assert not _connects(client, headers)
    assert client.get("/health", headers=headers).status_code == 200


def test_the_token_opens_the_server() -> None:
    client, headers = _client(Access(TOKEN)), {**OWN, "authorization": f"bearer {TOKEN}"}
    assert client.get("/schema", headers=headers).status_code == 200
    assert _connects(client, headers)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Access(""),
        lambda: Access("two words"),
        lambda: Access("ü"),
        lambda: Access(origins=("*",)),
        lambda: Access(origins=("http://a.example/page",)),
    ],
)
def test_unusable_settings_are_refused(make: Callable[[], Access]) -> None:
    with pytest.raises(ConfigError):
        make()


@pytest.fixture(scope="module")
def exposed() -> Iterator[str]:
    """A server that other machines reach."""
    environment = {**os.environ, "INTERCODE_SERVE_TOKEN": TOKEN}
    command = ("-m", "intercode", "serve", "sql", "--host", "0.0.0.0")
    with serving(*command, env=environment) as url:
        yield url


def test_clients_play_with_the_token_only(exposed: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with GenericEnvClient(base_url=exposed, headers=headers).sync() as client:
        assert client.reset(task=0).observation["text"]
        assert client.step({"code": "SELECT 1"}).observation["info"]["valid"]
    for wrong in (None, {"Authorization": "Bearer another"}):
        client = GenericEnvClient(base_url=exposed, headers=wrong).sync()
        with pytest.raises(ConnectionError, match="401"):
            client.reset()
    with pytest.raises(InvalidStatus) as refused:
        connect(exposed.replace("http", "ws") + "/ws", origin="http://evil.example")  # type: ignore[arg-type]
    assert refused.value.response.status_code == 403
    assert "web page" in json.loads(refused.value.response.body or b"{}")["detail"]


def test_an_address_of_a_network_needs_a_token() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "INTERCODE_SERVE_TOKEN"}
    command = [sys.executable, "-m", "intercode", "serve", "sql", "--host", "0.0.0.0", "--port=0"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "INTERCODE_SERVE_TOKEN" in done.stderr, done.stderr
    process = subprocess.Popen(
        command,
        env={**environment, "INTERCODE_SERVE_TOKEN": TOKEN},
        stderr=subprocess.PIPE,
        text=True,
        stdout=subprocess.DEVNULL,
    )
    assert process.stderr is not None
    try:
        assert "anybody who reaches the port" in process.stderr.readline()
    finally:
        process.terminate()
        process.wait(30)
