"""A running interpreter of any language and the two channels to it: its output, and a socket over
which it is asked for things.

It is asked in JSON, one object a line, on descriptor 3: ``{"token", "do": "run", "code"}``,
``{"do": "call", "entry", "args"}``, ``{"do": "chdir", "path"}``. It answers each in the same form,
with the token and ``cwd``: ``ok`` for code that raised nothing, ``value`` (what a function
returned, as the text of its JSON) or ``error`` for a call. What code prints, and what a prompt
shows of its value, has been written when the answer comes.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import socket
import time
from typing import Any

from intercode.core.languages import Repl
from intercode.sandbox.contract import Process, Sandbox
from intercode.sandbox.output import Collector, drain, drain_once

_LINK_FD = 3
_MAX_ANSWER = 16 << 20  # bytes of an answer
_MAX_PATH = 4096  # bytes


class ReplEndedError(Exception):
    """The interpreter is no longer there, or no longer to be trusted."""


class ReplProcess:
    """A running interpreter. Raises FileNotFoundError or PermissionError where there is none."""

    def __init__(self, sandbox: Sandbox, repl: Repl, cwd: str) -> None:
        self.output, theirs_out = os.pipe()
        self._link, theirs = socket.socketpair()
        argv = [argument.replace("{driver}", repl.driver) for argument in repl.argv]
        try:
            fds = {1: theirs_out, 2: theirs_out, _LINK_FD: theirs.fileno()}
            self.process: Process = sandbox.spawn(argv, cwd=cwd, fds=fds)
        except BaseException:
            self.close()
            raise
        finally:
            os.close(theirs_out)
            theirs.close()
        os.set_blocking(self.output, False)
        self._link.setblocking(False)

    def request(
        self, request: dict[str, Any], into: Collector, timeout: float
    ) -> dict[str, Any] | None:
        """The answer, or None when ``timeout`` seconds ran out. Raises ReplEndedError."""
        token = secrets.token_hex(8)
        left = memoryview(json.dumps({"token": token, **request}).encode() + b"\n")
        heard, deadline = b"", time.monotonic() + timeout
        poll = select.poll()
        for fd in (self.output, self.process.fileno()):
            poll.register(fd, select.POLLIN)
        poll.register(self._link, select.POLLIN | select.POLLOUT)
        while (wait := deadline - time.monotonic()) > 0:
            ready = dict(poll.poll(wait * 1000))
            if self.output in ready and not drain_once(self.output, into):
                poll.unregister(self.output)
            events = ready.get(self._link.fileno(), 0)
            if events & select.POLLIN:
                heard += self._receive()
                if heard.endswith(b"\n"):
                    drain(self.output, into)
                    return _parse_answer(heard, token)
            elif self.process.fileno() in ready or events & (select.POLLHUP | select.POLLERR):
                drain(self.output, into)
                raise ReplEndedError
            elif events & select.POLLOUT:
                left = self._send(left)
                if not left:
                    poll.modify(self._link, select.POLLIN)
            if len(heard) > _MAX_ANSWER:
                raise ReplEndedError
        return None

    def _send(self, left: memoryview) -> memoryview:
        try:
            return left[self._link.send(left) :]
        except BlockingIOError:
            return left
        except OSError as e:
            raise ReplEndedError from e

    def _receive(self) -> bytes:
        try:
            data = self._link.recv(1 << 16)
        except OSError as e:
            raise ReplEndedError from e
        if not data:
            raise ReplEndedError
        return data

    def close(self) -> None:
        """End it."""
        if hasattr(self, "process"):
            self.process.kill()
        os.close(self.output)
        self._link.close()


def _parse_answer(heard: bytes, token: str) -> dict[str, Any]:
    try:
        answer = json.loads(heard)
        if answer["token"] != token or not _is_valid_directory(str(answer["cwd"])):
            raise ReplEndedError
    except (ValueError, KeyError, TypeError, RecursionError) as e:
        raise ReplEndedError from e
    return dict(answer)


def _is_valid_directory(path: str) -> bool:
    """Whether a path can be one: code may have told it. Raises UnicodeEncodeError, a ValueError."""
    return path.startswith("/") and "\0" not in path and len(path.encode()) < _MAX_PATH
