"""Decides whether an assert statement holds, without running a line of the agent's code.

A test is taken apart. The calls in it that reach what an agent has defined are evaluated where the
agent's code lives, and come back as plain values. What names a module or the task's set-up is
evaluated where no agent's code has ever run. The rest, the comparison above all, is worked out
here, step by step, by a small calculator that knows plain values only: no object of the agent's can
be equal to everything, and what is expected never goes where its code could see it.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from typing import Any

from intercode.core.errors import GoldError
from intercode.core.python_syntax import parse_python
from intercode.environments.python.safe_eval import (
    PURE_METHODS,
    evaluate,
    is_math_attribute,
    is_supported,
)

_VERDICT_FUNCTIONS = {"isclose", "isinstance", "issubclass", "any", "all", "callable", "hasattr"}
"""Functions whose answer is a verdict already, and is not left to the agent's interpreter."""


@dataclass(frozen=True, slots=True)
class SplitAssertion:
    """A test taken apart: expressions that reach the agent's code are ``asked``, others that are
    to be evaluated in a ``clean`` interpreter, and ``verdict`` has names in their places."""

    test: str
    agent_expressions: tuple[str, ...]
    clean_expressions: tuple[str, ...]
    verdict: ast.expr

    def holds(self, agent_values: list[Any], clean_values: list[Any]) -> bool:
        """Whether the test holds for these values. Raises what the calculation raises: ValueError,
        TypeError and the like, all of which mean that it does not."""
        names = {f"asked_{i}": v for i, v in enumerate(agent_values)}
        names |= {f"clean_{i}": v for i, v in enumerate(clean_values)}
        return bool(evaluate(self.verdict, names))


def split_assertion(test: str, entry: str) -> SplitAssertion:
    """Take a test apart. ``entry`` is the agent's, even where a built-in function is called so.

    Raises GoldError for a test that is not one assert statement or cannot be taken apart.
    """
    try:
        body = parse_python(test).body
    except (SyntaxError, ValueError) as e:
        raise GoldError(f"the test {test!r} is no Python: {e}") from e
    if len(body) != 1 or not isinstance(body[0], ast.Assert):
        raise GoldError(f"the test {test!r} is not one assert statement")
    parts = _Splitter(entry)
    verdict = parts.visit(body[0].test)
    if not parts.agent_expressions:
        raise GoldError(f"the test {test!r} calls nothing that a solution defines")
    _check_supported(verdict, test)
    return SplitAssertion(
        test, tuple(parts.agent_expressions), tuple(parts.clean_expressions), verdict
    )


class _Splitter(ast.NodeTransformer):
    """Puts names in the place of what is evaluated elsewhere."""

    def __init__(self, entry: str) -> None:
        self.entry = entry
        self.agent_expressions: list[str] = []
        self.clean_expressions: list[str] = []

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr):
            if self._calls_agent_code(node):
                return self._replace_with_name("asked", self.agent_expressions, node)
            if isinstance(node, ast.Compare) and self._is_equation(node):
                sides = [node.left, node.comparators[0]]
                node.left, node.comparators[0] = (
                    self._replace_with_name("asked", self.agent_expressions, side)
                    if self._reaches_agent_code(side)
                    else self.visit(side)
                    for side in sides
                )
                return node
            if not self._reaches_agent_code(node) and not is_supported(node):
                return self._replace_with_name("clean", self.clean_expressions, node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            if isinstance(node.func, ast.Attribute) and not is_math_attribute(node.func):
                node.func.value = self.visit(node.func.value)
            node.args = [self.visit(a) for a in node.args]
            for keyword in node.keywords:
                keyword.value = self.visit(keyword.value)
            return node
        return self.generic_visit(node)

    def _replace_with_name(self, kind: str, found: list[str], node: ast.expr) -> ast.Name:
        found.append(ast.unparse(node))
        return ast.Name(f"{kind}_{len(found) - 1}", ast.Load())

    def _is_equation(self, node: ast.Compare) -> bool:
        """Whether one side can be handed over as a whole: it is to equal another one that does not
        reach the agent's code, and to know what it compares does not help to get it right."""
        sides = [node.left, *node.comparators]
        reaching = [side for side in sides if self._reaches_agent_code(side)]
        if len(sides) != 2 or len(reaching) != 1 or not isinstance(node.ops[0], ast.Eq | ast.NotEq):
            return False
        other = next(side for side in sides if side is not reaching[0])
        constants = [n.value for n in ast.walk(other) if isinstance(n, ast.Constant)]
        mixed = any(c is True for c in constants) and any(c is False for c in constants)
        return not any(self._is_verdict(part, mixed) for part in ast.walk(reaching[0]))

    def _is_verdict(self, part: ast.AST, mixed: bool) -> bool:
        """Whether it says itself whether the agent's code is right. A comparison of two things that
        the agent made does not, nor one among several that are to come out differently."""
        if isinstance(part, ast.Compare) and not mixed:
            known = all(isinstance(op, ast.In | ast.NotIn) for op in part.ops)
            return not known and not all(
                self._reaches_agent_code(side) for side in (part.left, *part.comparators)
            )
        if isinstance(part, ast.Call):
            return getattr(part.func, "id", getattr(part.func, "attr", "")) in _VERDICT_FUNCTIONS
        return False

    def _calls_agent_code(self, node: ast.expr) -> bool:
        """Whether it is a call of the agent's: of a name that is no known function's, or of what
        hangs on such a call, but for methods of plain values."""
        if not isinstance(node, ast.Call):
            return False
        function = node.func
        if isinstance(function, ast.Name):
            return function.id == self.entry or not hasattr(builtins, function.id)
        if isinstance(function, ast.Attribute) and function.attr not in PURE_METHODS:
            return self._derives_from_agent(function.value)
        return isinstance(function, ast.Call) and self._calls_agent_code(function)

    def _derives_from_agent(self, node: ast.expr) -> bool:
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        return self._calls_agent_code(node) or (
            isinstance(node, ast.Name) and node.id == self.entry
        )

    def _reaches_agent_code(self, node: ast.AST) -> bool:
        return any(isinstance(n, ast.expr) and self._calls_agent_code(n) for n in ast.walk(node))


def _check_supported(node: ast.AST, test: str) -> None:
    for part in ast.walk(node):
        known = not isinstance(part, ast.expr) or is_supported(part) or isinstance(part, ast.Name)
        if not known and not (isinstance(part, ast.Attribute) and part.attr in PURE_METHODS):
            what = ast.unparse(part)
            raise GoldError(f"the test {test!r} cannot be judged: {what!r} mixes what is asked")
