"""Checks rows with hidden tests, and finds the function or class that the tests call."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from intercode.core.errors import DataError
from intercode.core.python_syntax import parse_python
from intercode_sandbox.lines import split_lines

_TEST_KEYS = {"input", "output"}


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


def python_tests(
    row: Mapping[str, Any], gold: str | None, setup: str, where: str
) -> dict[str, Any]:
    """Return ``Task.data`` for a Python row with tests.

    The key ``tests`` of the row is a list of assert statements, a text with one assert statement
    per line, or a list of ``{"input": …, "output": …}``. The key ``entry`` is the name of the
    function that the tests call. Assert statements do not need it: ``find_entry_point`` finds the
    function. With inputs and outputs, these are the list of arguments of a call and its return
    value. Without ``entry``, they are the standard input and output of a program.

    ``setup`` is code that runs between the solution and the tests. Raises DataError for a malformed
    row; the message begins with ``where``.
    """
    tests, entry = row["tests"], str(row.get("entry") or "")
    if isinstance(tests, str):
        tests = [line for line in split_lines(tests) if line.strip()]
    if not isinstance(tests, list) or not tests:
        raise DataError(f"{where}: 'tests' must be a list with at least one test, not {tests!r}")
    if all(isinstance(test, str) for test in tests):
        if not entry and gold is None:
            raise DataError(
                f"{where}: a row without a gold needs 'entry', the name that the tests call"
            )
        entry, mode = entry or find_entry_point(str(gold), tests, setup, where).name, "assert"
    elif all(isinstance(test, dict) and test.keys() == _TEST_KEYS for test in tests):
        mode = "call" if entry else "stdin"
        _check_inputs_and_outputs(tests, bool(entry), where)
    else:
        raise DataError(f"{where}: 'tests' must all be texts, or all have 'input' and 'output'")
    _check_absent(row, where)
    return {**row, "entry": entry, "tests": tuple(tests), "setup": setup, "mode": mode}


def program_tests(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return ``Task.data`` for a row with tests that the environment ``code`` plays.

    Keys of the row: ``tests`` is a list of ``{"input": …, "output": …}``. Without ``entry``, these
    are the standard input and output of a program; with ``entry``, the list of arguments of that
    function and its return value. ``example`` is the standard input when the agent runs its
    program. ``language`` is the name of a language, which the environment checks later; a reference
    to code that defines a language is refused.

    Raises DataError for a malformed row; the message begins with ``where``.
    """
    if ":" in str(row.get("language")):
        raise DataError(
            f"{where}: the language {row['language']!r} refers to code that would run outside the "
            "sandbox: remove it from the rows, read the code, and pass it as the option language; "
            "or install it as a plugin (intercode.languages)"
        )
    tests, called = row.get("tests"), bool(row.get("entry"))
    for key in ("language", "entry", "example"):
        if not isinstance(row.get(key, ""), str):
            raise DataError(f"{where}: {key!r} must be a text, not {row[key]!r}")
    if not isinstance(tests, list) or not tests:
        raise DataError(f"{where}: 'tests' must be a list with at least one test, not {tests!r}")
    for test in tests:
        if not isinstance(test, Mapping) or test.keys() != _TEST_KEYS:
            raise DataError(f"{where}: a test has exactly 'input' and 'output', not {test!r}")
    _check_inputs_and_outputs(tests, called, where)
    _check_absent(row, where)
    return {**row, "tests": tuple(tests)}


def _check_absent(row: Mapping[str, Any], where: str) -> None:
    absent = row.get("absent_in_tests", [])
    if not isinstance(absent, list) or not all(path and isinstance(path, str) for path in absent):
        raise DataError(f"{where}: 'absent_in_tests' must be a list of paths, not {absent!r}")


def _check_inputs_and_outputs(tests: Sequence[Mapping[str, Any]], called: bool, where: str) -> None:
    """Raise DataError unless inputs are lists of arguments, or all values are texts."""
    for test in tests:
        if called and not isinstance(test["input"], list):
            raise DataError(
                f"{where}: 'input' lists the arguments of a call, not {test['input']!r}"
            )
        if not called and not all(isinstance(text, str) for text in test.values()):
            raise DataError(
                f"{where}: a program's 'input' and 'output' are texts, not {test!r}; if the tests "
                "call a function, give its name as 'entry'"
            )


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
