"""A bash process and the three channels to it: its script, its output and its reports.

The state of a shell can be written as text and given to another shell. The text holds variables of
every kind (arrays, exported, read-only, namerefs), functions, aliases, traps, options, umask and
positional parameters. It does not hold jobs, `$!`, open descriptors, the directory stack and
ulimits.
"""

from __future__ import annotations

import os
import re
import secrets
import select
import shlex
import socket
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace

from intercode.core.types import ExecResult
from intercode.sandbox.contract import SCRIPT_FD, BaseSandbox
from intercode.sandbox.streams import Collector, Process, decode, drain, drain_once, memory_file
from intercode.sandbox.users import User
from intercode.sessions.base import SessionState

DUMP_SCRIPT = (
    "builtin :\nbuiltin trap -p DEBUG 2>&- >&{report}\nbuiltin trap - DEBUG\n"
    "{{ builtin printf '%s\\n' {token} "
    "'builtin unset -v IFS PS4 PATH HOME HOSTNAME OPTIND OPTERR'; builtin declare -p; "
    "builtin declare -f; builtin alias -p; builtin shopt -p; builtin umask -p; "
    "builtin printf 'set --'; (($#)) && builtin printf ' %q' \"$@\"; builtin printf '\\n'; "
    "builtin set +o; builtin trap -p; builtin printf '%s\\0' {token}; }} 2>&- >&{report}\n"
)
"""Writes to the report descriptor: the DEBUG trap, and between two tokens the rest of the state.

Like all our scripts, it starts no process: if the sandbox has no room for one, bash would retry for
15 seconds. So the DEBUG trap, which would run at every line, is removed, and set again afterwards.
Options are written late, because some of them would end the shell that restores the state. Traps
are written last. The first line is for bash's parser: an unterminated quote in the action leaves it
confused for one line. The variables with which every bash starts are unset first, because the
action may have unset them or removed their export. The script opens no file, because a restricted
shell may not.
"""

_MAY_END_SHELL = re.compile(
    r"\b(exit|logout|kill|killall|pkill|set|trap|return|suspend|ulimit|unset|builtin|enable"
    r"|source|eval|(?<!\s-)(exec|printf))\b|(^|[;&|]|\s)(?<!find )\.\s|\$\$"
)
"""Not `find .` with `-exec` or `-printf`, which start programs."""


def may_end_shell(code: str) -> bool:
    """Return whether an action may end or damage the shell that runs it, judged by its words."""
    return _MAY_END_SHELL.search(code) is not None


START_SECONDS = 10.0
_STOP_SIGNAL = 64  # SIGRTMAX of Linux, on which the shell runs wherever this runs
_REPORT_FD, _STATE_FD = 63, 59  # descriptor numbers in the shell
_MAX_RECORD = 16 << 20
_MAX_HEREDOC = 1000  # characters: bash writes longer here-documents to a file in the sandbox
_INIT_SCRIPT = (
    "exec {script}<&-; trap {stop} RTMAX; cd {cwd} 2>/dev/null || cd {root}; unset OLDPWD\n"
)
_STOP_TRAP = (
    "shopt -s extdebug; trap 'case $BASH_COMMAND in (builtin\\ *{report}*|builtin\\ trap*"
    "|builtin\\ shopt*) builtin : ;; (*) break 1000 2>/dev/null; builtin false ;; esac' DEBUG"
)
"""The trap that makes a shell give up an action. From then on, every command except ours leaves all
loops, or is skipped because the DEBUG trap fails (bash's extdebug option)."""
_RESUME_SCRIPT = "builtin trap - DEBUG; builtin shopt -u extdebug; builtin jobs >/dev/null 2>&1\n"
"""``jobs`` makes bash notice which background jobs were killed. Otherwise it would report them in
the output of the next action."""
_DEBUG_TRAP_FORM = re.compile("(trap -- '.*' DEBUG\n)?", re.DOTALL)
_STATUS_FORM = re.compile("[0-9]{1,3}")
_SET_STATUS = (
    "__status() {{ builtin unset -f __status; builtin return {status}; }}\n"
    "{{ __status; }} >&- 2>&- && builtin :\n"
)
_REPORT_SCRIPT = 'builtin printf "%s %s %s\\0" {token} "$?" "$PWD" >&{report}\n'
_ACCEPTANCE_SCRIPT = '{{ {source}builtin printf "%s %s\\0" {word} "$?" >&{report}; }} 2>&-\n'
_RESTORE_SCRIPT = (
    "exec 60>&1 61>&2 >/dev/null 2>&1\n"
    "IFS=; builtin mapfile -u {state} __state; exec {state}<&-\n"
    'builtin eval "builtin unset -v __state; ${{__state[*]}}"\n'
    "exec >&60 2>&61 60>&- 61>&-\n"
)
"""Restores the state from a file, which bash reads in blocks. It reads its script byte by byte."""


_DIRECTORY_MARK = "/@sandbox@"
"""Stands for ``BaseSandbox.host_directory`` in a state, which another sandbox may restore."""


class ShellEndedError(Exception):
    """The shell has ended, or can no longer be trusted."""


class Shell:
    """A running shell and the three channels to it. ``separate_stderr`` adds a channel for
    stderr. ``user``: who runs it; None is root. ``cwd``: its directory. ``state``: what another
    shell wrote. Its first script, which sets both, waits when it starts; see ``initialize``."""

    def __init__(
        self,
        sandbox: BaseSandbox,
        program: str,
        separate_stderr: bool = False,
        user: User | None = None,
        cwd: str = "/",
        state: str = "",
    ) -> None:
        script_r, self.script = sandbox.open_script()
        if user is not None:  # who opens it by name
            os.fchmod(script_r, 0o644)
        self._sandbox, self.program = sandbox, program
        self.output, out_w = os.pipe()
        self.errors, err_w = os.pipe() if separate_stderr else (-1, os.dup(out_w))
        self.stderr_collector, self._output_collector = Collector(1 << 12), Collector(0)
        self.report, remote = socket.socketpair()
        self._token, self._trace_line, self._status = "", b"", 0
        directory, _, name = sandbox.script_path.rpartition("/")
        self._script_path = shlex.quote(sandbox.script_path)
        text = state.replace(_DIRECTORY_MARK, sandbox.host_directory or _DIRECTORY_MARK)
        os.set_blocking(self.script, False)
        fds = {1: out_w, 2: err_w, SCRIPT_FD: script_r, _REPORT_FD: remote.fileno()}
        argv = [program, "--norc", "--noprofile", name]
        try:
            first = self._with_report(self._first_script(cwd, bool(text)))
            self._unsent = self._write_script(memoryview(_encode(first)))
            with memory_file(_encode(text)) if text else nullcontext() as file:
                if file is not None:
                    fds[_STATE_FD] = file.fileno()
                self.process: Process = sandbox.spawn_as(
                    user,
                    argv,
                    cwd=directory,
                    env={**sandbox.env, **user.env} if user else None,
                    fds=fds,
                )
        except BaseException:
            self.close()
            raise
        finally:
            os.close(script_r)
            os.close(out_w)
            os.close(err_w)
            remote.close()
        os.set_blocking(self.output, False)
        if separate_stderr:
            os.set_blocking(self.errors, False)
        self.report.setblocking(False)

    def _first_script(self, cwd: str, has_state: bool) -> str:
        """Return the script that sets the directory and the trap that stops an action, and then
        the state with which the shell was opened. Read-only variables stay unchanged."""
        stop = shlex.quote(_STOP_TRAP.format(report=_REPORT_FD))
        paths = {
            "cwd": shlex.quote(self._sandbox.shown_path(cwd)),
            "root": shlex.quote(self._sandbox.shown_path("/")),
        }
        script = _INIT_SCRIPT.format(script=SCRIPT_FD, stop=stop, **paths)
        return script + _RESTORE_SCRIPT.format(state=_STATE_FD) if has_state else script

    def initialize(self, timeout: float) -> tuple[int, str] | None:
        """Wait until the first script has run. Returns what ``run_script`` returns."""
        record = self._exchange(self._unsent, Collector(1 << 12), timeout)
        return None if record is None else self._parse_report(record)

    def _with_report(self, text: str) -> str:
        """Return a script that reports at its end."""
        self._token = secrets.token_hex(8)
        return text + _REPORT_SCRIPT.format(token=self._token, report=_REPORT_FD)

    def execute(self, code: str, collector: Collector, timeout: float) -> tuple[int, str] | None:
        """Run a piece of code with the ``$?`` that the last one left. See ``run_script``.

        The code is sourced, so that line numbers in messages start at 1 each time. Code longer than
        bash passes in memory is run with ``eval`` instead.
        """
        command = f"builtin . {self._script_path}"
        if len(code) > _MAX_HEREDOC:
            command = f"builtin eval {shlex.quote(code)}"
            text = f"{command}\n"
        else:
            text = self._source_script(command, code)
        self.stderr_collector, self._output_collector = Collector(collector.limit), collector
        self._trace_line = f"+ {command}\n".encode("utf-8", "replace")
        before = _SET_STATUS.format(status=self._status) if self._status else ""
        return self.run_script(before + text, collector, timeout)

    def _source_script(self, command: str, code: str) -> str:
        """Return a script that executes ``command``, which opens the script's path and finds the
        code there."""
        if self._sandbox.opens_descriptors:
            word = secrets.token_hex(8)
            return f"{command} {SCRIPT_FD}<<'{word}'\n{code}\n{word}\n"
        self._sandbox.write_source(_encode(f"{code}\n"))
        return f"{command}\n"

    def seed(self, number: int, timeout: float) -> None:
        """Seed ``$RANDOM`` with a number and leave ``$?`` unchanged. Raises ShellEndedError."""
        self._run_unnoticed(f"RANDOM={number} 2>/dev/null\n", timeout)

    def _run_unnoticed(self, text: str, timeout: float) -> None:
        """Run a script that leaves ``$?`` unchanged. Raises ShellEndedError."""
        status = self._status
        if self.run_script(text, None, timeout) is None:
            raise ShellEndedError("the shell does not answer")
        self._status = status

    def stop(self) -> None:
        """Tell the shell to give up the running action as soon as its current command has ended."""
        self.process.kill(_STOP_SIGNAL)

    def resume_after_stop(self, timeout: float) -> tuple[int, str] | None:
        """Wait for the report of an action that was stopped, and make the shell ready for the next
        one."""
        report = self.run_script("", None, timeout)
        if report is not None:
            self.run_script(_RESUME_SCRIPT, None, timeout)
            self._status = report[0]
        return report

    def run_script(
        self, text: str, collector: Collector | None, timeout: float
    ) -> tuple[int, str] | None:
        """Send a script to the shell and wait for its report.

        Returns (exit status, directory), or None after ``timeout`` seconds. An empty text waits for
        the report of the script before it. Raises ShellEndedError.
        """
        if text:
            text = self._with_report(text)
        record = self._exchange(_encode(text), collector or Collector(1 << 12), timeout)
        return None if record is None else self._parse_report(record)

    def dump_state(self, timeout: float = START_SECONDS) -> str:
        """Return the state of the shell as text.

        Raises ShellEndedError if the shell does not answer, or if another process in the sandbox
        writes to its report channel.
        """
        deadline, token = time.monotonic() + timeout, secrets.token_hex(8)
        text = DUMP_SCRIPT.format(report=_REPORT_FD, token=token)
        record = self._exchange(_encode(text), Collector(1 << 12), timeout)
        if record is None:
            raise ShellEndedError
        output = record.decode("utf-8", "surrogateescape")
        trap, _, state = output.partition(f"{token}\n")
        if not _DEBUG_TRAP_FORM.fullmatch(trap) or not state.endswith(f"{token}\0"):
            raise ShellEndedError
        if trap:
            self._run_unnoticed(f"builtin {trap}", deadline - time.monotonic())
        text = state[: -len(token) - 1] + trap
        directory = self._sandbox.host_directory
        return text.replace(directory, _DIRECTORY_MARK) if directory else text

    def accepts_actions(self, timeout: float) -> bool:
        """Return whether the shell still runs code.

        It does not if an action used up all descriptors, made the shell restricted, or disabled a
        builtin.
        """
        word = secrets.token_hex(8)
        source = self._source_script(f"builtin . {self._script_path}", "builtin :")
        text = _ACCEPTANCE_SCRIPT.format(source=source, word=word, report=_REPORT_FD)
        record = self._exchange(_encode(text), Collector(1 << 12), timeout)
        return record == f"{word} 0\0".encode()

    def read_output(self, collector: Collector) -> bytes:
        """Return what was collected and what can be read now, without the trace of our own line
        (``set -x``)."""
        drain(self.output, collector)
        return self._strip_trace(collector.bytes())

    def read_stderr(self) -> str | None:
        """Return what the last action wrote to stderr, or None if stderr is not separate."""
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

    def _exchange(
        self, script: bytes | memoryview, collector: Collector, timeout: float
    ) -> bytes | None:
        deadline = time.monotonic() + timeout
        left = memoryview(script)
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
        return self._status, self._sandbox.own_path(cwd)

    def close(self) -> None:
        for fd in (self.script, self.output, *([self.errors] if self.errors >= 0 else [])):
            os.close(fd)
        self.report.close()


def _encode(text: str) -> bytes:
    """Encode text for the shell: escaped bytes as they were, lone surrogates as ``?``."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def start_shell(
    start: Callable[[str, str], Shell], state: SessionState, timeout: float
) -> tuple[Shell, SessionState]:
    """Start a shell with ``start`` and give it a state. Return the shell and the state that it has.

    ``timeout`` is in seconds. If the shell does not start with the whole state in half of that
    time, a second one gets the directory only.

    Raises ShellEndedError if no shell starts in time, FileNotFoundError or PermissionError if
    its program cannot be run.
    """
    deadline = time.monotonic() + timeout
    if state.text:
        with suppress(ShellEndedError):
            return _try_start(start, state, timeout / 2)
        state = replace(state, text="")
    return _try_start(start, state, deadline - time.monotonic())


def _try_start(
    start: Callable[[str, str], Shell], state: SessionState, timeout: float
) -> tuple[Shell, SessionState]:
    shell = start(state.cwd, state.text)
    try:
        report = shell.initialize(timeout)
        if report is None:
            raise ShellEndedError(f"{shell.program} did not start within {timeout:.2g} s")
    except BaseException:
        shell.process.kill()
        shell.close()
        raise
    return shell, replace(state, cwd=report[1])


def seed_random(
    sandbox: BaseSandbox, shell: Shell, state: SessionState, deadline: float
) -> SessionState:
    """Seed ``$RANDOM`` before an action in a deterministic sandbox, and return the state with the
    action counted.

    The seed depends only on the number of the action, so a restored shell, or one whose state was
    read, draws the same numbers.
    """
    if (settings := sandbox.spec.determinism) is None:
        return state
    counted = replace(state, actions=state.actions + 1)
    shell.seed(settings.random_seed_for(counted.actions), deadline - time.monotonic())
    return counted


def action_result(
    shell: Shell, collector: Collector, status: int | None, timed_out: bool, note: str = ""
) -> ExecResult:
    """Return what an action printed and how it ended."""
    output, stderr = decode(shell.read_output(collector)), shell.read_stderr()
    omitted = collector.dropped + shell.stderr_collector.dropped
    return ExecResult(output, status, timed_out, omitted, stderr, note)
