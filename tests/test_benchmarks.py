"""Tests that benchmarks name methods that exist."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_WHERE = Path(__file__).parent.parent / "benchmarks" / "where.py"


def test_the_timed_methods_exist() -> None:
    spec = importlib.util.spec_from_file_location("where", _WHERE)
    assert spec is not None and spec.loader is not None
    where = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(where)
    missing = [name for name, owner, method in where.PARTS if not hasattr(owner, method)]
    assert len(where.PARTS) > 5 and not missing
