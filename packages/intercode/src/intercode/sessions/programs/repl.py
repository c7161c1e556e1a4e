"""One live interpreter for the whole episode, in any language of ``core/languages.py`` that has
one. Definitions carry over from action to action.

An action that does not end, because it timed out or ended the interpreter, is undone: a new
interpreter runs the earlier actions again. So the earlier definitions exist, and the same actions
give the same state in a new sandbox. Changes to files are not undone, and may happen twice.

The session talks to the interpreter in JSON, one object a line, on descriptor 3. Requests are
``{"token", "do": "run", "code"}``, ``{"do": "call", "entry", "args"}`` and ``{"do": "chdir",
"path"}``. The answer has the token, ``cwd`` and, by request, ``ok`` (the code raised nothing),
``value`` (what a function returned, as JSON text) or ``error``. By the time of the answer the
interpreter has written the code's output, and the value that a prompt would show.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import socket
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

from intercode.core.decoding import decode_as, parse_json
from intercode.core.errors import SandboxError
from intercode.core.languages import Language, Repl
from intercode.core.types import ExecResult
from intercode.core.types.untrusted import parse_untrusted
from intercode.sessions.base import (
    SessionState,
    action_collector,
    is_infrastructure_failure,
    killed_or_ended,
)
from intercode.sessions.paths import from_programs, to_programs
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.limit_messages import with_limit_note
from intercode_sandbox.long_output import Collector
from intercode_sandbox.streams import BaseProcess, decode, drain, drain_once, poll_milliseconds

_LINK_FD = 3
_MAX_ANSWER = 16 << 20  # bytes of an answer
_MAX_PATH = 4096  # bytes


class ReplEndedError(Exception):
    """The interpreter has ended, or can no longer be trusted."""


class ReplProcess:
    """A running interpreter with two channels: its output, and a socket for requests.

    Raises FileNotFoundError or PermissionError if the image has no such interpreter.
    """

    def __init__(self, sandbox: BaseSandbox, repl: Repl, cwd: str) -> None:
        self.output, remote_output = os.pipe()
        self._link, remote = socket.socketpair()
        argv = [argument.replace("{driver}", repl.driver) for argument in repl.argv]
        try:
            fds = {1: remote_output, 2: remote_output, _LINK_FD: remote.fileno()}
            self.process: BaseProcess = sandbox.spawn(argv, cwd=cwd, fds=fds)
        except BaseException:
            self.close()
            raise
        finally:
            os.close(remote_output)
            remote.close()
        os.set_blocking(self.output, False)
        self._link.setblocking(False)

    def request(
        self, request: dict[str, Any], into: Collector, timeout: float
    ) -> dict[str, Any] | None:
        """Send a request and return the answer, or None after ``timeout`` seconds or too long a
        silence. Raises ReplEndedError."""
        token = secrets.token_hex(8)
        left = memoryview(json.dumps({"token": token, **request}).encode() + b"\n")
        received, deadline = b"", time.monotonic() + timeout
        into.silence.begin()
        poll = select.poll()
        for fd in (self.output, self.process.fileno()):
            poll.register(fd, select.POLLIN)
        poll.register(self._link, select.POLLIN | select.POLLOUT)
        while (wait := into.silence.left(deadline)) > 0:
            ready = dict(poll.poll(poll_milliseconds(wait)))
            if self.output in ready and not drain_once(self.output, into):
                poll.unregister(self.output)
            events = ready.get(self._link.fileno(), 0)
            if events & select.POLLIN:
                received += self._receive()
                if received.endswith(b"\n"):
                    drain(self.output, into)
                    return _parse_answer(received, token)
            elif self.process.fileno() in ready or events & (select.POLLHUP | select.POLLERR):
                drain(self.output, into)
                raise ReplEndedError
            elif events & select.POLLOUT:
                left = self._send(left)
                if not left:
                    poll.modify(self._link, select.POLLIN)
            if len(received) > _MAX_ANSWER:
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
        """End the interpreter."""
        if hasattr(self, "process"):
            self.process.kill()
        os.close(self.output)
        self._link.close()


def _parse_answer(received: bytes, token: str) -> dict[str, Any]:
    try:
        answer = parse_untrusted(received)
        if answer["token"] != token or not _is_valid_directory(str(answer["cwd"])):
            raise ReplEndedError
    except (ValueError, KeyError, TypeError) as e:
        raise ReplEndedError from e
    return dict(answer)


def _is_valid_directory(path: str) -> bool:
    """Return whether a path, which the agent's code may have sent, can be that of a directory.

    Raises UnicodeEncodeError (a ValueError) for lone surrogates.
    """
    return path.startswith("/") and "\0" not in path and len(path.encode()) < _MAX_PATH


START_SECONDS = 20.0
_UNDONE_NOTE = "[the interpreter ended: a new one ran the actions before this one again]\n"
_RESTARTED_NOTE = "[the interpreter ended: a new one was started, without its variables]\n"


class ReplSession:
    """A session in a live interpreter; see ``Session``.

    ``state`` is restored by running its actions again, each for at most ``rerun_timeout`` seconds.
    Raises SandboxError if the image has no such interpreter.
    """

    ends_with_sandbox = True

    def __init__(
        self,
        sandbox: BaseSandbox,
        language: Language,
        cwd: str = "/",
        state: SessionState | None = None,
        rerun_timeout: float = START_SECONDS,
    ) -> None:
        if language.repl is None:
            raise SandboxError(f"there is no live interpreter of {language.title} in the table")
        self._sandbox, self._repl, self.language = sandbox, language.repl, language
        self._cwd = cwd
        self._actions: list[str] = []
        try:
            self._process: ReplProcess | None = self._start(START_SECONDS)
        except (FileNotFoundError, PermissionError) as e:
            raise SandboxError(missing_language_message(language, e)) from e
        if state is not None:
            self.rerun(state, rerun_timeout)

    @property
    def cwd(self) -> str:
        return self._cwd

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions that led to the interpreter's state."""
        return tuple(self._actions)

    @property
    def output_limit(self) -> int:
        """The number of bytes of an output that are recorded."""
        return self._sandbox.spec.limits.output

    def other_processes(self, processes: tuple[str, ...]) -> tuple[str, ...]:
        """Return those of a sandbox's processes, given as ``name (pid)``, that are not the
        interpreter."""
        suffix = f"({self._process.process.pid})" if self._process else None
        return tuple(name for name in processes if suffix is None or not name.endswith(suffix))

    def state(self) -> SessionState:
        """Return the directory, and the actions as JSON."""
        return SessionState(self._cwd, json.dumps(self._actions))

    def state_text(self) -> str:
        """Return the actions, because the definitions depend only on them."""
        return json.dumps(self._actions)

    def rerun(self, state: SessionState, timeout: float) -> None:
        """Restore a state by running its actions again, each for at most ``timeout`` seconds.

        Raises DataError if the state does not hold a list of actions.
        """
        for code in _decode_actions(state.text or "[]"):
            self.run(code, timeout)
        self.change_directory(state.cwd)

    def change_directory(self, cwd: str) -> None:
        """Change to a directory, if it exists."""
        if self._process is not None:
            request = {"do": "chdir", "path": to_programs(self._sandbox, cwd)}
            with suppress(ReplEndedError):  # the next action reports it
                answer = self._process.request(request, Collector(0), START_SECONDS)
                if answer:
                    self._cwd = from_programs(self._sandbox, str(answer["cwd"]))

    def _start(self, timeout: float) -> ReplProcess:
        """Start an interpreter. Raises SandboxError if it does not answer within ``timeout``
        seconds."""
        cwd = self._cwd
        try:
            process = ReplProcess(self._sandbox, self._repl, cwd)
        except (FileNotFoundError, NotADirectoryError):
            if cwd == "/":
                raise
            process = ReplProcess(self._sandbox, self._repl, "/")  # the directory was removed
        try:
            answer = process.request({"do": "run", "code": ""}, Collector(0), timeout)
        except ReplEndedError:
            answer = None
        if answer is None:
            process.close()
            raise SandboxError(f"{self._repl.argv[0]} did not start within {timeout:.2g} s")
        self._cwd = from_programs(self._sandbox, str(answer["cwd"]))
        return process

    # ------------------------------------------------------------------ running
    def run(self, code: str, timeout: float) -> ExecResult:
        return with_limit_note(self._sandbox, self._run(code, timeout), timeout)

    def _run(self, code: str, timeout: float) -> ExecResult:
        collector = action_collector(self._sandbox)
        deadline, mark = time.monotonic() + timeout, self._sandbox.mark()
        answer: dict[str, Any] | None = None
        try:
            process = self._process = self._process or self._start(timeout + START_SECONDS)
            answer = process.request(
                {"do": "run", "code": code}, collector, deadline - time.monotonic()
            )
        except ReplEndedError:
            pass
        except (OSError, SandboxError) as e:
            if is_infrastructure_failure(e):
                raise
            return ExecResult("", 127, note=f"[no interpreter can be started: {e}]\n")
        if answer is None:
            return self._undo_action(collector, collector.silence.is_over(deadline), mark)
        self._actions.append(code)
        self._cwd = from_programs(self._sandbox, str(answer["cwd"]))
        status = 0 if answer.get("ok") else 1
        return ExecResult(decode(collector.bytes()), status, omitted_bytes=collector.dropped)

    def _undo_action(self, collector: Collector, timed_out: bool, mark: int) -> ExecResult:
        """Replace the interpreter after an action that did not end, and return the action's
        result."""
        status = self._stop_interpreter(timed_out)
        self._sandbox.kill_since(mark)
        result = killed_or_ended(collector, status, timed_out)
        note = _UNDONE_NOTE if self._restart_and_rerun() else _RESTARTED_NOTE
        return replace(result, note=note)

    def _stop_interpreter(self, timed_out: bool) -> int | None:
        """End the interpreter. Return its exit status if it had ended by itself."""
        process, self._process = self._process, None
        if process is None:
            return None
        status = None if timed_out else process.process.wait(0.5)
        process.close()
        return status

    def _restart_and_rerun(self) -> bool:
        """Start a new interpreter and run the actions so far. Return whether all of them ran."""
        actions, self._actions = self._actions, []
        try:
            self._process = self._start(START_SECONDS)
            for code in actions:
                request = {"do": "run", "code": code}
                if self._process.request(request, Collector(0), START_SECONDS) is None:
                    raise ReplEndedError
                self._actions.append(code)
        except (ReplEndedError, OSError, SandboxError) as e:
            if is_infrastructure_failure(e):
                raise
            self._stop_interpreter(timed_out=True)
            self._actions = []
            return False
        return True

    def call(
        self, entry: str, arguments: list[Any], into: Collector, timeout: float
    ) -> dict[str, Any] | None:
        """Call a function of the interpreter with plain arguments.

        Returns ``{"value": JSON text}`` or ``{"error": reason}``, or None at the timeout. Raises
        ReplEndedError if the interpreter has ended.
        """
        if self._process is None:
            raise ReplEndedError
        request = {"do": "call", "entry": entry, "args": arguments}
        return self._process.request(request, into, timeout)

    def restart(self) -> bool:
        """Start a new interpreter and run the actions so far, after a call that did not return."""
        self._stop_interpreter(timed_out=True)
        return self._restart_and_rerun()

    def close(self) -> None:
        self._stop_interpreter(timed_out=True)


def missing_language_message(language: Language, error: OSError) -> str:
    """Return the error message for an image that lacks the programs of a language."""
    from intercode_sandbox.images.recipes.packaged import load_recipe

    packages = " ".join(language.packages) or "the language's programs"
    in_recipe = language.packages and {*language.packages} <= {*load_recipe("code").packages}
    example = ", such as recipe:code (`intercode image build code`)" if in_recipe else ""
    return (
        f"the image cannot run {language.title} ({error}): use one that has {packages} and "
        f"the directory of the task{example}"
    )


def _decode_actions(text: str) -> tuple[str, ...]:
    where = "'state.text' of a REPL"
    actions: tuple[str, ...] = decode_as(tuple[str, ...], parse_json(text, where), where)
    return actions
