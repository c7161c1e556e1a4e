"""The MCP servers of an episode: started beside it, called by its actions, ended with it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from intercode.core.errors import ConfigError
from intercode.core.types import ExecResult, Tool
from intercode.core.types.untrusted import parse_untrusted
from intercode.environments.base.tools.program import (
    LineProgram,
    ProgramEndedError,
    start_in_sandbox,
    start_outside,
)
from intercode.environments.base.tools.protocol import ToolClient, ToolServerError
from intercode_sandbox.contract import BaseSandbox

OUTSIDE = "outside:"
"""The beginning of the command of a server that runs outside of the sandbox."""
START_TIMEOUT = 60.0
"""Seconds in which a server has to begin a session and list its tools."""
_NAME = re.compile(r"[A-Za-z0-9-]{1,24}")
_MAX_TOOL_NAME = 64  # what the endpoints of models accept

Locate = Callable[[], tuple[BaseSandbox, str]]
"""Returns the sandbox of the episode and the directory of its task."""


@dataclass(frozen=True, slots=True)
class ToolServer:
    """A server: the command that starts it, and whether that runs outside of the sandbox."""

    name: str
    command: str
    outside: bool = False

    @property
    def setting(self) -> str:
        """The text that the setting ``mcp`` has for this server."""
        return f"{OUTSIDE * self.outside}{self.command}"


def parse_servers(setting: object) -> tuple[ToolServer, ...]:
    """Return the servers in the setting ``mcp``, a table of commands by name. Raises
    ConfigError."""
    if setting is None:
        return ()
    if not isinstance(setting, Mapping):
        raise ConfigError(f"mcp = {setting!r:.80} is no table of commands by name")
    servers = []
    for name, text in setting.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigError(
                f"the MCP server {name!r:.80} needs a name of at most 24 letters, digits, hyphens"
            )
        command = text.removeprefix(OUTSIDE).strip() if isinstance(text, str) else ""
        if not command:
            raise ConfigError(f"the MCP server {name} has no command, as in {name}=server --option")
        servers.append(ToolServer(name, command, text.startswith(OUTSIDE)))
    return tuple(servers)


class EpisodeTools:
    """The servers of an episode, and the tools that an agent may call, which are none before
    ``start``.

    ``setting`` is the setting ``mcp``. ``locate`` is asked again whenever a server is started; None
    if the environment has no sandbox. Use it in one thread, except ``abort``. Raises ConfigError
    for a wrong setting.
    """

    def __init__(self, setting: object) -> None:
        self._servers = parse_servers(setting)
        self.locate: Locate | None = None
        self._programs: dict[ToolServer, LineProgram] = {}
        self._clients: dict[ToolServer, ToolClient] = {}
        self._calls: dict[str, tuple[ToolServer, str]] = {}
        self.tools: tuple[Tool, ...] = ()

    def metadata(self) -> dict[str, Any]:
        """Return what results record: the setting, if it names servers."""
        return {"mcp": {s.name: s.setting for s in self._servers}} if self._servers else {}

    def start(self) -> None:
        """Start the servers. Raises ConfigError if one does not start or lists no usable tools."""
        try:
            for server in self._servers:
                self._add_tools(server)
        except BaseException:
            self.close()
            raise

    def call(self, text: str, timeout: float) -> ExecResult:
        """Call a tool; ``text`` is its name, with a JSON object of arguments after a space.

        Whatever the server does wrong is part of the result. Raises SandboxError if the sandbox
        in which it has to be started again is lost.
        """
        name, _, given = text.partition(" ")
        if name not in self._calls:
            known = ", ".join(self._calls)
            return ExecResult("", 1, note=f"[there is no tool {name!r:.80}; there are: {known}]")
        try:
            arguments = parse_untrusted(given or "{}")
        except ValueError as e:
            return ExecResult("", 1, note=f"[the arguments of {name} are not JSON: {e}]")
        if not isinstance(arguments, dict):
            return ExecResult("", 1, note=f"[the arguments of {name} are not a JSON object]")
        server, own_name = self._calls[name]
        return self._call(server, own_name, arguments, timeout)

    def abort(self) -> None:
        """End the servers, so that a call in another thread ends."""
        for program in list(self._programs.values()):
            program.kill()

    def close(self) -> None:
        """End the servers. May be called again."""
        for server in list(self._programs):
            self._end(server)
        self._calls, self.tools = {}, ()

    def _add_tools(self, server: ToolServer) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        try:
            found = self._client(server, deadline).list_tools(deadline)
        except TimeoutError as e:
            raise _start_error(server, f"it was not ready after {START_TIMEOUT:g} s") from e
        except (ProgramEndedError, ToolServerError, OSError) as e:
            raise _start_error(server, str(e)) from e
        for tool in found:
            name = re.sub(r"[^A-Za-z0-9_-]", "_", f"{server.name}__{tool.name}")[:_MAX_TOOL_NAME]
            if name in self._calls:
                raise _start_error(server, f"two of its tools would have the name {name}")
            self._calls[name] = server, tool.name
            self.tools += (Tool(name, tool.description, tool.parameters),)

    def _call(
        self, server: ToolServer, tool: str, arguments: dict[str, Any], timeout: float
    ) -> ExecResult:
        try:
            client = self._client(server, time.monotonic() + max(timeout, START_TIMEOUT))
            text, succeeded = client.call(tool, arguments, time.monotonic() + timeout)
        except ToolServerError as e:
            return ExecResult(str(e), 1)
        except TimeoutError:
            self._end(server)
            note = (
                f"[the MCP server {server.name} gave no answer within {timeout:g} s and was ended]"
            )
            return ExecResult("", None, timed_out=True, note=note)
        except (ProgramEndedError, OSError) as e:
            self._end(server)
            return ExecResult("", None, note=f"[the MCP server {server.name} has failed: {e}]")
        return ExecResult(text, 0 if succeeded else 1)

    def _client(self, server: ToolServer, deadline: float) -> ToolClient:
        """Return the session with a server, which is started if it does not run."""
        if server not in self._clients:
            self._programs[server] = self._start(server)
            self._clients[server] = ToolClient(self._programs[server], deadline)
        return self._clients[server]

    def _start(self, server: ToolServer) -> LineProgram:
        if server.outside:
            return start_outside(server.command)
        if self.locate is None:
            raise ConfigError(
                f"the MCP server {server.name} has to run in a sandbox, and this environment has "
                f"none: mark it, as in {server.name}={OUTSIDE}{server.command}"
            )
        return start_in_sandbox(server.command, *self.locate())

    def _end(self, server: ToolServer) -> None:
        self._clients.pop(server, None)
        program = self._programs.pop(server, None)
        if program is not None:
            program.close()


def _start_error(server: ToolServer, why: str) -> ConfigError:
    where = "outside" if server.outside else "in the sandbox"
    return ConfigError(
        f"the MCP server {server.name} ({server.command}) cannot be used {where}: {why}"
    )
