"""Parses Python code for policies: its imports, calls and attributes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from intercode.core.python_syntax import parse_python
from intercode.environments.base.policy.rules import (
    ActionLimitError,
    ActionPart,
    ParsedAction,
    merge_parsed,
)

_MAX_DEPTH = 2
_IMPORTERS = ("__import__", "importlib.import_module", "importlib.__import__")
_EXECUTORS = ("exec", "eval")


def python_action_parts(code: str, depth: int = 0) -> ParsedAction:
    """Return the modules that code imports, the functions that it calls, and its attributes.

    Imports by ``__import__`` and ``importlib`` count, and so does code in a literal ``exec`` or
    ``eval``. Names are dotted and refer to the imported module: after ``import os as o``,
    ``o.system`` is ``os.system``. A ``?`` stands for an expression without a name. Raises
    ActionLimitError for code that is nested too deeply.
    """
    try:
        return merge_parsed(_Reader(parse_python(code), depth).read())
    except (SyntaxError, ValueError) as e:
        return ParsedAction((), f"a syntax error ({getattr(e, 'msg', None) or e})")
    except (MemoryError, RecursionError) as e:  # limits of Python's parser
        raise ActionLimitError("code that is nested too deeply") from e


class _Reader:
    def __init__(self, tree: ast.Module, depth: int) -> None:
        self._nodes, self._depth = list(ast.walk(tree)), depth
        self._imported: dict[str, str] = {}
        for node in self._nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._imported.update(_imported_names(node))
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        self._defined = {node.name for node in self._nodes if isinstance(node, kinds)}
        inner = (node.value for node in self._nodes if isinstance(node, ast.Attribute))
        self._inner = {id(node) for node in inner}

    def read(self) -> Iterator[ParsedAction]:
        for node in self._nodes:
            for decorator in getattr(node, "decorator_list", ()):
                if not isinstance(decorator, ast.Call):
                    yield self._called(decorator)
            if isinstance(node, ast.Import):
                yield _parts("import", *(alias.name for alias in node.names))
            elif isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                yield _parts("import", *(f"{module}.{alias.name}" for alias in node.names))
            elif isinstance(node, ast.Call):
                yield from self._call(node)
            elif isinstance(node, ast.Attribute) and id(node) not in self._inner:
                yield _parts("attribute", self._dotted_name(node))

    def _call(self, node: ast.Call) -> Iterator[ParsedAction]:
        called = self._called(node.func)
        name = called.parts[0].text
        yield called
        if name in _IMPORTERS:
            module = _literal_argument(node, 0)
            computed = ParsedAction((), f"what {name} imports is calculated")
            yield computed if module is None else _parts("import", module)
        elif name in _EXECUTORS:
            code = _literal_argument(node, 0)
            if code is None or self._depth == _MAX_DEPTH:
                yield ParsedAction((), f"what {name} runs is calculated")
            else:
                yield python_action_parts(code, self._depth + 1)
        elif name == "getattr" and (attribute := _literal_argument(node, 1)) is not None:
            yield _parts("attribute", f"{self._dotted_name(node.args[0])}.{attribute}")

    def _called(self, function: ast.expr) -> ParsedAction:
        name = self._dotted_name(function).removeprefix("builtins.").removeprefix("__builtins__.")
        return ParsedAction((ActionPart("call", (name,), defined_by_action=name in self._defined),))

    def _dotted_name(self, node: ast.expr) -> str:
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        root = self._imported.get(node.id, node.id) if isinstance(node, ast.Name) else "?"
        return ".".join([root, *reversed(names)])


def _parts(kind: str, *names: str) -> ParsedAction:
    return ParsedAction(tuple(ActionPart(kind, (name,)) for name in names))


def _imported_names(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Yield the names that an import defines, each with the dotted name of its object."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield alias.asname or alias.name, f"{node.module or ''}.{alias.name}"
        elif alias.asname:
            yield alias.asname, alias.name


def _literal_argument(node: ast.Call, at: int) -> str | None:
    """Return an argument of a call that is a string literal, else None."""
    value = node.args[at] if len(node.args) > at else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None
