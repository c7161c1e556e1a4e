"""Python as the InterCode authors' code runs it (``original`` profile).

A service runs all code in one namespace. Code that is not a function definition is wrapped in
``print(...)``, unless its syntax tree has a plain assignment, a call of print or a plain import, or
it begins with ``assert``. An observation is a dictionary as text: ``{'output': …, 'error': …}``, or
with the key ``error`` alone if the code raised.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from intercode.core.python_syntax import parse_python
from intercode.core.types import ExecResult
from intercode.core.types.untrusted import MAX_RETURNED_VALUES, parse_untrusted
from intercode.sessions.python.interpreter import Interpreter, InterpreterEndedError
from intercode.sessions.python.session import START_SECONDS, Action, PythonSession

_SERVICE = Path(__file__).parent / "service.py"
ServiceAnswer = tuple[str | None, str]
"""The output of a piece of code (None if it raised), and the service's error text."""


def wrap_action(action: str) -> str:
    """Return the code that is sent to the service for an action.

    Raises SyntaxError or ValueError for code that the authors' code cannot parse; its observation
    then shows the error.
    """
    if action.strip().startswith("def "):
        return action
    tree = parse_python(action.strip())
    nodes = list(ast.walk(tree))
    prints = any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "print"
        for n in nodes
    )
    if prints or any(isinstance(n, ast.Assign | ast.Import) for n in nodes):
        return action
    return action if action.strip().startswith("assert") else f"print({action})"


def format_answer(answer: ServiceAnswer) -> str:
    """Return the dictionary that the service answers, as text."""
    output, error = answer
    return str({"error": error} if output is None else {"output": output, "error": error})


class ServiceSession(PythonSession):
    """A session behind the authors' service; see ``Session`` and this module.

    As in the authors' code, an action counts as valid if it printed an error.
    """

    def run(self, code: str, timeout: float) -> ExecResult:
        try:
            sent = wrap_action(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
            return ExecResult(f"Error executing action: {e}", 1)
        self._has_run = True
        try:
            answer = run_in_service(self.interpreter(), [sent], timeout)
        except InterpreterEndedError:
            answer = None
        self._actions.append(Action(code, whole=answer is not None, lost=answer is None))
        if answer is None:
            self._restart()
            return ExecResult("Error executing action: result expired", None, timed_out=True)
        failed = bool(answer[0][1])
        return ExecResult(
            format_answer(answer[0]), 0 if failed else 1
        )  # the authors' flag is inverted

    def _restart(self) -> None:
        live = self.interpreter()
        live.kill()
        self.close()
        self._start(START_SECONDS)


def run_in_service(
    interpreter: Interpreter, codes: Sequence[str], timeout: float, reset: bool = False
) -> list[ServiceAnswer] | None:
    """Run pieces of code one after another, in an empty namespace if ``reset``.

    Returns None if they took longer than ``timeout`` seconds. Raises InterpreterEndedError.
    """
    interpreter.load_module(_SERVICE)
    text = interpreter.request("serve", reset, tuple(codes), timeout=timeout)
    if text is None:
        return None
    try:
        rows: Any = parse_untrusted(text, MAX_RETURNED_VALUES)
        found = [(str(out), str(error)) for out, error in rows]
    except (ValueError, TypeError) as e:
        raise InterpreterEndedError from e
    if len(found) != len(codes):
        raise InterpreterEndedError
    return [(None, error) if error else (out, "") for out, error in found]
