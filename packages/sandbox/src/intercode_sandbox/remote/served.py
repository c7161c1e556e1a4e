"""The server's side of one remote sandbox: what a client's requests do with it."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from intercode_sandbox.clock import SYSTEM_CLOCK, Clock
from intercode_sandbox.contract import BaseSandbox, Checkpoint
from intercode_sandbox.errors import (
    SandboxLostError,
    UsageError,
)
from intercode_sandbox.images.cache.staging import staged_upper_layer
from intercode_sandbox.remote.bounds import Client
from intercode_sandbox.remote.files import saved_files, unpack_files
from intercode_sandbox.remote.operations import OPERATIONS
from intercode_sandbox.remote.protocol import (
    image_values,
    list_value,
    number_value,
    spec_values,
    string_values,
    text_value,
)
from intercode_sandbox.remote.relay import Group
from intercode_sandbox.streams import BaseProcess

_MAX_MARKS = 1000
_MAX_PROCESSES = 256
Arguments = dict[str, Any]


class ServedSandbox:
    """A sandbox that a client has opened. ``number`` is the client's name for it, and ``layers``
    are references to its layers.

    The methods for requests return the answer and its body. They run in threads, one at a time for
    each sandbox (``lock``).
    """

    def __init__(
        self,
        number: int,
        sandbox: BaseSandbox,
        client: Client,
        clock: Clock = SYSTEM_CLOCK,
        layers: Sequence[str] = (),
    ) -> None:
        self.number, self.sandbox, self._client = number, sandbox, client
        self.layers = list(layers)
        self.checkpoint: Checkpoint | None = None
        self.lock = asyncio.Lock()
        self.began = self.last_used = clock.now()
        self.processes: dict[int, tuple[BaseProcess, Group]] = {}
        self.is_closed = False
        self._expiry: asyncio.Task[None] | None = None
        self.detach()

    def describe(self) -> Arguments:
        """Return what a client knows of a new sandbox."""
        return {
            "tier": self.sandbox.tier,
            "env": dict(self.sandbox.env),
            "script_path": self.sandbox.script_path,
            "capabilities": sorted({*self.sandbox.capabilities, "detach"}),
        }

    def describe_fully(self) -> Arguments:
        """Return what a client knows of a sandbox that it has opened itself."""
        spec = self.sandbox.spec
        values = {"spec": spec_values(spec, self.layers), "image": image_values(spec.image)}
        return self.describe() | values

    def detach(self) -> None:
        """Forget what the connection of the client has named."""
        self.processes.clear()
        self._marks: dict[int, int] = {0: 0}
        self._last_mark = -1

    def expire(self, work: Coroutine[Any, Any, None]) -> None:
        """Do what ends the sandbox, unless a client attaches to it first."""
        self._expiry = asyncio.ensure_future(work)

    def attach(self, number: int) -> None:
        """Belong to the connection on which the sandbox has this number."""
        if self._expiry is not None:
            self._expiry.cancel()
        self.number = number

    async def mark(self, mark: int) -> None:
        """Note the current time of the sandbox under the client's number.

        Messages may arrive at once that were sent one after the other, and then have to get times
        that differ.
        """
        value = self.sandbox.mark()
        if mark in self._marks:
            return
        while value == self._last_mark:
            await asyncio.sleep(0.001)
            value = self.sandbox.mark()
        self._marks[mark] = self._last_mark = value
        if len(self._marks) > _MAX_MARKS:
            del self._marks[next(iter(self._marks))]

    def spawn(self, arguments: Arguments, descriptors: list[int], group: Group) -> BaseProcess:
        """Start a program with these descriptors, which are closed. The checkpoint of the sandbox
        ``source`` in the arguments continues in its place."""
        try:
            targets = [number_value(n, 1023) for n in list_value(arguments.get("targets"))]
            number = number_value(arguments.get("process"), 2**32 - 1)
            if len(targets) != len(descriptors) or number in self.processes:
                raise UsageError("descriptors or a process number that cannot be used")
            if len(self.processes) >= _MAX_PROCESSES:
                raise OSError(11, "too many programs run in one sandbox")
            checkpoint = arguments["source"].checkpoint if "source" in arguments else None
            if "source" in arguments and checkpoint is None:
                raise UsageError("there is no such checkpoint")
            env = arguments.get("env")
            process = self.sandbox.spawn(
                [text_value(word) for word in list_value(arguments.get("argv"))],
                cwd=text_value(arguments.get("cwd")),
                env=None if env is None else string_values(env),
                fds=dict(zip(targets, descriptors, strict=True)),
                checkpoint=checkpoint,
            )
        finally:
            for fd in descriptors:
                os.close(fd)
        self.processes[number] = process, group
        return process

    # ------------------------------------------------------------------ requests
    def perform(self, name: str, arguments: Arguments, body: bytes) -> bytes:
        """Return the body that answers a request. Raises UsageError for an operation that does not
        exist."""
        own: dict[str, Callable[[Arguments, bytes], bytes | None]] = {
            "kill": self._kill,
            "checkpoint": self._checkpoint,
            "close_checkpoint": self.close_checkpoint,
            "save": self._save,
            "replace_files": self._replace_files,
        }
        if name in own:
            return own[name](arguments, body) or b""
        if (operation := OPERATIONS.get(name)) is None:
            raise UsageError(f"no request {name[:50]!r}: the client is of another version")
        values = arguments.get("arguments")
        if name == "kill_since":
            values = self._with_own_mark(list_value(values))
        return operation.perform(self.sandbox, values, body)

    def _with_own_mark(self, values: list[Any]) -> list[Any]:
        """Return the arguments of ``kill_since`` with the mark of the sandbox, not the client's."""
        mark = self._marks.get(number_value(values[0] if values else None))
        if mark is None:
            raise UsageError("the start of this action is no longer known: it was too long ago")
        return [mark, *values[1:]]

    def _kill(self, arguments: Arguments, _: bytes) -> None:
        found = self.processes.get(number_value(arguments.get("process")))
        if found is not None:
            found[0].kill(number_value(arguments.get("number"), 64))

    def _checkpoint(self, arguments: Arguments, _: bytes) -> None:
        if self.checkpoint is not None:
            raise OSError(errno.EAGAIN, "a remote sandbox has one checkpoint at a time")
        given = [number_value(n, 1023) for n in list_value(arguments.get("given_fds"))]
        self.checkpoint = self.sandbox.checkpoint(number_value(arguments.get("pid")), given)

    def close_checkpoint(self, *_: Any) -> None:
        """Free the checkpoint if there is one."""
        checkpoint, self.checkpoint = self.checkpoint, None
        if checkpoint is not None:
            checkpoint.close()

    def _save(self, *_: Any) -> bytes:
        with self._client.stage:
            return saved_files(self.sandbox)

    def _replace_files(self, arguments: Arguments, body: bytes) -> None:
        """Replace the files by those of another sandbox of the client, or of an archive."""
        if "source" in arguments:
            if arguments["source"].is_closed:
                raise SandboxLostError("the sandbox with the files is closed")
            self.sandbox.replace_files(arguments["source"].sandbox)
            return
        with self._client.stage, staged_upper_layer() as directory:
            unpack_files(body, directory, self.sandbox.spec.limits.inodes)
            self.sandbox.replace_files(directory)

    def close(self, wait: bool = False) -> None:
        """End the sandbox. May be called again."""
        if self.is_closed:
            return
        self.is_closed = True
        self.close_checkpoint()
        self.sandbox.close(wait)
