"""A sandbox on another machine, whose server this process is connected to."""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard, get_args

from intercode_sandbox.contract import (
    BaseSandbox,
    Capability,
    ProgramSpec,
    SandboxSpec,
)
from intercode_sandbox.errors import DataError, SandboxError, SandboxLostError
from intercode_sandbox.remote.connection import BUILD_SECONDS, Connection
from intercode_sandbox.remote.files import pack_files, unpack_files
from intercode_sandbox.remote.operations import (
    OPERATIONS,
    ForwardedSandbox,
    Operation,
    refuse_nul,
)
from intercode_sandbox.remote.protocol import (
    MAX_BODY,
    ProtocolError,
    list_value,
    number_value,
    printable,
    string_values,
    text_value,
)
from intercode_sandbox.remote.relay import Group, take_out
from intercode_sandbox.supervisor.supervised_process import SupervisedProcess
from intercode_sandbox.tiers.tier_table import remote_name

_MARK_SECONDS = 0.02  # at least the accuracy with which a sandbox knows when a process started
_TRAVELLING = {"detach", "fork", "restore", "save", "checkpoint", "script"} | {
    operation.capability for operation in OPERATIONS.values()
}
"""The capabilities that work over a connection. Instead of sealing, the server copies files."""
_COPY_SECONDS = 600.0  # for an answer after files or the memory of a process were copied


class RemoteCheckpoint:
    """A checkpoint at the server, which keeps one for each sandbox."""

    def __init__(self, sandbox: RemoteSandbox) -> None:
        self.sandbox, self._is_closed = sandbox, False

    def close(self) -> None:
        """Free it. May be called again."""
        if not self._is_closed:
            self._is_closed = True
            self.sandbox.connection.notify("close_checkpoint", sandbox=self.sandbox.number)


class RemoteSandbox(ForwardedSandbox):
    """A sandbox at the other end of a connection. ``number`` is its name there.

    ``opened``: the server's answer to the request that created it. Raises SandboxError for an
    answer that is not valid. ``identifier``: its id when it is detached, by default a new one.
    """

    shares_files = False

    def __init__(
        self,
        connection: Connection,
        number: int,
        spec: SandboxSpec,
        opened: Mapping[str, Any],
        identifier: str = "",
    ) -> None:
        self._identifier = identifier or secrets.token_hex(16)
        self.connection, self.number, self.spec = connection, number, spec
        self._is_closed, self._loss = False, None
        self._last_mark = 0.0
        self._mark = 0
        try:
            self.tier = remote_name(printable(text_value(opened.get("tier"))[:100]))
            self.env = string_values(opened.get("env"))
            self.script_path = text_value(opened.get("script_path"))
            names = list_value(opened.get("capabilities"))
        except ProtocolError as e:
            raise SandboxError(f"{connection.url} sent an invalid description of a sandbox") from e
        self._capabilities: frozenset[Capability] = frozenset(
            name for name in get_args(Capability) if name in names and name in _TRAVELLING
        )
        connection.on_loss(number, self._record_loss)

    _loss: Exception | None

    def _record_loss(self, error: Exception) -> None:
        self._loss = error

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self._capabilities

    @property
    def is_lost(self) -> bool:
        return self._is_closed or self._loss is not None or self.connection.is_lost

    def lost_error(self, _: str = "") -> SandboxLostError:
        """Return the error for a sandbox that is gone."""
        if self.connection.is_lost:
            return self.connection.lost_error()
        if isinstance(self._loss, SandboxLostError):
            return self._loss
        return SandboxLostError(f"the sandbox at {self.connection.url} has ended")

    def _request(
        self, operation: str, body: bytes = b"", **arguments: Any
    ) -> tuple[dict[str, Any], bytes]:
        if self._is_closed or self._loss is not None:
            raise self.lost_error()
        return self.connection.request(operation, body, sandbox=self.number, **arguments)

    def forward(self, operation: Operation, arguments: list[Any], body: bytes) -> Any:
        _, data = self._request(operation.name, body, arguments=arguments)
        return self._parse(operation.unpack, data)

    def _parse(self, parse: Callable[[Any], Any], value: Any) -> Any:
        """Return a value of an answer. Raises SandboxLostError for one that is not valid, because
        nothing else from this server can be trusted either."""
        try:
            return parse(value)
        except ProtocolError as e:
            raise SandboxLostError(f"{self.connection.url} sent {e}") from e

    def keep_changes(self, reference: str) -> None:
        """Let the server keep the changes as the layer with this reference."""
        self._request("capture", reference=reference, seconds=BUILD_SECONDS)

    # ------------------------------------------------------------------ programs
    def start(self, program: ProgramSpec) -> SupervisedProcess:
        env, more = program.env, dict[str, int]()
        if program.checkpoint is not None:
            source = program.checkpoint
            if not (isinstance(source, RemoteCheckpoint) and self._reaches(source.sandbox)):
                raise SandboxError(
                    "a checkpoint can only be continued in a sandbox of one connection"
                )
            more["source"] = source.sandbox.number
        words = (word for item in (env or {}).items() for word in item)
        refuse_nul(*program.argv, program.cwd, *words)
        relay, group = self.connection.relay, Group(self.number)
        status, end = relay.describe_status()
        copies, numbers = [end], [end[0]]
        try:
            rows, streams, contents = relay.describe(list(program.fds.values()))
            copies += streams
            numbers += [number for number, _ in streams]
            answer, _ = self._request(
                "spawn",
                contents,
                before=lambda: relay.adopt(rows, copies, group),
                process=end[0],
                argv=list(program.argv),
                cwd=program.cwd,
                env=None if env is None else dict(env),
                targets=list(program.fds),
                fds=rows,
                **more,
            )
            pid = self._parse(number_value, answer.get("value"))
        except BaseException:
            self._abandon(numbers, copies)
            os.close(status)
            raise
        kill = partial(self.connection.notify, "kill", sandbox=self.number, process=end[0])
        return SupervisedProcess(pid, status, kill, self.lost_error)

    def _reaches(self, other: object) -> TypeGuard[RemoteSandbox]:
        """Return whether another sandbox is one of the same connection."""
        return isinstance(other, RemoteSandbox) and other.connection is self.connection

    def _abandon(self, numbers: list[int], copies: list[tuple[int, int]]) -> None:
        """Close the streams of a request that failed, also those that it did not adopt."""
        self.connection.drop_channels(numbers)
        for _, fd in take_out(copies):
            os.close(fd)

    # --------------------------------------------------------------- checkpoints
    def checkpoint(self, pid: int, given_fds: Sequence[int]) -> RemoteCheckpoint:
        self._request("checkpoint", pid=pid, given_fds=list(given_fds), seconds=_COPY_SECONDS)
        return RemoteCheckpoint(self)

    # --------------------------------------------------------------------- files
    def read(self, path: str, limit: int = 64 << 20) -> bytes:
        data = super().read(path, min(limit, MAX_BODY))
        if len(data) > limit:
            raise OSError(errno.EFBIG, f"{path} is larger than {limit} bytes")
        return data

    # ----------------------------------------------------------------- snapshots
    def fork(self) -> RemoteSandbox:
        number = self.connection.next_number()
        opened, _ = self._request("fork", new=number)
        return RemoteSandbox(self.connection, number, self.spec, opened)

    def save(self, directory: Path) -> None:
        _, data = self._request("save", seconds=_COPY_SECONDS)
        try:
            unpack_files(data, directory, self.spec.limits.inodes)
        except DataError as e:
            raise SandboxError(f"{self.connection.url} sent files that are not valid: {e}") from e

    def replace_files(self, source: BaseSandbox | Path) -> None:
        if isinstance(source, Path):
            self._request("replace_files", pack_files(source), seconds=_COPY_SECONDS)
            return
        if not self._reaches(source):
            raise SandboxError("files can only be copied between sandboxes of one connection")
        self._request("replace_files", source=source.number)

    # ----------------------------------------------------------------- processes
    def mark(self) -> int:
        """Begin an action, without waiting for the server.

        The server notes the time at which the message arrives, before anything that is sent later.
        """
        now = time.monotonic()
        if now - self._last_mark >= _MARK_SECONDS:
            self._last_mark, self._mark = now, self._mark + 1
        self.connection.notify("mark", sandbox=self.number, mark=self._mark)
        return self._mark

    # ----------------------------------------------------------------------- end
    def detach(self) -> str:
        try:
            self._request("detach", detached=self._identifier)
        except BaseException:  # the caller does not learn the id, and still owns the sandbox
            self.connection.notify("attach", sandbox=self.number, detached=self._identifier)
            self.connection.close_streams(self.number)
            raise
        self._is_closed = True
        self.connection.close_sandbox(self.number)
        return self._identifier

    def close(self, wait: bool = False) -> None:
        if self._is_closed:
            return
        if wait and not self.is_lost:
            with suppress(SandboxError):
                self._request("close", wait=True)
        else:
            self.connection.notify("close", sandbox=self.number, wait=False)
        self._is_closed = True
        self.connection.close_sandbox(self.number)
