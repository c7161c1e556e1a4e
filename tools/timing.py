"""Counts what depends on real time: in the tests, and in the package.

    python tools/timing.py [CHECKOUT] [--list]

Prints for the tests outside and inside of ``tests/realtime`` the number of sleeps, of time-outs
that are literal numbers, of reads of a clock, and of assertions on elapsed time; for the package,
the sleeps and reads of a clock outside of ``sandbox/clock.py``. ``--list`` prints each place.
An assertion is on elapsed time if a value in it was computed from a clock. Processor time
(``time.process_time``) is no clock here, since it does not depend on how busy the machine is. Code
in strings, such as programs for a sandbox, is not read.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).parents[1]
_CLOCKS = {"monotonic", "perf_counter", "monotonic_ns", "perf_counter_ns", "time_ns"}
_WAITING = {"wait", "join", "result", "wait_for", "communicate", "acquire", "settimeout", "timeout"}
_ARITHMETIC = (
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Tuple,
    ast.NamedExpr,
)
_NUMERIC = {"min", "max", "abs", "round", "sum", "float", "int"}


class Place(NamedTuple):
    """A line that depends on real time. ``kind``: sleep, time-out, clock or elapsed."""

    kind: str
    path: Path
    line: int


def places(path: Path) -> Iterator[Place]:
    """Yield what depends on real time in a file."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if _is_sleep(node):
                yield Place("sleep", path, node.lineno)
            if _reads_clock(node):
                yield Place("clock", path, node.lineno)
            if _has_literal_timeout(node):
                yield Place("time-out", path, node.lineno)
    for line in _elapsed_assertions(tree):
        yield Place("elapsed", path, line)


def _is_number(node: ast.AST, *, zero: bool = False) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
        and (zero or node.value != 0)
    )


def _is_sleep(call: ast.Call) -> bool:
    """Return whether a call sleeps; ``asyncio.sleep(0)`` only lets other tasks run."""
    name = ast.unparse(call.func)
    if name not in ("time.sleep", "asyncio.sleep"):
        return False
    return not call.args or not (
        _is_number(call.args[0], zero=True) and not _is_number(call.args[0])
    )


def _reads_clock(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func)
    return name in {"time.time", *_CLOCKS} or name in {f"time.{clock}" for clock in _CLOCKS}


def _has_literal_timeout(call: ast.Call) -> bool:
    for keyword in call.keywords:
        if (
            keyword.arg
            and keyword.arg.endswith(("timeout", "seconds"))
            and _is_number(keyword.value)
        ):
            return True
    name = ast.unparse(call.func).rpartition(".")[2]
    return name in _WAITING and any(_is_number(argument) for argument in call.args)


def _elapsed_assertions(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of assertions on a value that was computed from a clock."""
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    timed_functions: set[str] = set()
    while True:  # until no further function is known to return such a value
        found = {f.name for f in functions if _returns_time(f, timed_functions)}
        if found <= timed_functions:
            break
        timed_functions |= found
    lines = set()
    for function in functions:
        names = _timed_names(function, timed_functions)
        for node in ast.walk(function):
            if isinstance(node, ast.Assert) and _is_timed(node.test, names, timed_functions):
                lines.add(node.lineno)
    yield from sorted(lines)


def _returns_time(function: ast.AST, timed_functions: set[str]) -> bool:
    names = _timed_names(function, timed_functions)
    return any(
        isinstance(node, ast.Return)
        and node.value is not None
        and not isinstance(node.value, ast.Compare)
        and _is_timed(node.value, names, timed_functions)
        for node in ast.walk(function)
    )


def _timed_names(function: ast.AST, timed_functions: set[str]) -> set[str]:
    """Return the variables of a function that are computed from a clock."""
    names: set[str] = set()
    while True:
        before = len(names)
        for node in ast.walk(function):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    names |= _assigned(target, node.value, names, timed_functions)
            elif isinstance(node, ast.NamedExpr | ast.AugAssign):
                names |= _assigned(node.target, node.value, names, timed_functions)
        if len(names) == before:
            return names


def _assigned(
    target: ast.expr, value: ast.expr, names: set[str], timed_functions: set[str]
) -> set[str]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = zip(target.elts, value.elts, strict=False)
        return set().union(*(_assigned(*pair, names, timed_functions) for pair in pairs))
    if not _is_timed(value, names, timed_functions):
        return set()
    return {ast.unparse(node) for node in [target] if isinstance(node, ast.Name | ast.Attribute)}


def _is_timed(node: ast.AST, names: set[str], timed_functions: set[str]) -> bool:
    """Return whether a value is computed from a clock, by arithmetic only."""
    if _reads_clock(node):
        return True
    if isinstance(node, ast.Name | ast.Attribute):
        return ast.unparse(node) in names
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func).rpartition(".")[2]
        if name in timed_functions:
            return True
        if name not in _NUMERIC:
            return False
        return any(_is_timed(argument, names, timed_functions) for argument in node.args)
    if not isinstance(node, _ARITHMETIC):
        return False
    return any(_is_timed(n, names, timed_functions) for n in ast.iter_child_nodes(node))


def groups(checkout: Path) -> dict[str, list[Place]]:
    """Return the places of the tests, of the tests of real time, and of the package."""
    folders = (checkout / "tests", *sorted(checkout.glob("packages/*/tests")))
    sources = (checkout / "src", *checkout.glob("packages/*/src"))
    found: dict[str, list[Place]] = {"tests": [], "tests/realtime": [], "package": []}
    for path in sorted(p for folder in folders for p in folder.rglob("*.py")):
        name = "tests/realtime" if checkout / "tests/realtime" in path.parents else "tests"
        found[name] += places(path)
    for path in sorted(p for source in sources for p in source.rglob("*.py")):
        if path.name != "clock.py" or path.parent.name not in ("core", "intercode_sandbox"):
            found["package"] += (p for p in places(path) if p.kind in ("sleep", "clock"))
    return found


def main() -> None:
    """Print the counts of a checkout."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", nargs="?", type=Path, default=_ROOT)
    parser.add_argument("--list", action="store_true", help="print each place")
    options = parser.parse_args()
    kinds = ("sleep", "time-out", "clock", "elapsed")
    print(f"{'':16}" + "".join(f"{kind:>10}" for kind in kinds) + "   (in files)")
    for name, found in groups(options.checkout).items():
        counts = [sum(p.kind == kind for p in found) for kind in kinds]
        files = [len({p.path for p in found if p.kind == kind}) for kind in kinds]
        print(f"{name:16}" + "".join(f"{count:10}" for count in counts) + f"   {files}")
        if options.list:
            print(*(f"  {p.path}:{p.line}: {p.kind}" for p in found), sep="\n")


if __name__ == "__main__":
    main()
