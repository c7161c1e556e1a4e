"""Fixtures: the shop database, and a server that holds it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from intercode_sql import SqlEngine, SqlSession
from intercode_sql.types import DatabaseSpec
from support.sql_engines import engine_or_skip, shop_in

collect_ignore = [] if find_spec("intercode") else ["test_mysql_server.py", "test_mysql_session.py"]
"""Tests that need processes and waiting of other tests of the product."""


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
