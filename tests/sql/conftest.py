"""Fixtures: the shop database, and a server that holds it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from intercode_sql import SqlEngine, SqlSession
from intercode_sql.types import DatabaseSpec
from support.shop import shop_in
from support.sql_engines import engine_or_skip


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> DatabaseSpec:
    return shop_in(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="session")
def mysql() -> Iterator[SqlEngine]:
    engine = engine_or_skip("mysql")
    yield engine
    engine.close()


@pytest.fixture
def session(mysql: SqlEngine, shop: DatabaseSpec) -> Iterator[SqlSession]:
    opened = mysql.open(shop)
    yield opened
    opened.close()
