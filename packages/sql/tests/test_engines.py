"""Engines register themselves."""

from __future__ import annotations

import ast
import importlib.metadata
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from intercode_sql import engine_names, engines, open_engine
from intercode_sql.base import SqlDeterminism
from intercode_sql.errors import EngineUnavailableError, SqlUsageError, UnknownEngineError


def test_each_engine_has_the_name_of_its_entry() -> None:
    for name in engine_names():
        try:
            assert engines.engine_class(name).kind == name
        except EngineUnavailableError as e:  # an extra is not installed
            assert f"intercode-sql[{name}]" in str(e)


def test_no_other_module_names_an_engine() -> None:
    """Constants of the code. Those that are left are a dialect, kinds of files, and the default
    engine of a connection; inside the embedded engine ``mysql`` is the dialect."""
    own = {"duckdb": "duckdb", "embedded": "embedded", "mysql": "server", "sqlite": "sqlite.py"}
    assert own.keys() == set(engine_names())
    root = Path(engines.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        part = path.relative_to(root).parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = node.value if isinstance(node, ast.Constant) else None
            dialect = name == "mysql" and part in ("dialect", "embedded")
            if name in own and part != own[name] and not dialect:
                found.add(f"{path.relative_to(root)}: {name}")
    assert found == {
        "base.py: mysql",
        "dbapi/connection.py: embedded",
        "dbapi/connection.py: sqlite",
        "duckdb/content.py: sqlite",
        "duckdb/engine.py: sqlite",
        "types.py: sqlite",
    }


def test_settings_that_an_engine_does_not_take_are_refused() -> None:
    clock = SqlDeterminism(True, 0, None)
    with pytest.raises(
        SqlUsageError, match="'sqlite' uses no server: leave out dsn, or take 'mysql'"
    ):
        open_engine("sqlite", "mysql://x")
    with pytest.raises(
        SqlUsageError, match="real clock: leave out determinism, or take 'embedded'"
    ):
        open_engine("sqlite", determinism=clock)
    with pytest.raises(UnknownEngineError, match="did you mean 'embedded'"):
        open_engine("embeded")
    with pytest.raises(UnknownEngineError, match="unknown engine 5; known: "):
        open_engine(5)  # type: ignore[arg-type]


def test_another_package_adds_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        kind = "other"
        SETTINGS = frozenset({"dsn"})

        @classmethod
        def start(cls, **settings: Any) -> Any:
            return settings

    monkeypatch.setattr(engines, "OTHER", Other, raising=False)
    added = importlib.metadata.EntryPoint("other", "intercode_sql.engines:OTHER", engines.GROUP)
    lost = importlib.metadata.EntryPoint("lost", "no_such_module:X", engines.GROUP)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [lost, added])
    engines._entries.cache_clear()
    try:
        assert engine_names() == ("lost", "other")
        assert open_engine("other", "there") == {"dsn": "there"}
        with pytest.raises(EngineUnavailableError, match=r"needs no_such_module: pip install"):
            open_engine("lost")
    finally:
        engines._entries.cache_clear()


def test_a_checkout_that_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [])
    engines._entries.cache_clear()
    with pytest.raises(EngineUnavailableError, match="installed again"):
        open_engine("embedded")
    engines._entries.cache_clear()


def test_importing_the_package_loads_no_interface_and_no_reader_of_dumps() -> None:
    code = (
        "import sys, intercode_sql\n"
        "parts = 'dbapi', 'dump', 'embedded', 'dialect', 'worker'\n"
        "print(sorted(n for n in sys.modules if n.startswith('intercode_sql.')"
        " and n.split('.')[1] in parts))\n"
        "print(intercode_sql.connect is intercode_sql.dbapi.connect)\n"
        "print(hasattr(intercode_sql, 'unknown'))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["[]", "True", "False"]
