"""Controls a Python interpreter in a sandbox, and its forks.

Every process has a socket, and this module holds the other end. A fork gets its socket with the
request, and a waiting fork ends when its socket is closed. Answers come from a process that has run
the agent's code, and are parsed as untrusted input.
"""

from __future__ import annotations

import array
import importlib.util
import marshal
import os
import secrets
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from intercode.core.errors import SandboxError
from intercode_sandbox.contract import SCRIPT_FD, BaseSandbox
from intercode_sandbox.long_output import Collector
from intercode_sandbox.streams import BaseProcess, drain, drain_once, memory_file, poll_milliseconds

CONTROL_FD = 63  # descriptor number in the interpreter
_MAX_ANSWER = 8 << 20
_NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)  # Python ignores the signal itself
_MAX_PID_DIGITS = 9  # digits of a process number
_REQUEST_SECONDS = 30.0  # timeout of requests that take a millisecond in a healthy interpreter
_BOOTSTRAP = (
    f"import marshal,builtins as b\nwith open({SCRIPT_FD},'rb',0) as f:s=f.read()\n"
    "import _frozen_importlib_external as e\nm,c,s=marshal.loads(s)\n"
    "g={'__builtins__':vars(b).copy(),'__name__':'<intercode>'}\n"
    "exec(marshal.loads(c) if m==e.MAGIC_NUMBER else compile(s,'<intercode>','exec',0,True),g)\n"
    "h=g['main']()\n"
    "while not h.ending:\n"
    " try:\n"
    "  while not h.ending:\n"
    "   try:\n"
    "    for _ in h.codes:pass\n"
    "   except:\n"
    "    for h.raised in h.failures:break\n"
    " except:\n"  # an interrupt that came with the exception
    "  for h.raised in h.failures:break\n"
    "raise h.ending"
)
"""Gives the guest's code its own copy of the builtins, so that an agent does not replace them by
accident, and executes the actions that it yields. What they raise goes to the guest."""


class InterpreterEndedError(Exception):
    """The interpreter has ended, or can no longer be trusted."""


class SocketClosedError(InterpreterEndedError):
    """The interpreter has closed its socket."""


class InterpreterRefusedError(Exception):
    """The interpreter refuses a request; the message is the reason."""


@cache
def guest_module(module: str | Path) -> tuple[bytes, bytes, str]:
    """Return a module of guest/, or another file, for the interpreter to load.

    Returns the magic number of this Python, the code that it compiled (for a Python of the same
    version) and the source text (for any other).
    """
    path = Path(__file__).parent / "guest" / f"{module}.py" if isinstance(module, str) else module
    text = path.read_text("utf-8")
    code = compile(text, "<intercode>", "exec", 0, True)
    return importlib.util.MAGIC_NUMBER, marshal.dumps(code), text


class Interpreter:
    """One process. ``pid`` is its number in the sandbox, as the process reports it.
    ``loaded_modules`` are the guest modules that it has loaded besides server.py."""

    def __init__(
        self,
        sandbox: BaseSandbox,
        control: socket.socket,
        output: SharedDescriptor,
        process: BaseProcess | None = None,
    ) -> None:
        self.sandbox, self.control, self.process = sandbox, control, process
        self._output = output.acquire()
        self.pid = process.pid if process is not None else 0
        self.loaded_modules: frozenset[str | Path] = frozenset()
        self._token, self._received = "", bytearray()
        self._pending_notifications: set[bytes] = set()  # tokens whose answers are discarded
        control.setblocking(False)

    @classmethod
    def start(cls, sandbox: BaseSandbox, program: str, cwd: str, timeout: float) -> Interpreter:
        """Start an interpreter.

        Raises FileNotFoundError or PermissionError if the program cannot be run, SandboxError if it
        does not answer within ``timeout`` seconds.
        """
        with memory_file(marshal.dumps(guest_module("server"), 2)) as code:

            def spawn(fds: dict[int, int]) -> BaseProcess:
                argv = [program, "-S", "-c", _BOOTSTRAP]
                return sandbox.spawn(argv, cwd=cwd, fds={**fds, SCRIPT_FD: code.fileno()})

            started = cls.connect(sandbox, spawn)
        started._wait_until_ready(program, timeout)
        return started

    @classmethod
    def connect(
        cls, sandbox: BaseSandbox, spawn: Callable[[dict[int, int]], BaseProcess]
    ) -> Interpreter:
        """Return a process that ``spawn`` starts with these descriptors: its output and socket."""
        local, remote = socket.socketpair()
        output, output_end = os.pipe()
        os.set_blocking(output, False)
        try:
            process = spawn({1: output_end, 2: output_end, CONTROL_FD: remote.fileno()})
        except BaseException:
            local.close()
            os.close(output)
            raise
        finally:
            remote.close()
            os.close(output_end)
        return cls(sandbox, local, SharedDescriptor(output), process)

    def _wait_until_ready(self, program: str, timeout: float) -> None:
        output_text = Collector(1 << 12)
        with suppress(InterpreterEndedError):
            if self.wait(output_text, timeout) is not None:
                return
        drain(self.output, output_text)
        self.close()
        reason = output_text.bytes().decode("utf-8", "replace").strip()[-300:]
        raise SandboxError(f"{program} did not start within {timeout:.2g} s: {reason}")

    # -------------------------------------------------------------- requests
    def request(
        self,
        name: str,
        *arguments: Any,
        into: Collector | None = None,
        timeout: float,
        fds: Sequence[int] = (),
    ) -> str | None:
        """Send a request and wait for the answer; None after ``timeout`` seconds.

        Raises InterpreterEndedError, and InterpreterRefusedError with the reason.
        """
        deadline = time.monotonic() + timeout
        if fds:  # over a connection to a remote sandbox, they would come with an earlier request
            self._await_notifications(deadline)
        self._token = secrets.token_hex(8)
        if not self._send(self._token, name, arguments, fds, timeout):
            return None
        return self.wait(into, deadline - time.monotonic())

    def notify(self, name: str, *arguments: Any) -> None:
        """Send a request without waiting for its answer. Raises InterpreterEndedError."""
        token = secrets.token_hex(8)
        self._pending_notifications.add(token.encode())
        self._send(token, name, arguments, (), _REQUEST_SECONDS)

    def _await_notifications(self, deadline: float) -> None:
        """Wait until the notifications are answered."""
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        while self._pending_notifications and (left := deadline - time.monotonic()) > 0:
            if poll.poll(poll_milliseconds(left)):
                self._receive()

    def _send(
        self, token: str, name: str, arguments: Sequence[Any], fds: Sequence[int], timeout: float
    ) -> bool:
        body = marshal.dumps((token, name, *arguments), 2)
        data = b"%08x" % len(body) + body
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            wait = poll_milliseconds(max(timeout, 0.001))
            self.control.settimeout(wait and wait / 1000)
            sent = self.control.sendmsg([data], rights, _NO_SIGNAL)
            if sent < len(data):
                self.control.sendall(data[sent:], _NO_SIGNAL)
            self.control.setblocking(False)
        except TimeoutError:
            return False
        except OSError as e:
            raise InterpreterEndedError from e
        return True

    def wait(self, into: Collector | None, timeout: float) -> str | None:
        """Wait for the answer to the last request; see ``request``. Output goes to ``into``."""
        deadline = time.monotonic() + timeout
        into = into or Collector(0)
        into.silence.begin()
        poll = select.poll()
        ends = self.process.fileno() if self.process is not None and self.process.fileno() else -1
        for fd in (self.control.fileno(), self.output, ends):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        while (left := into.silence.left(deadline)) > 0:
            ready = [fd for fd, _ in poll.poll(poll_milliseconds(left))]
            if self.output in ready and not drain_once(self.output, into):
                poll.unregister(self.output)
            if self.control.fileno() in ready:
                try:
                    if (answer := self._receive()) is not None:
                        return answer
                except SocketClosedError:  # the process may go on, as another program
                    if ends < 0:
                        raise
                    poll.unregister(self.control.fileno())
            elif ends in ready:
                raise InterpreterEndedError
        return None

    def _receive(self) -> str | None:
        """Read what has arrived. Return the answer if it is complete."""
        try:
            data = self.control.recv(1 << 18)
        except BlockingIOError:
            return None
        except OSError as e:
            raise InterpreterEndedError from e
        if not data:
            raise SocketClosedError
        self._received += data
        if len(self._received) > _MAX_ANSWER:
            raise InterpreterEndedError
        if b"\0" not in data:
            return None
        while b"\0" in self._received:
            output_text, _, self._received = self._received.partition(b"\0")
            token, _, answer = bytes(output_text).partition(b" ")
            if token in self._pending_notifications:
                self._pending_notifications.remove(token)
            elif token != self._token.encode() or self._received:
                raise InterpreterEndedError
            elif answer.startswith(b"!"):
                raise InterpreterRefusedError(answer[1:200].decode("utf-8", "replace"))
            else:
                return answer.decode("utf-8", "surrogateescape")
        return None

    def load_module(self, module: str | Path) -> None:
        """Load a guest module, unless it is loaded already. Raises InterpreterEndedError."""
        if module not in self.loaded_modules:
            if self.request("load", *guest_module(module), timeout=_REQUEST_SECONDS) is None:
                raise InterpreterEndedError
            self.loaded_modules |= {module}

    # ----------------------------------------------------------------- forks
    def fork(self, purpose: str, timeout: float) -> Interpreter:
        """Fork the process and return the fork, which waits for requests.

        ``purpose``: a ``backup`` is refused if it would lack threads; a ``snapshot`` also if it
        would share files open for writing; ``any`` only if no
        process can be started; a ``test`` stays a child of
        the process, and becomes a zombie when it ends.

        Raises InterpreterRefusedError with the reason, InterpreterEndedError.
        """
        local, remote = socket.socketpair()
        copy = Interpreter(self.sandbox, local, self._output)
        try:
            with remote:
                answer = self.request("fork", purpose, timeout=timeout, fds=[remote.fileno()])
            copy._token, copy.loaded_modules = self._token, self.loaded_modules
            try:
                pid_text = copy.wait(None, timeout) if answer == "0" else None
            except InterpreterEndedError:  # the second process of a fork had no room
                raise InterpreterRefusedError("no process can be started") from None
            if pid_text is None or not pid_text.isdigit() or len(pid_text) > _MAX_PID_DIGITS:
                raise InterpreterEndedError
        except BaseException:
            copy.close()
            raise
        copy.pid = int(pid_text)
        return copy

    def run_program(self, code: str, stdin: str, into: Collector, timeout: float) -> str | None:
        """Run a whole program with ``stdin`` as its input; see ``request``. Needs the module
        ``values``."""
        with memory_file(stdin.encode("utf-8", "surrogatepass")) as file:
            return self.request("program", code, into=into, timeout=timeout, fds=[file.fileno()])

    def interrupt(self) -> None:
        """Send SIGINT, like Ctrl-C."""
        self.sandbox.signal(self.pid, signal.SIGINT)

    def kill(self) -> None:
        """Kill the process."""
        self.sandbox.signal(self.pid, signal.SIGKILL)

    def exit_status(self, timeout: float) -> int:
        """Return the exit status once the process has ended; 1 if it is unknown, as for a fork."""
        code = self.process.wait(timeout) if self.process is not None else None
        return 1 if code is None else code

    @property
    def output(self) -> int:
        """The descriptor from which the output of the process and its forks is read."""
        return self._output.fd

    def close(self) -> None:
        """Close the socket: the process ends when it next waits for a request. May be called
        again."""
        if self.control.fileno() >= 0:
            self.control.close()
            self._output.release()


class SharedDescriptor:
    """A descriptor that is closed when its last user releases it."""

    def __init__(self, fd: int) -> None:
        self.fd, self._users, self._lock = fd, 0, threading.Lock()

    def acquire(self) -> SharedDescriptor:
        with self._lock:
            self._users += 1
        return self

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                os.close(self.fd)
