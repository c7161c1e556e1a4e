"""The tests and cases that tests/hostile/README.md names exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from hostile.cases import all_cases

_ROOT = Path(__file__).resolve().parents[2]
_ROWS = [
    line
    for line in (Path(__file__).parent / "README.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| finding ")
]


def _functions(path: str) -> set[str]:
    tree = ast.parse((_ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_finding_has_a_test_that_exists() -> None:
    cases = {f"{case.kind}: {case.name}" for case in all_cases()}
    for row in _ROWS:
        tests = re.findall(r"`((?:packages/\w+/)?tests/[\w/]+\.py)::(\w+)`", row)
        named = re.findall(r"case `([^`]+)`", row)
        assert tests or named or "not contained" in row, row
        for path, function in tests:
            assert function in _functions(path), f"{path} has no {function}"
        assert cases.issuperset(named), row
    assert len(_ROWS) >= 35
