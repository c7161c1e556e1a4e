"""A running bash and the three channels to it: its script, its output, its reports."""

from __future__ import annotations

import os
import re
import secrets
import select
import shlex
import signal
import socket
import time
from contextlib import suppress
from dataclasses import replace

from intercode.core.types import ExecResult
from intercode.sandbox.contract import SCRIPT_LINK, Process, Sandbox
from intercode.sandbox.output import Collector, decode, drain, drain_once
from intercode.sessions.base import SessionState

DUMP_SCRIPT = (
    "builtin :\n{{ (builtin trap - DEBUG; builtin printf '%s\\n' {token} "
    "'builtin unset -v IFS PS4 PATH HOME HOSTNAME OPTIND OPTERR'; builtin declare -p; "
    "builtin declare -f; builtin alias -p; builtin shopt -p; builtin umask -p; "
    "builtin printf 'set --'; (($#)) && builtin printf ' %q' \"$@\"; builtin printf '\\n'; "
    "builtin set +o); builtin trap -p; builtin printf '%s\\0' {token}; }} 2>&- >&{report}\n"
)
"""Writes the state to the report descriptor, between two tokens, a NUL byte behind it. Options come
late: some of them, once set, would end the shell that restores; traps last: one for DEBUG would run
at every line. The first line is for bash's parser, which an unterminated quote in the action leaves
confused for one line. What every bash begins with is unset first: it may have been unset, or no
longer be exported. Nothing is opened, which a restricted shell may not."""

_MAY_END_SHELL = re.compile(
    r"\b(exit|exec|logout|kill|killall|pkill|set|trap|return|suspend|ulimit|unset|builtin|enable"
    r"|source|eval|printf)\b|(^|[;&|]|\s)\.\s|\$\$"
)


def may_end_shell(code: str) -> bool:
    """Whether an action looks as if it could end or cripple the shell that runs it."""
    return _MAY_END_SHELL.search(code) is not None


START_SECONDS = 10.0
_SCRIPT_FD, _REPORT_FD = 62, 63  # descriptor numbers in the shell
_MAX_RECORD = 16 << 20
_MAX_HEREDOC = 1000  # characters: longer here-documents would be put into a file of the box
_INIT_SCRIPT = "exec {script}<&-; trap {stop} RTMAX; cd {cwd} 2>/dev/null || cd /; unset OLDPWD\n"
_STOP_TRAP = (
    "shopt -s extdebug; trap 'case $BASH_COMMAND in (builtin\\ *{report}*|builtin\\ trap*"
    "|builtin\\ shopt*) builtin : ;; (*) break 1000 2>/dev/null; builtin false ;; esac' DEBUG"
)
"""What a shell does when it is told to give up an action: from then on every command but our own
leaves all loops or, by way of bash's extdebug, is skipped because the DEBUG trap fails."""
_RESUME_SCRIPT = "builtin trap - DEBUG; builtin shopt -u extdebug; builtin jobs >/dev/null 2>&1\n"
"""The last of it has bash take note of what was killed in the background: else it would say so in
the next action."""
_STATUS_FORM = re.compile("[0-9]{1,3}")
_SET_STATUS = "(exit {status}) && builtin :\n"
_REPORT_SCRIPT = 'builtin printf "%s %s %s\\0" {token} "$?" "$PWD" >&{report}\n'
_ACCEPTANCE_SCRIPT = (
    "{{ builtin . /dev/{name} {script}<<'{word}'\nbuiltin :\n{word}\n"
    'builtin printf "%s %s\\0" {word} "$?" >&{report}; }} 2>&-\n'
)
_SILENT_SCRIPT = "exec 60>&1 61>&2 >/dev/null 2>&1\n{text}\nexec >&60 2>&61 60>&- 61>&-\n"


class ShellEndedError(Exception):
    """The shell is no longer there, or no longer to be trusted."""


class Shell:
    """A running shell and the three channels to it; with ``apart`` a fourth, its stderr."""

    def __init__(self, sandbox: Sandbox, program: str, separate_stderr: bool = False) -> None:
        script_r, self.script = os.pipe()
        self.output, out_w = os.pipe()
        self.errors, err_w = os.pipe() if separate_stderr else (-1, os.dup(out_w))
        self.stderr_collector, self._output_collector = Collector(1 << 12), Collector(0)
        self.report, theirs = socket.socketpair()
        self._token, self._trace_line, self._status = "", b"", 0
        try:
            self.process: Process = sandbox.spawn(
                [program, "--norc", "--noprofile", SCRIPT_LINK],
                cwd="/dev",
                fds={1: out_w, 2: err_w, _SCRIPT_FD: script_r, _REPORT_FD: theirs.fileno()},
            )
        except BaseException:
            self.close()
            raise
        finally:
            os.close(script_r)
            os.close(out_w)
            os.close(err_w)
            theirs.close()
        os.set_blocking(self.script, False)
        os.set_blocking(self.output, False)
        if separate_stderr:
            os.set_blocking(self.errors, False)
        self.report.setblocking(False)

    def initialize(self, cwd: str, timeout: float) -> tuple[int, str] | None:
        """The first thing a shell is told: where it is, and how to be broken out of a loop."""
        stop = shlex.quote(_STOP_TRAP.format(report=_REPORT_FD))
        hello = _INIT_SCRIPT.format(script=_SCRIPT_FD, cwd=shlex.quote(cwd), stop=stop)
        return self.run_script(hello, None, timeout)

    def execute(self, code: str, collector: Collector, timeout: float) -> tuple[int, str] | None:
        """Run a piece of code, with ``$?`` as the last one left it; see ``drive``.

        It is sourced, so that line numbers in messages begin at 1 each time; what is longer than
        bash hands over in memory is evaluated.
        """
        command = f"builtin . /dev/{SCRIPT_LINK}"
        text = f"{command} {_SCRIPT_FD}<<'{(word := secrets.token_hex(8))}'\n{code}\n{word}\n"
        if len(code) > _MAX_HEREDOC:
            command = f"builtin eval {shlex.quote(code)}"
            text = f"{command}\n"
        self.stderr_collector, self._output_collector = Collector(collector.limit), collector
        self._trace_line = f"+ {command}\n".encode("utf-8", "replace")
        before = _SET_STATUS.format(status=self._status) if self._status else ""
        return self.run_script(before + text, collector, timeout)

    def seed(self, number: int, timeout: float) -> None:
        """Let ``$RANDOM`` go on from a number; ``$?`` stays. Raises ShellEndedError."""
        status = self._status
        if self.run_script(f"RANDOM={number} 2>/dev/null\n", None, timeout) is None:
            raise ShellEndedError("the shell does not answer")
        self._status = status

    def stop(self) -> None:
        """Tell the shell to give up the action that it is running, once its command has ended."""
        self.process.kill(signal.SIGRTMAX)

    def resume_after_stop(self, timeout: float) -> tuple[int, str] | None:
        """Wait for the report of an action that was given up, and be ready for the next."""
        report = self.run_script("", None, timeout)
        if report is not None:
            self.run_script(_RESUME_SCRIPT, None, timeout)
            self._status = report[0]
        return report

    def restore(self, state: str, timeout: float) -> tuple[int, str] | None:
        """Give the shell a dumped state; see ``drive``. What is read-only stays as it is."""
        return self.run_script(_SILENT_SCRIPT.format(text=state), None, timeout)

    def run_script(
        self, text: str, collector: Collector | None, timeout: float
    ) -> tuple[int, str] | None:
        """Feed the shell and wait for its report: (exit status, directory), or None at the
        time-out. An empty text waits for the report of the last one. Raises ShellEndedError."""
        if text:
            self._token = secrets.token_hex(8)
            text += _REPORT_SCRIPT.format(token=self._token, report=_REPORT_FD)
        record = self._exchange(text, collector or Collector(1 << 12), timeout)
        return None if record is None else self._parse_report(record)

    def dump_state(self, timeout: float = START_SECONDS) -> str:
        """What the shell knows (see shell_state). Raises ShellEndedError where it does not say, or
        somebody else in the box says something."""
        token = secrets.token_hex(8)
        text = DUMP_SCRIPT.format(report=_REPORT_FD, token=token)
        record = self._exchange(text, Collector(1 << 12), timeout)
        if record is None:
            raise ShellEndedError
        said = record.decode("utf-8", "surrogateescape")
        if not said.startswith(f"{token}\n") or not said.endswith(f"{token}\0"):
            raise ShellEndedError
        return said[len(token) + 1 : -len(token) - 1]

    def accepts_actions(self, timeout: float) -> bool:
        """Whether code that is handed over is run: not in a shell that was left without free
        descriptors, was restricted, or has lost a builtin."""
        word = secrets.token_hex(8)
        text = _ACCEPTANCE_SCRIPT.format(
            script=_SCRIPT_FD, name=SCRIPT_LINK, word=word, report=_REPORT_FD
        )
        record = self._exchange(text, Collector(1 << 12), timeout)
        return record == f"{word} 0\0".encode()

    def read_output(self, collector: Collector) -> bytes:
        """What was collected and is there now, without the trace of our own line (``set -x``)."""
        drain(self.output, collector)
        return self._strip_trace(collector.bytes())

    def read_stderr(self) -> str | None:
        """What the last action wrote to stderr, where that is apart."""
        if self.errors < 0:
            return None
        drain(self.errors, self.stderr_collector)
        return decode(self._strip_trace(self.stderr_collector.bytes()))

    def _strip_trace(self, data: bytes) -> bytes:
        data = data.removeprefix(self._trace_line)
        token = data.find(self._token.encode())
        start = data.rfind(b"builtin printf", 0, token) if token >= 0 else -1
        if start < 0:
            return data
        return data[:start].rstrip(b" ").rstrip(b"+") + data[data.find(b"\n", token) + 1 :]

    def _exchange(self, text: str, collector: Collector, timeout: float) -> bytes | None:
        deadline = time.monotonic() + timeout
        left = memoryview(_encode(text))
        if timeout > 0:
            left = self._write_script(left)
        poll = select.poll()
        streams = {self.output: collector}
        if self.errors >= 0:
            streams[self.errors] = (
                self.stderr_collector if collector is self._output_collector else Collector(0)
            )
        for fd in (*streams, self.report.fileno(), self.process.fileno()):
            poll.register(fd, select.POLLIN)
        if left:
            poll.register(self.script, select.POLLOUT)
        record = b""
        while (wait := deadline - time.monotonic()) > 0:
            ready = dict(poll.poll(wait * 1000))
            if self.script in ready:
                left = self._write_script(left)
                if not left:
                    poll.unregister(self.script)
            for fd, into in streams.items():
                if fd in ready and not drain_once(fd, into):
                    poll.unregister(fd)
            if self.report.fileno() in ready:
                record += self._receive_report()
                if record.endswith(b"\0"):
                    return record
                if len(record) > _MAX_RECORD:
                    raise ShellEndedError
            elif self.process.fileno() in ready:
                raise ShellEndedError
        return None

    def _write_script(self, left: memoryview) -> memoryview:
        try:
            return left[os.write(self.script, left[:4096]) :]
        except BlockingIOError:
            return left
        except BrokenPipeError as e:
            raise ShellEndedError from e

    def _receive_report(self) -> bytes:
        data = self.report.recv(1 << 16)
        if not data:
            raise ShellEndedError
        return data

    def _parse_report(self, report: bytes) -> tuple[int, str]:
        try:
            token, status, cwd = report[:-1].decode("utf-8", "surrogateescape").split(" ", 2)
        except ValueError as e:
            raise ShellEndedError from e
        if token != self._token or not _STATUS_FORM.fullmatch(status) or not cwd.startswith("/"):
            raise ShellEndedError
        self._status = int(status)
        return self._status, cwd

    def close(self) -> None:
        for fd in (self.script, self.output, *([self.errors] if self.errors >= 0 else [])):
            os.close(fd)
        self.report.close()


def _encode(text: str) -> bytes:
    """Text as bytes: escaped bytes as they were, lone halves of a surrogate pair as ``?``."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def start_shell(
    sandbox: Sandbox, program: str, separate_stderr: bool, state: SessionState, timeout: float
) -> tuple[Shell, SessionState]:
    """A new shell, and what it knows: ``state``, or no more than its directory where no shell
    comes up with the rest in half of ``patience`` (seconds).

    Raises ShellEndedError where none comes up in time, FileNotFoundError and PermissionError where
    ``program`` cannot be run.
    """
    until = time.monotonic() + timeout
    if state.text:
        with suppress(ShellEndedError):
            return _try_start(sandbox, program, separate_stderr, state, timeout / 2)
        state = replace(state, text="")
    return _try_start(sandbox, program, separate_stderr, state, until - time.monotonic())


def _try_start(
    sandbox: Sandbox, program: str, separate_stderr: bool, state: SessionState, timeout: float
) -> tuple[Shell, SessionState]:
    until = time.monotonic() + timeout
    shell = Shell(sandbox, program, separate_stderr)
    try:
        report = shell.initialize(state.cwd, timeout)
        if report and state.text:
            report = shell.restore(state.text, until - time.monotonic())
        if report is None:
            raise ShellEndedError(f"{program} did not start within {timeout:.2g} s")
    except BaseException:
        shell.process.kill()
        shell.close()
        raise
    return shell, replace(state, cwd=report[1])


def seed_random(
    sandbox: Sandbox, shell: Shell, state: SessionState, deadline: float
) -> SessionState:
    """In a deterministic box ``$RANDOM`` depends on the number of the action alone, so that neither
    a restored shell nor one that was asked for its state goes other ways. Gives the state with the
    action counted."""
    if (settings := sandbox.spec.determinism) is None:
        return state
    counted = replace(state, actions=state.actions + 1)
    shell.seed(settings.random_seed_for(counted.actions), deadline - time.monotonic())
    return counted


def action_result(
    shell: Shell, collector: Collector, status: int | None, timed_out: bool, note: str = ""
) -> ExecResult:
    """What an action printed and how it ended."""
    said, complained = decode(shell.read_output(collector)), shell.read_stderr()
    cut = collector.dropped + shell.stderr_collector.dropped
    return ExecResult(said, status, timed_out, cut, complained, note)
