"""One Python interpreter for the whole episode: names, imports and open files carry over from
action to action.

Before an action that may end the interpreter, the interpreter is forked, and the fork waits as a
backup. The backup takes over if the action ends the interpreter, damages its connection or cannot
be interrupted; only the effects of that action are then lost. Without a backup a new interpreter is
started, and the observation says so.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from intercode.core.errors import SandboxError
from intercode.core.python_syntax import parse_python
from intercode.core.types import ExecResult
from intercode.sessions.base import action_collector, is_infrastructure_failure, killed_or_ended
from intercode.sessions.paths import from_programs, to_programs
from intercode.sessions.python.interpreter import (
    Interpreter,
    InterpreterEndedError,
    InterpreterRefusedError,
    guest_module,
)
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.limit_messages import with_limit_note
from intercode_sandbox.long_output import Collector
from intercode_sandbox.streams import drain

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_MAY_END_INTERPRETER = re.compile(
    r"\b(_exit|abort|r?kill\w*|fork\w*|exec[lv]\w*|spawn\w*|signal|ctypes|cffi|closerange|dup2?"
    r"|resource|setrecursionlimit|_getframe|get_objects|get_referrers|mmap|faulthandler|builtins"
    r"|multiprocessing|pthread\w*|prctl|settrace|setprofile|addaudithook|_?socket|atexit|f_back"
    r"|fdopen|pickle|marshal|__import__|eval|exec|compile|sys\.std\w+|sys\.modules|os\.close"
    r"|os\.write|/proc"
    r"|/dev)\b|\*\*\s*\d|\.__"
)


@dataclass(frozen=True, slots=True)
class Action:
    """A piece of code that an interpreter has run.

    ``whole``: it ran to its end or to an exception of its own, so the same code should give the
    same state in another interpreter. Otherwise it was interrupted. ``lost``: its effects on the
    interpreter are gone. ``status`` is 0 if it raised nothing.
    """

    code: str
    whole: bool = True
    lost: bool = False
    status: int | None = 0

    def replay_code(self) -> str:
        """Return the code that gives the same state again. For an interrupted action, only its
        definitions."""
        if self.lost or self.whole:
            return "" if self.lost else self.code
        try:
            body = parse_python(self.code).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ""
        return "\n".join(ast.unparse(node) for node in body if isinstance(node, _DEFINITIONS))


@dataclass(frozen=True, slots=True)
class PythonState:
    """A directory and the actions that led to the namespace, for another interpreter to run
    again."""

    cwd: str
    actions: tuple[Action, ...] = ()


def may_end_interpreter(code: str) -> bool:
    """Return whether an action may end, damage or block the interpreter, judged by its words."""
    return _MAY_END_INTERPRETER.search(code) is not None


START_SECONDS = 10.0
_GRACE_SECONDS = 0.2  # time for an interrupted action to return
_MAX_INTERRUPTS = 3  # more than one, because code may catch the first
_FORK_SECONDS = 10.0  # time for an interpreter to fork
_RESTORED_NOTE = "[the interpreter ended{how}: it was restored to its state before this action]\n"
_RESTARTED_NOTE = "[the interpreter ended{how}: a new one was started, without its variables]\n"
_SIGSEGV = -11  # of Linux, on which sandboxes run
_FAULT = " with SIGSEGV (too deep a recursion, or a fault in code outside of Python)"
_NUL_BYTE_ERROR = "SyntaxError: source code string cannot contain null bytes\n"


class PythonSession:
    """A session in a Python interpreter; see ``Session``.

    ``program`` is the interpreter inside the sandbox, Python 3.7 or later. ``state`` is the state
    to continue from, and ``interpreter`` a process of the same sandbox that already has it. Without
    one the actions of the state are run again.
    """

    ends_with_sandbox = True

    def __init__(
        self,
        sandbox: BaseSandbox,
        cwd: str = "/",
        program: str = "python3",
        state: PythonState | None = None,
        interpreter: Interpreter | None = None,
    ) -> None:
        self._sandbox, self._program, self._cwd = sandbox, program, cwd
        self._actions: list[Action] = []
        self._current: Interpreter | None = interpreter
        self._has_run = interpreter is not None
        self._backup: Interpreter | None = None
        self.protected_pids: list[int] = []
        """Numbers of further processes, besides the session's own, that must survive an action."""
        try:
            if interpreter is None:
                self._start(START_SECONDS)
        except (FileNotFoundError, PermissionError) as e:
            raise SandboxError(f"the image has no usable Python: {e}") from e
        if state is not None and interpreter is None:
            self.rerun(state, START_SECONDS)
        elif state is not None:
            self._actions = list(state.actions)
            self.change_directory(state.cwd)

    def rerun(self, state: PythonState, timeout: float) -> None:
        """Restore a state by running its actions again, each for at most ``timeout`` seconds."""
        self._has_run = True
        for action in state.actions:
            if code := action.replay_code():
                self.run(code, timeout)
        self._actions = list(state.actions)
        self.change_directory(state.cwd)

    @property
    def cwd(self) -> str:
        return self._cwd

    @property
    def actions(self) -> tuple[Action, ...]:
        """The actions that the interpreter has run so far."""
        return tuple(self._actions)

    @property
    def is_unused(self) -> bool:
        """Whether the interpreter is alive and has never run any code."""
        return self._current is not None and not self._has_run

    def state(self) -> PythonState:
        """Return the state that another session can restore."""
        return PythonState(self._cwd, self.actions)

    def state_text(self) -> str:
        """Return the names and plain values of the namespace, sorted."""
        try:
            interpreter = self.interpreter()
            interpreter.load_module("values")
            return interpreter.request("state_text", timeout=_FORK_SECONDS) or ""
        except (InterpreterEndedError, InterpreterRefusedError):
            return ""

    def use_interpreter(self) -> Interpreter:
        """Return the live process, to run code in it that is not an action."""
        self._has_run = True
        return self.interpreter()

    def interpreter(self) -> Interpreter:
        """Return the live process. Raises InterpreterEndedError if there is none."""
        if self._current is None:
            raise InterpreterEndedError
        return self._current

    # ---------------------------------------------------------------- beginning
    def _start(self, timeout: float) -> Interpreter:
        try:
            interpreter = Interpreter.start(self._sandbox, self._program, self._cwd, timeout)
        except (FileNotFoundError, NotADirectoryError):
            if self._cwd == "/":
                raise
            self._cwd = "/"  # the directory was removed
            return self._start(timeout)
        interpreter.notify("load", *guest_module("tracebacks"))
        self._current = interpreter
        return interpreter

    def change_directory(self, cwd: str) -> None:
        """Change to a directory, or to the root directory if it does not exist."""
        for path in dict.fromkeys((cwd, "/")):
            with suppress(InterpreterRefusedError):
                shown = to_programs(self._sandbox, path)
                self.interpreter().request("chdir", shown, timeout=_FORK_SECONDS)
                self._cwd = path
                return

    # ------------------------------------------------------------------ running
    def run(self, code: str, timeout: float) -> ExecResult:
        return with_limit_note(self._sandbox, self._run(code, timeout), timeout)

    def _run(self, code: str, timeout: float) -> ExecResult:
        if "\0" in code:
            return ExecResult(_NUL_BYTE_ERROR, 1)
        self._has_run = True
        collector = action_collector(self._sandbox)
        deadline = time.monotonic() + timeout
        try:
            interpreter = self._current or self._start(timeout + _GRACE_SECONDS)
        except (OSError, SandboxError) as e:
            if is_infrastructure_failure(e):
                raise
            return ExecResult("", 127, note=f"[no interpreter can be started: {e}]\n")
        mark = self._sandbox.mark()
        try:
            self._refresh_backup(interpreter, code)
            number = len(self._actions) + 1
            left = deadline - time.monotonic()
            report = interpreter.request("run", number, code, into=collector, timeout=left)
            timed_out = report is None
            if report is None:
                report = self._interrupt(interpreter, collector, mark)
            status, cwd = _parse_report(report)
            self._cwd = from_programs(self._sandbox, cwd) if cwd else self._cwd
        except (InterpreterEndedError, InterpreterRefusedError):
            return self._replace_interpreter(interpreter, code, collector, deadline, mark)
        drain(interpreter.output, collector)
        ended = None if timed_out else status
        self._actions.append(Action(code, whole=not timed_out, status=ended))
        return killed_or_ended(collector, ended, timed_out)

    def _refresh_backup(self, interpreter: Interpreter, code: str) -> None:
        """Fork the interpreter as a backup if the action may need one and a fork is possible."""
        if self._backup is not None:
            self._backup.close()
        self._backup = None
        if may_end_interpreter(code):
            with suppress(InterpreterRefusedError):
                self._backup = interpreter.fork("backup", _FORK_SECONDS)

    @property
    def own_pids(self) -> Sequence[int]:
        """The process numbers that belong to the session and not to an action."""
        pids = [i.pid for i in (self._current, self._backup) if i is not None]
        return [*pids, *self.protected_pids]

    def _interrupt(self, interpreter: Interpreter, collector: Collector, mark: int) -> str:
        """Make the interpreter give up the action, or raise InterpreterEndedError."""
        for _ in range(_MAX_INTERRUPTS):
            interpreter.interrupt()
            report = interpreter.wait(collector, _GRACE_SECONDS)
            if report is not None:
                self._sandbox.kill_since(mark, keep=self.own_pids)
                return report
        raise InterpreterEndedError

    def _replace_interpreter(
        self, interpreter: Interpreter, code: str, collector: Collector, deadline: float, mark: int
    ) -> ExecResult:
        """Replace an interpreter that has ended or is not trusted by the backup or a new one."""
        timed_out = collector.silence.is_over(deadline)
        interpreter.kill()
        status = None if timed_out else interpreter.exit_status(_GRACE_SECONDS)
        self._current = None
        if timed_out:
            self._sandbox.kill_since(mark, keep=self.own_pids)
        drain(interpreter.output, collector)
        interpreter.close()
        self._actions.append(Action(code, whole=False, lost=True, status=status))
        result = killed_or_ended(collector, status, timed_out)
        how = _FAULT if status == _SIGSEGV else ""
        backup, self._backup = self._backup, None
        if backup is not None and self._takes_over(backup):
            return replace(result, note=_RESTORED_NOTE.format(how=how))
        if backup is not None:
            backup.close()
        self._actions = self._lost_actions()
        try:
            self._start(max(0.0, deadline - time.monotonic()) + START_SECONDS)
        except (OSError, SandboxError) as e:
            if is_infrastructure_failure(e):
                raise
            return replace(result, note=f"[no interpreter can be started: {e}]\n")
        return replace(result, note=_RESTARTED_NOTE.format(how=how))

    def _takes_over(self, backup: Interpreter) -> bool:
        """Continue with a backup, which is in the directory from before the action, or in the root
        directory if that was removed. Return whether it answers."""
        root = to_programs(self._sandbox, "/")
        try:
            directory = backup.request("leave_removed", root, timeout=_FORK_SECONDS)
        except (InterpreterEndedError, InterpreterRefusedError):
            return False
        if not directory:
            return False
        self._current, self._cwd = backup, from_programs(self._sandbox, directory)
        return True

    def _lost_actions(self) -> list[Action]:
        """Return the actions so far, marked as lost: a new interpreter has none of their
        effects."""
        return [Action(a.code, a.whole, True, a.status) for a in self._actions]

    def close(self) -> None:
        for process in (self._current, self._backup):
            if process is not None:
                process.close()
        self._current = self._backup = None


def _parse_report(report: str) -> tuple[int, str]:
    status, _, cwd = report.partition(" ")
    if not status.isdigit() or int(status) > 255 or cwd[:1] not in ("", "/"):
        raise InterpreterEndedError
    return int(status), cwd
