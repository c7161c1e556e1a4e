"""Finds the function or class that hidden tests call."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from intercode.core.errors import DataError
from intercode.core.python_syntax import parse_python


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """The function or class of a solution that its tests call.

    ``signatures``: a signature for each definition of the solution that the tests or their set-up
    call, first that of ``name``. It is ``name(a, b=1)`` for a function, ``class Name`` for a class.
    """

    name: str
    signatures: tuple[str, ...]


def find_entry_point(gold: str, tests: Sequence[str], setup: str, where: str) -> EntryPoint:
    """Return the entry point of ``gold``: a top-level definition that the tests call.

    If no test calls a definition of ``gold``, the calls in ``setup`` count. If several definitions
    are called, a function is preferred to a class, and the outermost call in a test to a call in
    its arguments. Raises DataError if code does not parse, or if nothing of ``gold`` is called; the
    message begins with ``where``.
    """
    return _find_entry_point(gold, tuple(tests), setup, where)


@lru_cache(maxsize=4096)
def _find_entry_point(gold: str, tests: tuple[str, ...], setup: str, where: str) -> EntryPoint:
    defined = _definitions(_parse_code(gold, where))
    by_setup = _called_names(_parse_code(setup, where))
    by_tests = [_called_names(_parse_code(test, where)) for test in tests]
    used: dict[str, tuple[bool, int, str]] = {}
    for called in (
        by_tests if any(n in defined for names in by_tests for n in names) else [by_setup]
    ):
        for depth, name in enumerate(called):
            if name in defined:
                rank = (isinstance(defined[name], ast.ClassDef), depth, name)
                used[name] = min(used.get(name, rank), rank)
    if not used:
        raise DataError(f"{where}: no test calls what the gold defines: {', '.join(defined)}")
    name = min(used, key=lambda n: used[n])
    also = dict.fromkeys(n for n in (*used, *by_setup) if n in defined and n != name)
    return EntryPoint(name, tuple(_signature(n, defined[n]) for n in (name, *also)))


def _definitions(tree: ast.Module) -> dict[str, ast.stmt]:
    """Return the functions, classes and variables that code defines at its top level."""
    definitions: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            definitions[node.name] = node
        elif isinstance(node, ast.Assign):
            definitions.update({t.id: node for t in node.targets if isinstance(t, ast.Name)})
    return definitions


def _called_names(tree: ast.Module) -> list[str]:
    """Return the names that code calls, those of outer calls first."""
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call.id for call in calls if isinstance(call, ast.Name)]


def _signature(name: str, node: ast.stmt) -> str:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return f"{name}({ast.unparse(node.args)})"
    return f"class {name}" if isinstance(node, ast.ClassDef) else name


def _parse_code(code: str, where: str) -> ast.Module:
    """Return the syntax tree of code, without Python's warnings about unknown escapes and such."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return parse_python(code)
    except (SyntaxError, ValueError) as e:
        raise DataError(f"{where}: not valid Python: {e}") from e
