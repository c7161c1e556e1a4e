"""What a Python session can be gone on from."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from intercode.core.python_syntax import parse_python

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_MAY_END_INTERPRETER = re.compile(
    r"\b(_exit|abort|r?kill\w*|fork\w*|exec[lv]\w*|spawn\w*|signal|ctypes|cffi|closerange|dup2?"
    r"|resource|setrecursionlimit|_getframe|get_objects|get_referrers|mmap|faulthandler|builtins"
    r"|multiprocessing|pthread\w*|prctl|settrace|setprofile|_?socket|atexit|f_back|fdopen|pickle"
    r"|marshal|__import__|eval|exec|compile|sys\.std\w+|sys\.modules|os\.close|os\.write|/proc"
    r"|/dev)\b|\*\*\s*\d|\.__"
)


@dataclass(frozen=True, slots=True)
class Action:
    """A piece of code that an interpreter was given.

    ``whole``: it ran to its end or to an exception of its own, so that another interpreter that is
    given the same code should come to the same. Else it was interrupted. ``lost``: nothing of what
    it did to the interpreter was kept. ``status`` is 0 where it raised nothing.
    """

    code: str
    whole: bool = True
    lost: bool = False
    status: int | None = 0

    def replay_code(self) -> str:
        """What has to be run to come to the same; of what was interrupted, what it defines."""
        if self.lost or self.whole:
            return "" if self.lost else self.code
        try:
            body = parse_python(self.code).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ""
        return "\n".join(ast.unparse(node) for node in body if isinstance(node, _DEFINITIONS))


@dataclass(frozen=True, slots=True)
class PythonState:
    """A directory, and the actions that led to the namespace as it is: another interpreter can be
    given them again."""

    cwd: str
    actions: tuple[Action, ...] = ()


def may_end_interpreter(code: str) -> bool:
    """Whether an action looks as if it could end or cripple the interpreter that runs it, or run
    where Ctrl-C does not reach."""
    return _MAY_END_INTERPRETER.search(code) is not None
