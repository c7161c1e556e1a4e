"""Starts, asks and kills processes that parse actions for policies.

The time of a parser can grow with the square of an action's length or faster, and a parser that
crashes ends its process. Therefore the owner's process parses no action. Requests and answers are
lines of JSON, so that a process that an action has harmed cannot harm the owner.
"""

from __future__ import annotations

import atexit
import json
import signal
import subprocess
import threading
import time
from contextlib import suppress
from typing import Any

from intercode.core.errors import SandboxUnavailableError
from intercode_sandbox.host.services import run_after_fork
from intercode_sql.worker.service_start import start_service

PARSE_SECONDS = 2.0
"""Limit of an action in processor time, which does not depend on how busy the machine is."""
_WALL_SECONDS = 60.0
"""Limit of an action in time of the clock, for a process that gets no processor."""
_HAS_TIMERS = hasattr(signal, "setitimer")
_SECONDS_WITHOUT_TIMERS = 10.0
"""Limit in time of the clock where no timer counts processor time."""
_MAX_ANSWER = 1 << 18
"""Size limit of an answer in bytes: the message of a rule, and some words of the action."""
_MAX_IDLE_PROCESSES = 2
_SERVICE = "intercode.environments.base.policy.parse_service"


class ParseLimitError(Exception):
    """The action was not parsed within its limits. The message says why."""


class ParseProcess:
    """A process that parses one action after another."""

    def __init__(self) -> None:
        self._process, self._channel = start_service(
            _SERVICE, stderr=subprocess.DEVNULL, inherits_environment=False
        )

    def refusal(self, request: dict[str, Any]) -> str | None:
        """Return the answer to a request. Raises ParseLimitError if the process has ended."""
        try:
            answer = self._exchange(json.dumps(request).encode() + b"\n")
        except (OSError, EOFError) as e:
            late = isinstance(e, TimeoutError) or self._was_ended_by_timer()
            limit = f"it takes more than {PARSE_SECONDS:g} s to parse"
            raise ParseLimitError(limit if late else "its parser needs too much memory") from None
        try:
            found: Any = json.loads(answer)["refusal"]
            if found is not None and not isinstance(found, str):
                raise TypeError
        except (ValueError, KeyError, TypeError, RecursionError):  # the action has harmed it
            raise ParseLimitError("its parser gave an answer that is not valid") from None
        refusal: str | None = found
        return refusal

    def _exchange(self, request: bytes) -> bytes:
        """Send a request and return the answer of bounded size. Raises OSError or EOFError."""
        seconds = _WALL_SECONDS if _HAS_TIMERS else _SECONDS_WITHOUT_TIMERS
        deadline = time.monotonic() + seconds
        self._channel.settimeout(seconds)
        self._channel.sendall(request)
        answer = bytearray()
        while not answer.endswith(b"\n") and len(answer) <= _MAX_ANSWER:
            if (left := deadline - time.monotonic()) <= 0:
                raise TimeoutError
            self._channel.settimeout(left)
            part = self._channel.recv(1 << 16)
            if not part:
                raise EOFError
            answer += part
        return bytes(answer) if len(answer) <= _MAX_ANSWER else b""

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def _was_ended_by_timer(self) -> bool:
        """Return whether the timer has ended a process that has closed its channel."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_WALL_SECONDS)
        return _HAS_TIMERS and self._process.returncode == -signal.SIGPROF

    def close(self) -> None:
        """End the process."""
        self._channel.close()
        self._process.kill()
        self._process.wait()

    def abandon(self) -> None:
        """Close the copy of the channel in a forked process, whose parent uses it."""
        self._channel.close()


class ParseProcesses:
    """The idle processes of this owner. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[ParseProcess] = []

    def prewarm(self) -> None:
        """Start a process if none is idle, without waiting until it is ready."""
        with self._lock:
            if not self._idle:
                self._idle.append(_start())

    def refusal(self, request: dict[str, Any]) -> str | None:
        """Return the answer of an idle or a new process. Raises ParseLimitError."""
        process = self._take()
        try:
            refusal = process.refusal(request)
        except BaseException:
            process.close()
            raise
        self._give_back(process)
        return refusal

    def _take(self) -> ParseProcess:
        with self._lock:
            process = self._idle.pop() if self._idle else None
        if process is not None and process.is_running:
            return process
        if process is not None:  # somebody has ended it
            process.close()
        return _start()

    def _give_back(self, process: ParseProcess) -> None:
        with self._lock:
            if len(self._idle) < _MAX_IDLE_PROCESSES:
                self._idle.append(process)
                return
        process.close()

    def close(self) -> None:
        """End the idle processes."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.close()

    def abandon(self) -> None:
        """Close the copies of all channels in a forked process."""
        for process in self._idle:
            process.abandon()


def _start() -> ParseProcess:
    try:
        return ParseProcess()
    except OSError as e:
        raise SandboxUnavailableError(f"no process for the policy can be started ({e})") from e


_processes = ParseProcesses()


def processes() -> ParseProcesses:
    """Return the processes of this owner."""
    return _processes


def _forget_processes() -> None:
    global _processes
    _processes.abandon()
    _processes = ParseProcesses()


run_after_fork(_forget_processes)
atexit.register(lambda: _processes.close())
