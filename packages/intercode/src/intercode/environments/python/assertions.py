"""Decides whether an assert statement holds, without running a line of the agent's code here.

A test is split. Calls of the agent's definitions are evaluated in an interpreter with the agent's
code, and return plain values. Expressions that name a module or the task's set-up are evaluated in
an interpreter without it. The rest, above all the comparison, is evaluated here by safe_eval.py,
which knows plain values only. So the agent cannot define an object that equals everything, and
expected values never reach its code.
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
"""Functions whose result is a verdict by itself, so the agent's interpreter must not evaluate
them."""


@dataclass(frozen=True, slots=True)
class SplitAssertion:
    """A test in three parts.

    ``agent_expressions`` reach the agent's code. ``clean_expressions`` are evaluated in an
    interpreter without it. ``verdict`` has names in place of both.
    """

    test: str
    agent_expressions: tuple[str, ...]
    clean_expressions: tuple[str, ...]
    verdict: ast.expr

    def holds(self, agent_values: list[Any], clean_values: list[Any]) -> bool:
        """Return whether the test holds for these values.

        Raises what the evaluation raises (ValueError, TypeError and the like), which means that it
        does not hold.
        """
        names = {f"agent_{i}": v for i, v in enumerate(agent_values)}
        names |= {f"clean_{i}": v for i, v in enumerate(clean_values)}
        return bool(evaluate(self.verdict, names))


def split_assertion(test: str, entry: str) -> SplitAssertion:
    """Split a test. ``entry`` is the agent's function, even if a built-in function has this name.

    Raises GoldError for a test that is not one assert statement or cannot be split.
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
    """Replaces expressions that are evaluated elsewhere by names."""

    def __init__(self, entry: str) -> None:
        self.entry = entry
        self.agent_expressions: list[str] = []
        self.clean_expressions: list[str] = []

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr):
            if self._calls_agent_code(node):
                return self._replace_with_name("agent", self.agent_expressions, node)
            if isinstance(node, ast.Compare) and self._is_equation(node):
                sides = [node.left, node.comparators[0]]
                node.left, node.comparators[0] = (
                    self._replace_with_name("agent", self.agent_expressions, side)
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

    def _replace_with_name(self, kind: str, expressions: list[str], node: ast.expr) -> ast.Name:
        expressions.append(ast.unparse(node))
        return ast.Name(f"{kind}_{len(expressions) - 1}", ast.Load())

    def _is_equation(self, node: ast.Compare) -> bool:
        """Return whether the agent's side of a comparison can be evaluated as a whole.

        It can if the other side does not reach the agent's code: the agent's code then learns which
        expression is compared, but not with which value.
        """
        sides = [node.left, *node.comparators]
        reaching = [side for side in sides if self._reaches_agent_code(side)]
        if len(sides) != 2 or len(reaching) != 1 or not isinstance(node.ops[0], ast.Eq | ast.NotEq):
            return False
        other = next(side for side in sides if side is not reaching[0])
        constants = [n.value for n in ast.walk(other) if isinstance(n, ast.Constant)]
        mixed = any(c is True for c in constants) and any(c is False for c in constants)
        return not any(self._is_verdict(part, mixed) for part in ast.walk(reaching[0]))

    def _is_verdict(self, part: ast.AST, mixed: bool) -> bool:
        """Return whether the value of a part reveals that the agent's code is expected to pass.

        A comparison of two of the agent's values does not. If the test expects both True and False
        (``mixed``), no comparison does.
        """
        if isinstance(part, ast.Compare) and not mixed:
            known = all(isinstance(op, ast.In | ast.NotIn) for op in part.ops)
            return not known and not all(
                self._reaches_agent_code(side) for side in (part.left, *part.comparators)
            )
        if isinstance(part, ast.Call):
            return getattr(part.func, "id", getattr(part.func, "attr", "")) in _VERDICT_FUNCTIONS
        return False

    def _calls_agent_code(self, node: ast.expr) -> bool:
        """Return whether a node calls the agent's code.

        That is a call of a name that is no known function, or of an attribute of such a call's
        result, except for methods of plain values.
        """
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
            raise GoldError(f"the test {test!r} cannot be judged: {what!r} is not supported")
