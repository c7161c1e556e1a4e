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
from functools import lru_cache

from intercode.core.types import ExecResult
from intercode.sessions.base import SessionState, killed_or_ended
from intercode.sessions.bash import scripts
from intercode.sessions.bash.code_pipe import CodePipe
from intercode.sessions.bash.history import HistoryList
from intercode.sessions.bash.last_command import LastCommand
from intercode.sessions.bash.plain_code import is_complete, runs_nothing
from intercode.sessions.paths import from_programs, program_root, to_programs
from intercode_sandbox.contract import SCRIPT_FD, BaseSandbox
from intercode_sandbox.long_output import Collector
from intercode_sandbox.streams import (
    BaseProcess,
    decode,
    drain,
    drain_once,
    memory_file,
    poll_milliseconds,
)
from intercode_sandbox.users import User

_MAY_END_SHELL = re.compile(
    r"\b(exit|logout|kill|killall|pkill|set|trap|return|suspend|ulimit|unset|builtin|enable"
    r"|source|eval|(?<!\s-)(exec|printf))\b|(^|[;&|]|\s)(?<!find )\.\s|\$\$"
)
"""Not `find .` with `-exec` or `-printf`, which start programs."""

MAX_CODE = 4 << 20
"""Characters of an action, at most."""
START_SECONDS = 10.0
_STOP_SIGNAL = 64  # SIGRTMAX of Linux, on which the shell runs wherever this runs
_STATE_SECONDS = 2.0  # for a shell to find its directory
_SILENT_SECONDS = 0.3  # until a shell that has read its script is asked whether it runs it
_MAX_RECORD = 16 << 20

_OBSERVES = re.compile(
    r"\btrap\b|DEBUG|\beval\b|\bsource\b|(^|[;&|\s])\.\s|\bxtrace\b|\bset\s.*-\w*x"
    rf"|{scripts.CALL_STACK}"
)
"""Words of code that may set or list traps, trace commands, or show the stack of calls, itself or
in a file that it reads."""
_OBSERVING_OPTIONS = {"verbose", "functrace", "xtrace"}
_ALTERS = re.compile(
    r"(^|[;&|({]|\bbuiltin)\s*enable\s+-\w*[ndf]|\bbuiltin\s*\(\s*\)|\bfunction\s+builtin\b"
    r"|\b(readonly|declare|typeset|export)\b[^;&|\n]*\s_\b|\bBASH_XTRACEFD\b",
    re.MULTILINE,
)
"""Code that may disable or replace builtins, make ``$_`` a variable that refuses words, or send
traces where the shell cannot hide its own."""
_TRACES_TO_FILE = re.compile(r"^declare -\S+ BASH_XTRACEFD=", re.MULTILINE)  # in a state
_TURNS_ALIASES_ON = re.compile("expand_aliases|posix", re.IGNORECASE)
_DIRECTORY_MARK = "/@sandbox@"
"""Stands for the root that programs see in a state, which another sandbox may restore."""


@lru_cache(maxsize=1)
def may_end_shell(code: str) -> bool:
    """Return whether an action may end or damage the shell that runs it, judged by its words."""
    return _MAY_END_SHELL.search(code) is not None


def refuse(code: str) -> ExecResult | None:
    """Return the result of an action that no shell is given: one with a NUL byte, or one so long
    that to read it first would take more time than its limit. None for other actions."""
    if "\0" in code:
        return ExecResult("bash: the action holds a NUL byte and was not run\n", 2)
    if len(code) > MAX_CODE:
        text = f"bash: the action has {len(code):,} characters, more than {MAX_CODE:,}, "
        return ExecResult(f"{text}and was not run: write large files in parts\n", 2)
    return None


class ShellEndedError(Exception):
    """The shell has ended, or can no longer be trusted."""

    def __init__(self, message: str = "the shell has ended, or its reports are broken") -> None:
        super().__init__(message)


class Shell:
    """A running shell and the three channels to it. ``separate_stderr`` adds a channel for
    stderr. ``user``: who runs it; None is root. ``cwd``: its directory. ``state``: what another
    shell wrote. Its first script, which sets both, waits when it starts; see ``initialize``.

    Usually the shell sources the code of an action. ``is_quiet``: the last action, or the state of
    the shell, could observe the scripts around it. Such code is given to the shell as it is, the
    scripts around it are quiet ones, and the trap for ``stop`` is not set.
    """

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
        self._sandbox, self.program, self._user = sandbox, program, user
        self.output, out_w = os.pipe()
        self.errors, err_w = os.pipe() if separate_stderr else (-1, os.dup(out_w))
        self.stderr_collector, self._output_collector = Collector(1 << 12), Collector(0)
        self.report, remote = socket.socketpair()
        self._token, self._status, self._directory = "", 0, cwd
        self._last_report: scripts.ActionReport | None = None
        self._options: frozenset[str] = frozenset()
        self._question = f"#{secrets.token_hex(8)}\n".encode()
        self._own_texts: list[bytes] = []
        self._is_verbose = False
        self._history = HistoryList()
        self._program_word = shlex.quote(program)
        directory, _, name = sandbox.script_path.rpartition("/")
        self._source_command = f"\\builtin . {shlex.quote(sandbox.script_path)}"
        self._code = CodePipe() if sandbox.shares_files else None
        text = state.replace(_DIRECTORY_MARK, program_root(sandbox) or _DIRECTORY_MARK)
        text, self._waiting_trap = scripts.split_debug_trap(text)
        text, self._has_aliases = scripts.set_aliases(text, on=False)
        self._is_altered = _TRACES_TO_FILE.search(text) is not None
        self.is_quiet = self._is_observed = (
            self._is_altered or bool(self._waiting_trap) or scripts.observes_shell(text)
        )
        self._has_debug_trap = bool(self._waiting_trap)
        self.is_armed = not self._is_altered
        self._are_aliases_off = self._has_aliases
        self._last_command = LastCommand(program, sandbox.script_path, text)
        os.set_blocking(self.script, False)
        fds = {1: out_w, 2: err_w, SCRIPT_FD: script_r, scripts.GIVEN_REPORT_FD: remote.fileno()}
        argv = [program, "--norc", "--noprofile", name]
        try:
            script = self._first_script(cwd, bool(text))
            first = self._with_report(script, quiet=self._is_altered)
            self._unsent = self._write_script(memoryview(_encode(first)))
            with memory_file(_encode(text)) if text else nullcontext() as file:
                if file is not None:
                    fds[scripts.STATE_FD] = file.fileno()
                if self._code is not None:
                    fds[scripts.CODE_FD] = self._code.shells_end
                self.process: BaseProcess = sandbox.spawn(
                    argv,
                    cwd=directory,
                    env={**sandbox.env, **user.env} if user else None,
                    fds=fds,
                    user=user,
                )
        except BaseException:
            self.close()
            raise
        finally:
            if self._code is not None:
                os.close(self._code.shells_end)
            os.close(script_r)
            os.close(out_w)
            os.close(err_w)
            remote.close()
        for fd in (self.output, self.report.fileno(), *([self.errors] * separate_stderr)):
            os.set_blocking(fd, False)

    def _first_script(self, cwd: str, has_state: bool) -> str:
        """Return the script that sets the directory and the trap that stops an action, and then
        the state with which the shell was opened. Read-only variables stay unchanged."""
        script = scripts.INIT_SCRIPT.format(
            code=f"{SCRIPT_FD}<&{'-' if self._code is None else '11'}",
            arm=scripts.ARM_SCRIPT if self.is_armed else "",
            cwd=shlex.quote(to_programs(self._sandbox, cwd)),
            root=shlex.quote(to_programs(self._sandbox, "/")),
        )
        return script + scripts.RESTORE_SCRIPT if has_state else script

    def initialize(self, timeout: float) -> tuple[int, str] | None:
        """Wait until the first script has run. Returns what ``run_script`` returns."""
        own_lines = scripts.LINES_AFTER_STATE
        record = self._exchange(self._unsent, Collector(1 << 12), timeout, own_lines)
        return None if record is None else self._read_report(record)

    def _with_report(self, text: str, quiet: bool, retained: bool = False) -> str:
        """Return a script that reports at its end."""
        self._token = secrets.token_hex(8)
        report = scripts.report_script(self._token, quiet, retained)
        if self._history.removes_lines(quiet):
            text, report = "", self._history.own_line(text + report)
        self._own_texts.append(report.encode())
        return text + report

    def execute(self, code: str, collector: Collector, timeout: float) -> tuple[int, str] | None:
        """Run a piece of code with the ``$?`` that the last one left. See ``run_script``.

        The code is sourced, so that line numbers in messages start at 1 each time.
        """
        deadline = time.monotonic() + timeout
        self.stderr_collector = Collector(collector.limit, collector.silence)
        self._output_collector = collector
        self._own_texts = [self._question]
        self._is_verbose = "verbose" in self._options
        uses_history = self._history.begin(code, self._options)
        before, self.is_quiet = self._prepare(code)
        own_lines = 1
        if uses_history:
            text, own_lines = self._listed_command(code, before, deadline)
        else:
            self._own_texts.append(_encode(before))
            if self.is_quiet:
                command = self._quiet_command(code, deadline)
                # an open quote in an eval leaves bash's parser confused for one line
                after = "" if command == f"{code}\n" else "\n"
                aliases = self._may_expand_aliases(code)
                text = self._with_report(before + command + after, quiet=True, retained=aliases)
            elif not is_complete(code) and not self._may_expand_aliases(code):
                text = self._with_report(before + self._source(code), quiet=False)
            elif self._takes_report(code):
                self._token, own_lines = secrets.token_hex(8), 0
                report_text = scripts.report_in_code(self._token)
                self._own_texts.append(f"{report_text}\n".encode())
                code_and_report = f"{code}\n{report_text}"
                text = before + self._source(code_and_report, scripts.UNLESS_REPORTED)
            else:
                self._own_texts.append(f"{scripts.RETAINED_TEXT}\n".encode())
                text = scripts.RETAIN_SCRIPT + before + self._source(code)
                text = self._with_report(text, quiet=False, retained=True)
        report = self._run(text, collector, deadline - time.monotonic(), own_lines)
        if report and self._last_report and not runs_nothing(code):
            has_word = self.is_quiet and not self._are_aliases_off
            self._last_command.note(self._last_report, has_word)
        return report

    def _listed_command(self, code: str, before: str, deadline: float) -> tuple[str, int]:
        """Return a script that runs some code in a shell that lists the lines of its script in the
        history, and how many lines of the session remain listed after it."""
        command = self._quiet_command(code, deadline)
        is_code = command == f"{code}\n"
        if not self._has_debug_trap:
            if self._history.needs_probe(self._options):
                self._probe_history(deadline - time.monotonic())
            if not is_code and command.count("\n") == 1:
                before, command = before + command, ""
            before = self._history.first_line(before)
        self._own_texts.append(_encode(before))
        self._history.expect(code, self.is_quiet)
        self._token = secrets.token_hex(8)
        aliases = self._may_expand_aliases(code)
        report = scripts.report_after_code(self._token, self.is_quiet, aliases)
        removes = self._history.removes_lines(self.is_quiet)
        if removes:
            report = self._history.own_line(report)
        self._own_texts.append(_encode(report))
        return before + command + report, int(not removes)

    def _probe_history(self, timeout: float) -> None:
        token = secrets.token_hex(8)
        script = _encode(self._history.probe_script(token))
        self._own_texts.append(script)
        record = self._exchange(script, Collector(1 << 12), timeout)
        if record is None:
            raise ShellEndedError
        self._history.note_probe(record.decode("utf-8", "surrogateescape"), token)

    def _quiet_command(self, code: str, deadline: float) -> str:
        """Return a script that runs some code in a shell that may observe it."""
        if self._reads_to_end(code, deadline - time.monotonic()):
            return f"{code}\n"
        if not self.is_armed:  # a sourced file would hide the DEBUG trap
            return f"{'' if self._is_altered else 'builtin '}\\eval {shlex.quote(code)}\n"
        return self._source(code)

    def _takes_report(self, code: str) -> bool:
        """Return whether the report can follow complete code in its file, which bash reads in
        blocks. With errexit, the test whether it was reached would keep the shell from ending."""
        return not (
            self._may_expand_aliases(code)
            or "errexit" in self._options
            or "posix" in self._options
            or may_end_shell(code)
        )

    def _may_expand_aliases(self, code: str) -> bool:
        return self._has_aliases or bool(_TURNS_ALIASES_ON.search(code))

    def _prepare(self, code: str) -> tuple[str, bool]:
        """Return the script before an action, and whether it and the report have to be quiet."""
        self._is_altered = self._is_altered or bool(_ALTERS.search(code))
        self._is_observed = self._is_observed or self._is_altered
        is_observed = self._is_observed or bool(_OBSERVES.search(code))
        quiet = is_observed or not self._options.isdisjoint(_OBSERVING_OPTIONS)
        quiet |= self._history.is_used and self._may_expand_aliases(code)
        script = ""
        if is_observed and self.is_armed:
            script = scripts.DISARM_SCRIPT
        elif not is_observed and not self.is_armed:
            script = scripts.ARM_SCRIPT
        self.is_armed = not is_observed
        if self._waiting_trap:
            script += f"{{ builtin {self._waiting_trap}}} 2>&-\n"
            self._waiting_trap = ""
        if self._history.is_used and not self._has_debug_trap:
            self._last_command.disturb()
        if quiet or self._history.is_used:
            script += scripts.quiet_assignment("LINENO", 0)
        if self._status < 2 or "?" in code or not quiet:
            has_pipefail = "pipefail" in self._options
            script += self._last_command.script(code, self._status, quiet, has_pipefail)
        if self._are_aliases_off:
            script, self._are_aliases_off = scripts.with_aliases(script), False
        return script, quiet

    def _source(self, code: str, end: str = "") -> str:
        """Return a script that sources some code, which it finds at the script's path. ``end``
        follows the command."""
        data = _encode(f"{code}\n")
        in_pipe = self._code is not None and self._code.fill(data)
        if not in_pipe and "script" not in self._sandbox.capabilities:
            word = secrets.token_hex(8)
            return f"{self._source_command} {SCRIPT_FD}<<'{word}'{end}\n{code}\n{word}\n"
        if not in_pipe:
            self._sandbox.write(self._sandbox.script_path, data)
        return f"{self._source_command}{end}\n"

    def _reads_to_end(self, code: str, timeout: float) -> bool:
        """Return whether a shell that reads the code as its script comes to the end of the code,
        whatever it does. A fork of the shell parses it."""
        if code[-1:] == "\\":
            return False
        status, script = (
            self._status,
            scripts.parse_script(code, self._is_altered, self._has_aliases),
        )
        text = self._with_report(script, quiet=not self._history.removes_lines(self.is_quiet))
        self._own_texts.append(_encode(script))
        record = self._exchange(_encode(text), Collector(1 << 12), timeout)
        if record is None:
            raise ShellEndedError
        self._status = status
        return scripts.parse_report(record.decode("utf-8", "replace"), self._token) is not None

    def seed(self, number: int, timeout: float) -> None:
        """Seed ``$RANDOM`` with a number and leave ``$?`` unchanged. Raises ShellEndedError."""
        status = self._status
        text = scripts.quiet_assignment("RANDOM", number)
        if self.run_script(text, None, timeout, self._is_observed) is None:
            raise ShellEndedError("the shell does not answer")
        self._status = status

    def stop(self) -> None:
        """Tell the shell to give up the running action as soon as its current command has ended."""
        self.process.kill(_STOP_SIGNAL)

    def resume_after_stop(self, timeout: float) -> tuple[int, str] | None:
        """Wait for the report of an action that was stopped, and make the shell ready for the next
        one."""
        report = self.run_script("", None, timeout)
        if report is None:
            return None
        ready = self.run_script(scripts.RESUME_SCRIPT, None, timeout)
        self._status = report[0]
        return report[0], (ready or report)[1]

    def run_script(
        self, text: str, collector: Collector | None, timeout: float, quiet: bool = False
    ) -> tuple[int, str] | None:
        """Send a script to the shell and wait for its report.

        Returns (exit status, directory), or None after ``timeout`` seconds. An empty text waits for
        the report of the script before it. ``quiet``: the report does not disturb the shell. Raises
        ShellEndedError.
        """
        if text:
            text = self._with_report(text, quiet)
        return self._run(text, collector or Collector(1 << 12), timeout)

    def _run(
        self, text: str, collector: Collector, timeout: float, own_lines: int | None = None
    ) -> tuple[int, str] | None:
        """Send a script that ends with a report, and wait for that. ``own_lines``: see
        ``HistoryList.note_lines``."""
        deadline = time.monotonic() + timeout
        record = self._exchange(_encode(text), collector, timeout, own_lines)
        if record is None:
            return None
        status = scripts.unreported_status(record)
        if status is None:
            return self._read_report(record)
        text = self._with_report("", quiet=False)
        record = self._exchange(_encode(text), collector, deadline - time.monotonic())
        if record is None:
            return None
        _, directory = self._read_report(record)
        self._status = status
        return status, directory

    def dump_state(self, timeout: float = START_SECONDS) -> str:
        """Return the state of the shell as text.

        Raises ShellEndedError if the shell does not answer, or if another process in the sandbox
        writes to its report channel.
        """
        token = secrets.token_hex(8)
        script = scripts.dump_script(token, self.is_quiet, self._is_altered)
        if self._history.removes_lines(self.is_quiet):
            script = self._history.own_line(script)
        record = self._exchange(_encode(script), Collector(1 << 12), timeout)
        if record is None:
            raise ShellEndedError
        options = self._options if self.is_quiet else None
        dump = scripts.parse_dump(record.decode("utf-8", "surrogateescape"), token, options)
        if dump is None:
            raise ShellEndedError
        text, trap = dump
        if trap and not self.is_quiet:  # the script has removed it
            self._waiting_trap = trap
        trap = trap or self._waiting_trap
        self._has_debug_trap = bool(trap)
        self._is_observed = self._is_altered or bool(trap) or scripts.observes_shell(text)
        text_with_aliases, has_aliases = scripts.set_aliases(text, on=True)
        if self._are_aliases_off:
            text = text_with_aliases
        self._has_aliases = self._has_aliases or has_aliases
        text, root = text + trap, program_root(self._sandbox)
        return text.replace(root, _DIRECTORY_MARK) if root else text

    def accepts_actions(self, timeout: float) -> bool:
        """Return whether the shell still runs code.

        It does not if an action used up all descriptors, made the shell restricted, or disabled a
        builtin.
        """
        if self.is_quiet or self._history.is_used:
            return True
        word = secrets.token_hex(8)
        text = scripts.ACCEPTANCE_SCRIPT.format(
            source=self._source("builtin :"), word=word, report=scripts.REPORT_FD
        )
        record = self._exchange(_encode(text), Collector(1 << 12), timeout)
        return record == f"{word} 0\0".encode()

    def read_output(self, collector: Collector) -> bytes:
        """Return what was collected and what can be read now, without the trace of our own lines
        (``set -x`` and ``set -v``)."""
        drain(self.output, collector)
        return self._strip_trace(collector.bytes())

    def read_stderr(self) -> str | None:
        """Return what the last action wrote to stderr, or None if stderr is not separate."""
        if self.errors < 0:
            return None
        drain(self.errors, self.stderr_collector)
        return decode(self._strip_trace(self.stderr_collector.bytes()))

    def _strip_trace(self, data: bytes) -> bytes:
        first, end, rest = data.partition(b"\n")
        if "xtrace" in self._options and first.endswith(self._source_command[1:].encode()):
            data = rest if end else b""
        if self._is_verbose or "verbose" in self._options:
            for text in filter(None, self._own_texts):
                data = data.replace(text, b"")
        return data

    def _exchange(
        self,
        script: bytes | memoryview,
        collector: Collector,
        timeout: float,
        own_lines: int | None = None,
    ) -> bytes | None:
        """Send a script and return the record of its report, or None after ``timeout`` seconds.

        With the option noexec, a shell reads its script without running it. If it has read all and
        is silent, it gets a comment, and no more if it reads that before it has reported.
        """
        deadline = time.monotonic() + timeout
        collector.silence.begin()
        self._history.note_lines(script, own_lines)
        left = memoryview(script)
        if timeout > 0:
            left = self._write_script(left)
        poll, report, process = select.poll(), self.report.fileno(), self.process.fileno()
        streams = {self.output: collector}
        if self.errors >= 0:
            streams[self.errors] = (
                self.stderr_collector if collector is self._output_collector else Collector(0)
            )
        for fd in (*streams, report, process):
            poll.register(fd, select.POLLIN)
        if left:
            poll.register(self.script, select.POLLOUT)
        record = b""
        sees_pipe, has_asked = self._code is not None, False  # without files in between
        while (wait := collector.silence.left(deadline)) > 0:
            has_read_all = sees_pipe and not left and self._has_read_all()
            silent = min(wait, _SILENT_SECONDS) if sees_pipe else wait
            ready = dict(poll.poll(poll_milliseconds(silent)))
            if has_read_all and not ready and silent < wait:
                if has_asked:
                    self._end_script()
                else:
                    self._write_script(memoryview(self._question))
                has_asked = True
            if self.script in ready:
                left = self._write_script(left)
                if not left:
                    poll.unregister(self.script)
            for fd, into in streams.items():
                if fd in ready and not drain_once(fd, into):
                    poll.unregister(fd)
            if report in ready:
                data = self.report.recv(1 << 16)
                if not data:  # the shell has closed it, or has become another program
                    poll.unregister(report)
                    self._end_script()
                record += data
                if record.endswith(b"\0") or self._is_quiet_report(record):
                    for fd, into in streams.items():  # written after poll() looked at them
                        if fd not in ready:
                            drain_once(fd, into)
                    return record
                if len(record) > _MAX_RECORD:
                    raise ShellEndedError
            elif process in ready:
                raise ShellEndedError
        return None

    def _has_read_all(self) -> bool:
        """Return whether the shell has read all of its script, which has not ended."""
        import fcntl  # not on Windows, which imports this module
        import termios

        try:
            return not any(fcntl.ioctl(self.script, termios.FIONREAD, bytes(4)))
        except OSError:  # no pipe any more
            return False

    def _end_script(self) -> None:
        """Let the shell find the end of its script, after which it ends."""
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), self.script, inheritable=False)

    def _write_script(self, left: memoryview) -> memoryview:
        try:
            return left[os.write(self.script, left[:4096]) :]
        except BlockingIOError:
            return left
        except BrokenPipeError as e:
            raise ShellEndedError from e

    def _is_quiet_report(self, record: bytes) -> bool:
        return record.endswith(b"\n") and record.count(self._token.encode()) == 3

    def _read_report(self, record: bytes) -> tuple[int, str]:
        """Return the exit status and the directory of a report, and note both."""
        report = scripts.parse_report(record.decode("utf-8", "surrogateescape"), self._token)
        if report is None:
            raise ShellEndedError
        self._status, self._options = report.status, report.options
        if report.has_aliases is not None:
            self._has_aliases, self._are_aliases_off = report.has_aliases, report.has_aliases
            if report.has_aliases and self.is_quiet:
                text = self._with_report(scripts.ALIASES_OFF_SCRIPT, quiet=True)
                if self._exchange(_encode(text), Collector(0), _STATE_SECONDS) is None:
                    raise ShellEndedError
        self._last_report = report
        directory = report.directory if report.is_there else self._find_directory(report.directory)
        if directory.startswith("/"):
            self._directory = from_programs(self._sandbox, directory)
        return self._status, self._directory

    def _find_directory(self, named: str) -> str:
        """Return the directory in which the kernel has the shell, or ``named`` if it was deleted,
        or if it cannot be found without a trap of the agent's."""
        if self.is_quiet and "functrace" in self._options:  # a fork would fire the DEBUG trap
            return named
        script = scripts.directory_script(self._program_word, self._is_altered)
        self._own_texts.append(_encode(script))
        text = self._with_report(script, quiet=True)
        record = self._exchange(_encode(text), Collector(1 << 12), _STATE_SECONDS)
        if record is None:
            raise ShellEndedError
        found = record.partition(self._token.encode())[0].rpartition(b"\n")[0]
        return found.decode("utf-8", "surrogateescape") or named

    def close(self) -> None:
        if self._code is not None:
            self._code.close()
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
    ended = killed_or_ended(collector, status, timed_out)
    return replace(ended, output=output, omitted_bytes=omitted, stderr=stderr, note=note)
