"""The parts of Python code: imports, calls, and chains of attributes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from intercode.core.python_syntax import parse
from intercode.environments.base.policy.parts import Parsed, Part, joined

_DEPTH = 2
_IMPORTERS = ("__import__", "importlib.import_module", "importlib.__import__")
_RUNNERS = ("exec", "eval")


def make_parser() -> Callable[[str], Parsed]:
    """What reads code."""
    return parts_of


def parts_of(code: str, depth: int = 0) -> Parsed:
    """Every module that code imports, also by ``__import__`` and ``importlib``; the dotted name of
    everything that it calls, as it was imported (``o.system`` after ``import os as o`` is
    ``os.system``); and every chain of attributes, ``?`` standing for what has no name. Code within
    a literal ``exec`` or ``eval`` counts."""
    try:
        tree = parse(code)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as e:
        return Parsed((), f"a syntax error ({getattr(e, 'msg', None) or e})")
    try:
        return joined(_Reader(tree, depth).read())
    except RecursionError:
        return Parsed((), "it lies too deep in itself")


class _Reader:
    def __init__(self, tree: ast.Module, depth: int) -> None:
        self._nodes, self._depth = list(ast.walk(tree)), depth
        self._called: dict[str, str] = {}
        for node in self._nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._called.update(_names(node))
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        self._own = {node.name for node in self._nodes if isinstance(node, kinds)}
        inner = (node.value for node in self._nodes if isinstance(node, ast.Attribute))
        self._inner = {id(node) for node in inner}

    def read(self) -> Iterator[Parsed]:
        for node in self._nodes:
            if isinstance(node, ast.Import):
                yield _found("import", *(alias.name for alias in node.names))
            elif isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                yield _found("import", *(f"{module}.{alias.name}" for alias in node.names))
            elif isinstance(node, ast.Call):
                yield from self._call(node)
            elif isinstance(node, ast.Attribute) and id(node) not in self._inner:
                yield _found("attribute", self._dotted(node))

    def _call(self, node: ast.Call) -> Iterator[Parsed]:
        name = self._dotted(node.func).removeprefix("builtins.").removeprefix("__builtins__.")
        yield Parsed((Part("call", (name,), own=name in self._own),))
        if name in _IMPORTERS:
            module = _literal(node, 0)
            unclear = Parsed((), f"what {name} imports is calculated")
            yield unclear if module is None else _found("import", module)
        elif name in _RUNNERS:
            code = _literal(node, 0)
            if code is None or self._depth == _DEPTH:
                yield Parsed((), f"what {name} runs is calculated")
            else:
                yield parts_of(code, self._depth + 1)
        elif name == "getattr" and (attribute := _literal(node, 1)) is not None:
            yield _found("attribute", f"{self._dotted(node.args[0])}.{attribute}")

    def _dotted(self, node: ast.expr) -> str:
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        root = self._called.get(node.id, node.id) if isinstance(node, ast.Name) else "?"
        return ".".join([root, *reversed(names)])


def _found(kind: str, *names: str) -> Parsed:
    return Parsed(tuple(Part(kind, (name,)) for name in names))


def _names(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """The names that an import makes, each with what it stands for."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield alias.asname or alias.name, f"{node.module or ''}.{alias.name}"
        elif alias.asname:
            yield alias.asname, alias.name


def _literal(node: ast.Call, at: int) -> str | None:
    """A call's argument, where it is a text as it stands."""
    value = node.args[at] if len(node.args) > at else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None
