"""The client of an agent of the Agent Client Protocol: its files and terminals are those of the
sandbox, and what it reports is recorded."""

from __future__ import annotations

import asyncio
import io
import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from acp import RequestError
from acp.schema import (
    AllowedOutcome,
    CreateTerminalResponse,
    DeniedOutcome,
    EnvVariable,
    PermissionOption,
    ReadTextFileResponse,
    RequestPermissionResponse,
    TerminalExitStatus,
    TerminalOutputResponse,
    ToolCallUpdate,
    WaitForTerminalExitResponse,
)

from intercode.core.errors import MissingCapabilityError
from intercode.core.types.untrusted import parse_untrusted
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.evaluation.programs.actions import ReportedAction, action_of, code_of
from intercode.models.base import make_call
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.long_output import Collector
from intercode_sandbox.streams import BaseProcess, decode, encode

MAX_MESSAGE_BYTES = 8 << 20
"""The length of a message of the agent. A longer one ends the conversation."""
_MAX_REPORTS = 1000  # between two requests to the model
_MAX_TERMINALS = 64
_MAX_WAITS = 256  # for terminals, at a time
_WAIT_BYTES = 1 << 12  # the length of a request to wait
_TERMINAL_OUTPUT = 1 << 16  # bytes that an agent can read of a terminal, if it sets no limit
_MAX_TERMINAL_OUTPUT = 1 << 20
_MAX_OUTPUT = 1 << 16  # bytes of a report
_MAX_ACTION = 2000  # characters
_MAX_ID = 256  # characters
_MAX_CALLS = 1000
_MAX_MESSAGE = 1 << 20  # characters
_LAST_READS = 32  # of the output of what has ended
_CHUNK = 1 << 16
_BESIDE_MESSAGES = frozenset(
    f"{kind}_update"
    for kind in ("available_commands", "config_option", "current_mode", "session_info", "usage")
)
"""The kinds of updates that may come within a message."""


class Pipes:
    """The messages on an agent's standard input and output, as the library takes them.

    Updates of the session go to the client at once, in their order. Other notifications, and lines
    that are no messages, are left out. A message is read when those before it are done with: each
    request is answered, unless it waits for a terminal, and the agent has read what it was sent.
    """

    def __init__(
        self,
        client: AcpClient,
        reader: asyncio.StreamReader,
        source: asyncio.ReadTransport,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._client, self._reader, self._source, self._writer = client, reader, source, writer

    @classmethod
    async def open(cls, client: AcpClient, read: int, write: int) -> Pipes:
        """Return the messages on two pipes: the agent's output and its input."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(MAX_MESSAGE_BYTES)
        source, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(read), "rb", 0)
        )
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.streams.FlowControlMixin(loop), os.fdopen(os.dup(write), "wb", 0)
        )
        writer = asyncio.StreamWriter(transport, protocol, None, loop)
        return cls(client, reader, source, writer)

    async def receive(self) -> dict[str, Any] | None:
        """Return the next request or answer; None at the end, and after a line that is too
        long."""
        with suppress(ValueError):
            while True:
                await asyncio.sleep(0)  # the task of the last request runs
                with suppress(ConnectionError):  # it can still be heard
                    await self._writer.drain()
                if not (line := await self._reader.readline()):
                    break
                message = _decode(line)
                method = message.get("method")
                if method == "session/update":
                    self._client.update(message.get("params"))
                elif method == "terminal/wait_for_exit" and len(line) > _WAIT_BYTES:
                    continue
                elif method is not None and "id" in message:
                    self._client.end_message()
                    return message
                elif method is None and isinstance(message.get("id"), int):
                    if not isinstance(error := message.get("error"), dict | None):
                        message["error"] = {"message": f"{error}"}
                    return message
        return None

    def finish(self) -> None:
        """Read what the agent, which has ended, has written, and nothing of other processes that
        hold its output."""
        if self._source.is_closing():
            return
        pipe = self._source.get_extra_info("pipe")
        for _ in range(_LAST_READS):
            if not (data := pipe.read(_CHUNK)):
                break
            self._reader.feed_data(data)
        self._source.close()

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message. An answer may find nobody."""
        self._writer.write(json.dumps(message).encode() + b"\n")
        try:
            await self._writer.drain()
        except ConnectionError:
            if "method" in message:
                raise

    async def close(self) -> None:
        """Read and write nothing more."""
        self._source.close()
        if not self._writer.is_closing():
            self._writer.transport.abort()


def _decode(line: bytes) -> dict[str, Any]:
    """Return the object in a line, and an empty one for any other line."""
    try:
        message = parse_untrusted(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


class _Terminal:
    """A command that an agent has its client run, with the end of its output."""

    def __init__(
        self,
        sandbox: BaseSandbox,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        limit: int,
        report: ReportedAction,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._sandbox, self._limit, self._report = sandbox, limit, report
        self._output, self.truncated = bytearray(), False
        self.ended: asyncio.Future[int] = self._loop.create_future()
        self._read, write = os.pipe()
        try:
            self._process: BaseProcess = sandbox.spawn(
                argv, cwd=cwd, env=env, fds={1: write, 2: write}
            )
        except OSError:
            os.close(self._read)
            raise
        finally:
            os.close(write)
        os.set_blocking(self._read, False)
        self._status = self._process.fileno()
        self._loop.add_reader(self._read, self._take)
        self._loop.add_reader(self._status, self._end)

    @property
    def output(self) -> str:
        """What it has written so far, as far as it is kept."""
        return decode(bytes(self._output))

    @property
    def exit_status(self) -> TerminalExitStatus | None:
        """How it has ended; None while it runs."""
        if not self.ended.done():
            return None
        code = self.ended.result()
        return (
            TerminalExitStatus(exit_code=code)
            if code >= 0
            else TerminalExitStatus(signal=str(-code))
        )

    def kill(self) -> None:
        """Kill the command and what it has started."""
        if not self.ended.done():
            for pid in (*self._sandbox.descendants(self._process.pid), self._process.pid):
                self._sandbox.signal(pid, 9)

    def close(self) -> None:
        """Read nothing more of it."""
        self._loop.remove_reader(self._read)
        if not self.ended.done():
            self._loop.remove_reader(self._status)
            self.ended.set_result(-9)
        os.close(self._read)

    def _take(self) -> bool:
        """Read a chunk. Return whether there may be more now."""
        try:
            data = os.read(self._read, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(self._read)
        self._output += data
        if (excess := len(self._output) - self._limit) > 0:
            del self._output[:excess]
            self.truncated = True
        self._report.output.add(data)
        return bool(data)

    def _end(self) -> None:
        self._loop.remove_reader(self._status)
        for _ in range(_LAST_READS):
            if not self._take():
                break
        code = self._process.wait() or 0
        self._report.entry["exit_code"] = code
        self.ended.set_result(code)


class AcpClient:
    """What an agent asks of its client, done in the sandbox of an episode.

    What is asked for is allowed unless the policy of the environment refuses it. ``message`` is the
    agent's last message so far. ``variables`` are those of commands in terminals.
    """

    def __init__(self, env: SandboxedEnv, variables: Mapping[str, str]) -> None:
        self.message = ""
        self._env, self._variables = env, variables
        self._sandbox = env.sandbox
        self._cwd = env.working_directory
        self._reports: list[ReportedAction] = []
        self._calls: dict[str, ReportedAction] = {}
        self._terminals: dict[str, _Terminal] = {}
        self._waits = 0
        self._message_id = ""
        self._message_goes_on = False

    def take_reports(self) -> list[ReportedAction]:
        """Return the tool calls, requests for permission, files and terminals of the agent since
        the last call. Later progress is added to the same objects."""
        reports, self._reports = self._reports, []
        return reports

    def close(self) -> None:
        """Release the terminals. What runs in them is not ended."""
        while self._terminals:
            self._terminals.popitem()[1].close()

    # ----------------------------------------------------------------------------- what it reports
    def update(self, params: Any) -> None:
        """Take note of an update of the session, as the protocol's JSON. Unknown kinds are left
        out."""
        update = params.get("update") if isinstance(params, dict) else None
        if not isinstance(update, dict):
            return
        kind = update.get("sessionUpdate")
        if kind == "agent_message_chunk":
            self._add_to_message(update)
        elif kind not in _BESIDE_MESSAGES:
            self.end_message()
        if kind in ("tool_call", "tool_call_update"):
            self._add_tool_call(update)

    def end_message(self) -> None:
        """Take the next text as that of another message, unless it has the same id."""
        self._message_goes_on = False

    def _add_to_message(self, update: Mapping[str, Any]) -> None:
        content = update.get("content")
        text = content.get("text") if isinstance(content, dict) else None
        if not isinstance(text, str):
            return
        name = _id(update.get("messageId") or "")
        if name != self._message_id or not (name or self._message_goes_on):
            self.message = ""
        self._message_id, self._message_goes_on = name, True
        self.message = (self.message + text)[-_MAX_MESSAGE:]

    def _add_tool_call(self, update: Mapping[str, Any]) -> None:
        name = _id(update.get("toolCallId"))
        if name not in self._calls:
            if len(self._calls) >= _MAX_CALLS:
                self._calls.clear()
            self._calls[name] = self._report("tool call update", "", name)
        report = self._calls[name]
        for field in ("title", "kind", "status"):
            if isinstance(update.get(field), str):
                report.entry[field] = update[field][:_MAX_ACTION]
        title, given = report.entry.get("title", ""), update.get("rawInput")
        if given or not report.entry["action"]:
            report.entry["action"] = _action(title, given)
        if text := _text(update.get("content")):
            report.output = Collector(report.output.limit)
            report.output.add(encode(text))

    def _report(self, seen: str, action: str, call: str = "") -> ReportedAction:
        output = Collector(min(self._sandbox.spec.limits.output, _MAX_OUTPUT))
        report = ReportedAction({"seen": seen, "action": action[:_MAX_ACTION]}, output, call)
        if len(self._reports) < _MAX_REPORTS:
            self._reports.append(report)
        return report

    async def request_permission(
        self, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        """Allow what the policy does not refuse."""
        call = _id(tool_call.tool_call_id)
        action = _action(tool_call.title or "", tool_call.raw_input)
        if (known := self._calls.get(call)) and not tool_call.raw_input:
            action = known.entry["action"] or action
        refusal = self._env.policy.refusal(action)
        wanted = "reject" if refusal else "allow"
        kinds: dict[str, PermissionOption] = {o.kind: o for o in options[::-1]}
        option = kinds.get(f"{wanted}_once") or kinds.get(f"{wanted}_always")
        report = self._report("permission request", action, call)
        report.entry["answer"] = option.kind if option else "cancelled"
        if option is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        outcome = AllowedOutcome(outcome="selected", option_id=option.option_id)
        return RequestPermissionResponse(outcome=outcome)

    # ------------------------------------------------------------------------- files and terminals
    async def read_text_file(
        self,
        path: str,
        line: int | None = None,
        limit: int | None = None,
        **_: Any,
    ) -> ReadTextFileResponse:
        """Return a file of the sandbox, or lines of it."""
        self._report("file", f"read {path}")
        with _sandbox_errors():
            text = decode(self._sandbox.read(path, MAX_MESSAGE_BYTES))
        if line is not None or limit is not None:
            first = max(0, (line or 1) - 1)
            lines = list(io.StringIO(text))
            text = "".join(lines[first : None if limit is None else first + limit])
        return ReadTextFileResponse(content=text)

    async def write_text_file(self, path: str, content: str, **_: Any) -> None:
        """Write a file of the sandbox. One that exists keeps its mode."""
        self._report("file", f"write {path}")
        mode = 0o644
        with suppress(OSError, MissingCapabilityError):  # it is new
            mode = self._sandbox.file_info(path).mode & 0o7777
        with _sandbox_errors():
            self._sandbox.write(path, encode(content), mode)

    async def create_terminal(
        self,
        command: str,
        args: list[str] | None = None,
        env: list[EnvVariable] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
        **_: Any,
    ) -> CreateTerminalResponse:
        """Start a command: a program with arguments, or without any a line for a shell."""
        argv = [command, *args] if args else ["/bin/sh", "-c", command]
        action = code_of(argv)
        if refusal := self._env.policy.refusal(action):
            raise RequestError(-32603, refusal)
        if len(self._terminals) >= _MAX_TERMINALS:
            raise RequestError(-32603, f"there are {_MAX_TERMINALS} terminals: release some")
        variables = {**self._variables, **{v.name: v.value for v in env or ()}}
        limit = _TERMINAL_OUTPUT if output_byte_limit is None else output_byte_limit
        limit = min(limit, _MAX_TERMINAL_OUTPUT)
        report = self._report("terminal", action)
        with _sandbox_errors():
            terminal = _Terminal(self._sandbox, argv, cwd or self._cwd, variables, limit, report)
        name = secrets.token_hex(8)
        self._terminals[name] = terminal
        return CreateTerminalResponse(terminal_id=name)

    async def terminal_output(self, terminal_id: str, **_: Any) -> TerminalOutputResponse:
        """Return what a command has written, and how it has ended."""
        terminal = self._terminal(terminal_id)
        return TerminalOutputResponse(
            output=terminal.output, truncated=terminal.truncated, exit_status=terminal.exit_status
        )

    async def wait_for_terminal_exit(
        self, terminal_id: str, **_: Any
    ) -> WaitForTerminalExitResponse:
        """Wait until a command has ended."""
        terminal = self._terminal(terminal_id)
        if self._waits >= _MAX_WAITS:
            raise RequestError(-32603, f"{_MAX_WAITS} requests wait for terminals already")
        self._waits += 1
        try:
            await asyncio.shield(terminal.ended)
        finally:
            self._waits -= 1
        status = terminal.exit_status or TerminalExitStatus()
        return WaitForTerminalExitResponse(exit_code=status.exit_code, signal=status.signal)

    async def kill_terminal(self, terminal_id: str, **_: Any) -> None:
        """End a command. Its output can still be read."""
        self._terminal(terminal_id).kill()

    async def release_terminal(self, terminal_id: str, **_: Any) -> None:
        """End a command and forget it."""
        terminal = self._terminal(terminal_id)
        terminal.kill()
        self._terminals.pop(terminal_id).close()

    def _terminal(self, name: str) -> _Terminal:
        if name not in self._terminals:
            raise RequestError.invalid_params({"terminalId": f"there is no terminal {name:.80}"})
        return self._terminals[name]


@contextmanager
def _sandbox_errors() -> Iterator[None]:
    """Tell the agent what cannot be done in the sandbox."""
    try:
        yield
    except OSError as e:
        raise RequestError(-32603, str(e)) from e


def _action(title: str, given: Any) -> str:
    """Return the action of a tool call: the code in its input, or its title and the input."""
    if not isinstance(given, dict) or not given:
        return title
    return action_of(make_call("", title, given))[:_MAX_ACTION]


def _text(content: Any) -> str:
    """Return the texts in the content of a tool call."""
    parts = []
    for part in content if isinstance(content, list) else ():
        inner = part.get("content") if isinstance(part, dict) else None
        if isinstance(inner, dict) and isinstance(inner.get("text"), str):
            parts.append(inner["text"])
    return "\n".join(parts)


def _id(value: Any) -> str:
    """Return an id that the agent has made, cut to a length at which it can be kept."""
    return str(value)[:_MAX_ID]
