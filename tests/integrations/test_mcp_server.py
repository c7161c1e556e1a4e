"""Environments as MCP tools, played by the reference client over stdio and HTTP.

The last test runs all of them with the other line of the reference library, which needs a virtual
environment of its own: set INTERCODE_MCP to the directory of its programs (``.ci/separate mcp-2
DIRECTORY`` makes it).
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

pytest.importorskip("mcp", reason="pip install 'intercode-gym[mcp]'")

import mcp
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from pydantic import BaseModel

import intercode
from intercode.cli import main
from intercode.core.errors import (
    EnvironmentStateError,
    GoldError,
    InfrastructureError,
    UsageError,
)
from intercode.integrations.mcp.library import LiveSession, ToolCallError
from intercode.integrations.mcp.server import EnvironmentServer, _call
from intercode.integrations.mcp.session import MAX_SNAPSHOTS, EnvironmentSession
from support import requirements
from support.sandboxes import eventually, process_runs
from support.serving import serving
from support.snippets import Reader, read_snippets
from support.sources import PYTHONPATH, write_metadata

TOKEN = "a-secret-of-this-test"
START = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def _session(score_requests: bool = False) -> EnvironmentSession:
    return EnvironmentSession(lambda: intercode.make("sql"), score_requests)


def _solution(environment: str, task: int) -> tuple[str, str]:
    """Return the id and the solution of a starter task."""
    with intercode.make(environment) as env:
        env.reset(seed=1, options={"task": task})
        return env.task.id, env.task.solution or ""


def _text(result: types.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


def _field(result: BaseModel, name: str) -> Any:
    """Return a field by its name in the protocol; the library's lines name attributes otherwise."""
    return result.model_dump(by_alias=True)[name]


async def _play(client: Any, environment: str, task: int) -> None:
    """Solve a task with its gold, after a way that was taken back."""
    task_id, solution = _solution(environment, task)
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools) == ["reset", "step", "score", "snapshot", "restore"]
    assert _field(await client.call_tool("step", {"action": "x"}), "isError")
    unknown = await client.call_tool("step", {"action": "x", "more": 1})
    assert _field(unknown, "isError") and "Input validation error" in _text(unknown)
    results = [await client.call_tool("reset", {"task": task, "seed": 1})]
    results.append(await client.call_tool("snapshot"))
    results.append(await client.call_tool("step", {"action": "not what was asked"}))
    saved = {"snapshot": _field(results[1], "structuredContent")["snapshot"]}
    results.append(await client.call_tool("restore", saved))
    assert not any(_field(result, "isError") for result in results)
    assert not any(golden in str(results) for golden in (task_id, solution))
    await client.call_tool("step", {"action": solution})
    last = await client.call_tool("step", {"action": "submit"})
    values = _field(last, "structuredContent")
    assert values["reward"] == 1.0 and values["terminated"]
    assert "ended with the reward 1" in _text(last)
    refused = await client.call_tool("restore", saved)
    assert _field(refused, "isError") and "Snapshots end with their episode" in _text(refused)


def _client(transport: Any, begin: str) -> Any:
    """Return a client: ``session`` initializes a session, ``newest`` does what line 2 prefers."""
    if begin == "newest":
        return mcp.Client(transport)

    @asynccontextmanager
    async def connected() -> AsyncIterator[ClientSession]:
        async with transport as (read, write, *_), ClientSession(read, write) as client:
            await client.initialize()
            yield client

    return connected()


CLIENTS = ["session", *(["newest"] if hasattr(mcp, "Client") else [])]


@pytest.mark.sandbox
@pytest.mark.heavy
@pytest.mark.parametrize("begin", CLIENTS)
def test_the_reference_client_plays_over_stdio(begin: str) -> None:
    async def play() -> None:
        command = ["-m", "intercode", "serve", "bash", "--protocol", "mcp"]
        server = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
        async with _client(stdio_client(server), begin) as client:
            await _play(client, "bash", 1)

    asyncio.run(play())


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    variables = {**os.environ, "INTERCODE_SERVE_TOKEN": TOKEN}
    words = ["serve", "sql", "--protocol", "mcp", "--sessions", "2"]
    with serving("-m", "intercode", *words, env=variables) as at:
        yield f"{at}/mcp"


@asynccontextmanager
async def _connected(url: str, begin: str = "session") -> AsyncIterator[Any]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        create_mcp_http_client(headers=headers) as http,
        _client(streamable_http_client(url, http_client=http), begin) as client,
    ):
        yield client


@pytest.mark.heavy
@pytest.mark.parametrize("begin", CLIENTS)
def test_the_reference_client_plays_over_http_in_sessions_of_its_own(url: str, begin: str) -> None:
    async def play() -> None:
        async with _connected(url, begin) as one, _connected(url, begin) as two:
            await _play(one, "sql", 1)
            assert _text(await two.call_tool("score")).startswith("there is nothing to score yet")
            assert await _status_of_a_new_session(url) == 503
        async with asyncio.timeout(60):  # a session that ended makes room
            while await _status_of_a_new_session(url) == 503:
                await asyncio.sleep(0.1)

    asyncio.run(play())


async def _status_of_a_new_session(url: str) -> int:
    """Begin a session, end it, and return the status of the answer."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream"}
    async with aiohttp.ClientSession(headers=headers) as http:
        async with http.post(url, json=START) as answer:
            name = answer.headers.get("mcp-session-id")
        if name is not None:
            await http.delete(url, headers={"mcp-session-id": name})
        return answer.status


@pytest.mark.heavy
def test_the_client_of_the_page_runs(tmp_path: Path) -> None:
    """The test of snippets has no server."""
    root = Path(__file__).parents[2]
    page = (root / "docs/mcp.md").read_text("utf-8")
    (snippet,) = [s for s in read_snippets(page) if "ClientSession" in s.body]
    with serving("-m", "intercode", "serve", "bash", "--protocol", "mcp") as url:
        body = snippet.body.replace("http://127.0.0.1:8000", url)
        reader = Reader(tmp_path, root)
        reader.run(replace(snippet, body=body))
    assert reader.names["step"].content[0].text


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer other"}, 401),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example"}, 403),
    ],
)
def test_requests_are_refused_as_by_serve(url: str, headers: dict[str, str], status: int) -> None:
    request = urllib.request.Request(url, b"{}", {"Content-Type": "application/json", **headers})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=60)
    assert refused.value.code == status


CALL = b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": %b}'
NO_MESSAGES: list[tuple[bytes, int, int | None]] = [
    (CALL % b'{"name": "step", "arguments": {"action": "\\ud800"}}', -32600, 7),
    (b'{"jsonrpc": "2.0", "id": 7}', -32600, 7),
    (b'{"jsonrpc": "2.0", "id": "\\udfff", "method": "tools/list"}', -32600, None),
    (b"[]", -32600, None),
    (b"not JSON", -32700, None),
    (b"\xff\xfe{}", -32700, None),
    (b'{"id": 7, "n": ' + b"9" * 5000 + b"}", -32700, None),
    (b"[" * 100_000, -32700, None),
]


def test_every_line_that_is_no_message_is_answered_with_an_error() -> None:
    command = [sys.executable, "-m", "intercode", "serve", "sql", "--protocol", "mcp"]
    begun = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    start = "\n\n".join(map(json.dumps, (START, begun))).encode() + b"\n"
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(start)
        answers = iter(map(json.loads, server.stdout))
        assert next(answers)["id"] == START["id"]
        for line, code, number in NO_MESSAGES:
            server.stdin.write(line + b"\n")
            answer = next(answers)
            assert (answer["error"]["code"], answer["id"]) == (code, number), (line, answer)
        server.stdin.write(CALL % b'{"name": "step", "arguments": {"action": "\xff"}}' + b"\n")
        answer = next(answers)
        assert answer["id"] == 7 and "no episode is running" in str(answer["result"])
        server.stdin.close()


@pytest.mark.parametrize(("body", "code", "number"), NO_MESSAGES)
def test_every_body_that_is_no_message_is_answered_with_an_error(
    url: str, body: bytes, code: int, number: int | None
) -> None:
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    request = urllib.request.Request(url, body, headers)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=60)
    answer = json.loads(refused.value.read())
    assert refused.value.code == 400
    assert (answer["error"]["code"], answer["id"]) == (code, number)


def test_a_score_request_ends_the_episode_without_a_reward() -> None:
    session = _session()
    session.reset(0)
    session.snapshot()
    asked = session.score()
    assert asked.values["reward"] == 0.0 and asked.values["terminated"]
    with pytest.raises(EnvironmentStateError, match="no episode is running"):
        session.step("SELECT 1")
    with pytest.raises(UsageError, match="there is no snapshot 'snapshot-1', only: none"):
        session.restore("snapshot-1")
    session.reset(0)  # a session goes on with another episode
    assert session.step("SELECT 1").text == "[(1,)]"
    session.close()


def test_names_that_are_not_unicode_are_sent_and_a_server_that_ends_interrupts_actions() -> None:
    server = EnvironmentServer(lambda: intercode.make("bash", timeout=3000.0))
    session = server._sessions.make()
    session.reset(0)

    async def touch() -> types.CallToolResult:
        arguments = {"action": r"touch $'/root/\xfe'"}
        return await server._call_tool(LiveSession(session), "step", arguments)

    sent = json.loads(asyncio.run(touch()).model_dump_json(by_alias=True))
    assert sent["structuredContent"]["info"]["changes"] == ["/root/\ufffd"]
    with ThreadPoolExecutor() as threads:
        command = "sleep 1234.8765"
        step = threads.submit(session.step, command)
        eventually(lambda: process_runs(command), "the action runs")
        server.abort()
        with pytest.raises(InfrastructureError):
            step.result()
    session.close()


def test_score_requests_let_the_episode_go_on() -> None:
    session = _session(score_requests=True)
    session.reset(0)
    saved = session.snapshot().values["snapshot"]
    assert not session.score().values["terminated"]
    assert session.step("submit").values["terminated"]
    session.restore(saved)
    assert session.step("SELECT 1").values["info"]["valid"]
    session.close()


def test_a_refused_reset_leaves_the_episode_and_its_snapshots() -> None:
    session = _session()
    with pytest.raises(UsageError):
        session.reset(9999)
    session.reset(0)
    saved = session.snapshot().values["snapshot"]
    with pytest.raises(UsageError):
        session.reset(9999)
    assert session.step("SELECT 1").text == "[(1,)]"
    session.restore(saved)
    session.close()


def test_snapshots_are_bounded_and_end_with_the_episode() -> None:
    session = _session()
    with pytest.raises(EnvironmentStateError, match="reset begins one"):
        session.snapshot()
    session.reset(0)
    for _ in range(MAX_SNAPSHOTS):
        session.snapshot()
    with pytest.raises(UsageError, match="at most 16 snapshots"):
        session.snapshot()
    session.reset(1)
    assert session.snapshot().values["snapshot"] == "snapshot-17"
    session.close()


def test_errors_reveal_no_gold(caplog: pytest.LogCaptureFixture) -> None:
    def failing() -> object:
        raise GoldError("the gold SELECT secret FROM t failed")

    session = _session()
    session.reset(0)
    assert session._env is not None
    session._env.score = failing  # type: ignore[assignment, method-assign]
    with pytest.raises(ToolCallError, match="the task cannot be scored") as refused:
        _call(session, "score", {})
    assert "secret" not in str(refused.value) and "secret" in caplog.text
    with pytest.raises(ToolCallError, match="the server failed: TypeError"):
        _call(session, "step", {"unknown": 1})
    with pytest.raises(ToolCallError, match="no tool 'close'"):
        _call(session, "close", {})
    session.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ["bash", "--profile", "original"], "training would teach those", marks=pytest.mark.paper
        ),
        (["sql", "--port", "0", "--host", "0.0.0.0"], "is not an address of this"),
        (["nope"], "'nope'; did you mean"),
    ],
)
def test_the_command_refuses_what_serve_refuses(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *arguments, "--protocol", "mcp"]) != 0
    assert message in capsys.readouterr().err


def test_results_are_json() -> None:
    session = _session()
    assert json.dumps(session.reset(0).values) and json.dumps(session.step("SELECT 1").values)
    session.close()


@pytest.mark.skipif(hasattr(mcp, "Client"), reason="this is line 2")
@pytest.mark.sandbox
@pytest.mark.slow
def test_line_2_of_the_library_passes_the_same_tests(tmp_path: Path) -> None:
    programs = requirements.framework_programs("mcp")
    paths = f"{PYTHONPATH}{os.pathsep}{write_metadata(tmp_path)}"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [
            programs / "python",
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            __file__,
            root / "tests/environments/test_mcp_tools.py",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout + done.stderr
