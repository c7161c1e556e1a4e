"""Time limits of servers, for actions and for clients that send nothing."""

from __future__ import annotations

import time

import pytest

import intercode
from intercode.core.errors import SandboxLostError
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.remote.access import Access
from support.sandbox_server import serving_sandboxes


@pytest.mark.sandbox
@pytest.mark.namespace_only
def test_a_remote_sandbox_without_requests_ends() -> None:
    with (
        serving_sandboxes("--idle-timeout=1") as server,
        BaseSandbox.open("host", server.kind) as sandbox,
    ):
        with pytest.raises(SandboxLostError, match="no request for 1 s"):
            sandbox.spawn(["sleep", "1000000"]).wait(120)
        assert sandbox.is_lost


def test_an_mcp_session_without_requests_ends() -> None:
    pytest.importorskip("mcp", reason="pip install 'intercode-gym[mcp]'")
    from starlette.testclient import TestClient

    from intercode.integrations.mcp.server import EnvironmentServer, build_app

    server = EnvironmentServer(lambda: intercode.make("sql"))
    app = build_app(server, Access(), idle_timeout=0.05)
    start = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    headers = {"Accept": "application/json, text/event-stream"}
    with TestClient(app, headers=headers) as client:
        name = client.post("/mcp", json=start).headers["mcp-session-id"]
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        headers = {"mcp-session-id": name}
        while client.post("/mcp", json=ping, headers=headers).status_code != 404:
            time.sleep(0.2)
