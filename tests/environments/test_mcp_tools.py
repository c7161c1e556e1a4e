"""MCP servers whose tools an episode offers: in the sandbox and outside of it."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.core.errors import ConfigError, UsageError
from intercode.core.types import ExecResult, Trajectory
from intercode.environments.base.tools.servers import EpisodeTools, parse_servers
from intercode.evaluation.replay.log_replay import replay_logs
from intercode.evaluation.replay.recorded_environments import ReplayOptions, environment_settings
from intercode.models.base import make_call

_SCRIPT = Path(__file__).parents[1] / "support" / "mcp_server.py"
OUTSIDE = {"test": f"outside:{shlex.quote(sys.executable)} {shlex.quote(str(_SCRIPT))}"}
INSIDE = {"test": f"exec python3 -c {shlex.quote(_SCRIPT.read_text())}"}
"""The image has a Python, but not the files of this checkout."""

_REFERENCE_SERVER = """
import pathlib
try:
    from mcp.server.mcpserver import MCPServer  # line 2 of the library
except ImportError:
    from mcp.server.fastmcp import FastMCP as MCPServer
server = MCPServer("files")
@server.tool()
def read(path: str) -> str:
    "Read a file."
    return pathlib.Path(path).read_text()
server.run()
"""


def _started(setting: dict[str, str]) -> EpisodeTools:
    """Return the tools of servers in an episode without a sandbox."""
    tools = EpisodeTools(setting)
    tools.start()
    return tools


@pytest.fixture(scope="module")
def tools() -> Iterator[EpisodeTools]:
    opened = _started(OUTSIDE)
    yield opened
    opened.close()


def _call(tools: EpisodeTools, name: str, timeout: float = 20.0, **arguments: Any) -> ExecResult:
    return tools.call(f"test__{name} {json.dumps(arguments)}", timeout)


def test_all_pages_of_the_list_of_tools_are_read(tools: EpisodeTools) -> None:
    names = [tool.name for tool in tools.tools]
    assert names[:2] == ["test__read", "test__write"] and len(names) == 11
    assert all(len(name) <= 64 for name in names)


def test_answers_become_observations(tools: EpisodeTools, tmp_path: Path) -> None:
    path = str(tmp_path / "note")
    _call(tools, "write", path=path, text="hello")
    assert _call(tools, "read", path=path) == ExecResult("hello", 0)
    assert _call(tools, "refuse") == ExecResult("no", 1)
    assert _call(tools, "read") == ExecResult("path is missing", 1)
    assert _call(tools, "picture").output == "[image/png, about 3 bytes]"
    odd = _call(tools, "odd").output
    assert odd.startswith("half a character: ") and odd.encode()
    ping, other = json.loads(_call(tools, "ask").output)["answers"]
    assert ping["result"] == {} and other["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("nope", "there is no tool 'nope'"),
        ("test__read {", "are not JSON"),
        ("test__read []", "not a JSON object"),
        ("test__read " + "[" * 100_000, "are not JSON"),
    ],
)
def test_a_wrong_call_is_an_observation(tools: EpisodeTools, text: str, note: str) -> None:
    result = tools.call(text, 5.0)
    assert note in result.observation and not result.ok


@pytest.mark.parametrize(
    ("name", "note", "timed_out"),
    [
        ("wait", "gave no answer within 0.5 s", True),
        ("chatter", "gave no answer within 0.5 s", True),
        ("flood", "a line of more than 1048576 bytes", False),
        ("lines", "more than 33554432 bytes before its answer", False),
        ("end", "the exit status 1: the server gives up", False),
    ],
)
def test_a_server_that_fails_is_started_again(
    tools: EpisodeTools, tmp_path: Path, name: str, note: str, timed_out: bool
) -> None:
    seconds = 0.5 if timed_out else 20.0
    result = _call(tools, name, seconds)
    assert note in result.observation and result.timed_out == timed_out
    again = _call(tools, "write", path=str(tmp_path / "x"), text="y")
    assert again == ExecResult("call 1", 0)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("outside:no-such-program", "cannot be used outside: .*no-such-program"),
        ("outside:sh -c 'echo why >&2; exit 3'", "it ended with the exit status 3: why"),
        ("outside:echo {}", "it ended with the exit status 0"),
        ("server", "has to run in a sandbox.*test=outside:server"),
    ],
)
def test_a_server_that_does_not_start_is_an_error(command: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        _started({"test": command})


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("server", "no table of commands"),
        ({"a b": "server"}, "needs a name"),
        ({"a": " "}, "has no command"),
        ({"a": "outside:"}, "has no command"),
        ({"a": 3}, "has no command"),
    ],
)
def test_a_wrong_setting_is_refused(setting: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_servers(setting)


@pytest.mark.heavy
def test_a_server_of_the_reference_library_outside_of_an_environment_without_sandbox() -> None:
    pytest.importorskip("mcp", reason="pip install 'intercode-gym[mcp]'")
    command = f"outside:{shlex.quote(sys.executable)} -c {shlex.quote(_REFERENCE_SERVER)}"
    with intercode.make("sql", mcp={"files": command}) as env:
        env.reset(options={"task": 0})
        (tool,) = env.brief.tools
        assert (tool.name, tool.description) == ("files__read", "Read a file.")
        assert tool.parameters["required"] == ["path"]
        result = env.execute('call files__read {"path": "/proc/self/comm"}')
        assert result.observation.startswith("python") and result.valid
        result = env.execute('call files__read {"path": "/nope"}')
        assert "Error executing tool read" in result.observation and result.exit_code == 1


@pytest.mark.sandbox
@pytest.mark.heavy
def test_a_server_in_the_sandbox_shares_the_files_of_the_episode() -> None:
    with intercode.make("bash", mcp=INSIDE, timeout=30.0) as env:
        env.reset(options={"task": 0})
        env.execute("echo from the shell > /tmp/note")
        assert (
            env.execute('call test__read {"path": "/tmp/note"}').observation == "from the shell\n"
        )
        written = env.execute('call test__write {"path": "/tmp/own", "text": "from the tool"}')
        assert written.observation == "call 2" and "/tmp/own" in written.changes
        with env.snapshot() as snapshot:
            (fork,) = env.fork()
            with fork:
                assert fork.execute("cat /tmp/own").observation == "from the tool"
                text = '{"path": "/tmp/own", "text": "of the fork"}'
                assert fork.execute(f"call test__write {text}").observation == "call 1"
            env.execute("rm /tmp/own")
            env.restore(snapshot)
        assert env.execute('call test__read {"path": "/tmp/own"}').observation == "from the tool"
        # the agent ends a server
        servers = "grep -l 'tools/[c]all' /proc/[0-9]*/cmdline | cut -d / -f 3"
        assert env.execute(f"kill -9 $({servers})").exit_code == 0
        assert "has failed" in env.execute("call test__refuse {}").observation
        assert env.execute('call test__read {"path": "/tmp/own"}').observation == "from the tool"
        assert "mcp" in env.result_metadata()


ANSWERS = (
    ("test__write", {"path": "/tmp/note", "text": "6 * 7"}),
    ("run_command", {"command": "cat /tmp/note"}),
    ("nope", {}),
    ("submit", {}),
)


def _model(messages: Sequence[Any], tools: Sequence[Any] = ()) -> Any:
    assert {"run_command", "submit", "test__read"} <= {tool.name for tool in tools}
    name, arguments = ANSWERS[sum(m["role"] == "assistant" for m in messages)]
    return {"tool_calls": [make_call("1", name, arguments)]}


@pytest.mark.sandbox
@pytest.mark.heavy
def test_a_run_with_a_server_is_recorded_and_replayed(tmp_path: Path) -> None:
    run = intercode.evaluate(
        "starter",
        "tool-calling",
        model=_model,
        limit=1,
        mcp=INSIDE,
        out=tmp_path / "run",
        timeout=30.0,
        deterministic=True,
        quiet=True,
    )
    (episode,) = run.episodes
    actions = [step.action for step in episode.steps]
    call = 'call test__write {"path": "/tmp/note", "text": "6 * 7"}'
    assert actions == [call, "cat /tmp/note", "", "submit"]
    observations = [step.observation for step in episode.steps]
    assert observations[:2] == ["call 1", "6 * 7"] and "test__ask, run_command" in observations[2]
    assert "further tools" in episode.steps[0].messages[1]["content"]
    assert episode.run["mcp"] == INSIDE
    (report,) = replay_logs([tmp_path / "run"], ReplayOptions())
    assert report.steps and all(step.same_observation for step in report.steps)
    with pytest.raises(UsageError, match="outside of the sandbox"):
        environment_settings(_with_servers(episode, OUTSIDE), ReplayOptions())


def test_a_record_cannot_start_a_program_outside_by_an_option() -> None:
    record = Trajectory(
        "t",
        0,
        "q",
        (),
        run={"environment": "sql", "dataset": "starter", "env_options": {"mcp": OUTSIDE}},
    )
    assert environment_settings(record, ReplayOptions())[2]["mcp"] is None


def _with_servers(episode: Trajectory, servers: dict[str, str]) -> Trajectory:
    return replace(episode, run={**episode.run, "mcp": servers})


def test_agents_that_call_no_tools_are_refused() -> None:
    with pytest.raises(ConfigError, match="the agent 'react' calls no tools"):
        intercode.evaluate("starter:sql", "react", model=lambda _: "x", mcp=OUTSIDE, quiet=True)


def test_closing_ends_the_server() -> None:
    opened = _started(OUTSIDE)
    pid = _call(opened, "read", path="/proc/self/stat").output.split()[0]
    assert Path("/proc", pid).exists()
    opened.close()
    assert not Path("/proc", pid).exists()
    opened.close()


def test_a_workspace_that_is_used_again_has_the_servers_of_its_own_episode() -> None:
    with intercode.make("python", mcp=OUTSIDE) as env:
        env.reset(options={"task": 0})
        before = env.brief.tools
        earlier = env.episode
        env.reset(options={"task": 0})  # takes the workspace of the first, in which nothing ran
        assert env.brief.tools == before
        earlier.close()
        assert env.brief.tools == before
