"""Engines register themselves."""

from __future__ import annotations

import importlib.metadata
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
    monkeypatch.setattr(engines, "entry_points", lambda group: [lost, added])
    engines._entries.cache_clear()
    try:
        assert engine_names() == ("lost", "other")
        assert open_engine("other", "there") == {"dsn": "there"}
        with pytest.raises(EngineUnavailableError, match=r"needs no_such_module: pip install"):
            open_engine("lost")
    finally:
        engines._entries.cache_clear()


def test_a_checkout_that_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "entry_points", lambda group: [])
    engines._entries.cache_clear()
    with pytest.raises(EngineUnavailableError, match="installed again"):
        open_engine("embedded")
    engines._entries.cache_clear()
