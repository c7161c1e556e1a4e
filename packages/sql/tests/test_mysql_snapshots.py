"""Snapshots of sessions on a server."""

from __future__ import annotations

from typing import Any

import pytest

from intercode_sql import SqlEngine, SqlSession
from intercode_sql.types import DatabaseSpec
from support.sql_engines import shown

pytestmark = pytest.mark.mysql


def test_a_snapshot_has_data_settings_and_variables(session: SqlSession) -> None:
    for code in (
        "CREATE TABLE fresh (a int)",
        "INSERT INTO fresh VALUES (1)",
        "SET @x = 'ä''\\\\', @y = 5",
        "SET sql_mode = 'ANSI_QUOTES'",
        "CREATE VIEW seen AS SELECT a FROM fresh",
        "CREATE PROCEDURE more() INSERT INTO fresh VALUES (7)",
        "START TRANSACTION",
        "INSERT INTO fresh VALUES (2)",
    ):
        assert session.run(code, 60.0).exit_code == 0, code
    state_before = session.state_text()
    kept = session.snapshot()
    shown(session, "ROLLBACK")
    assert shown(session, "SELECT * FROM fresh") == "[(1,)]"
    for open_one in (kept.open, kept.open_last):
        again = open_one()
        assert again.state_text() == state_before
        assert shown(again, 'SELECT @x, @y, "a" FROM fresh') == (
            '[("ä\'\\\\", 5, 1), ("ä\'\\\\", 5, 2)]'
        )
        assert shown(again, "CALL more()") == "None"
        assert shown(again, "SELECT * FROM seen") == "[(1,), (2,), (7,)]"
        assert "fresh" in " ".join(again.changes())
        again.close()
    assert shown(session, "SELECT * FROM fresh") == "[(1,)]"
    with pytest.raises(ValueError, match="closed"):
        kept.open()


def test_variables_on_a_server_that_does_not_list_them(
    session: SqlSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MySQL is such a server; here MariaDB plays its role."""
    from intercode_sql.server import pristine
    from intercode_sql.server import session as sessions

    taken = pristine.changed_settings

    class Unlisted:
        is_mariadb = False

        def __init__(self, link: Any) -> None:
            self.query = link.query

    def ask(link: Any, base: dict[str, Any], named: set[str]) -> pristine.Settings:
        return taken(Unlisted(link), base, named)  # type: ignore[arg-type]

    monkeypatch.setattr(pristine, "_SCHEMA", dict.fromkeys((True, False), "information_schema"))
    monkeypatch.setattr(sessions, "changed_settings", ask)
    shown(session, 'SET @x = "ä\'", @y = 2.50, @z = NULL')
    again = session.snapshot().open_last()
    assert shown(again, "SELECT @x, @y, @z") == "[(\"ä'\", Decimal('2.50'), None)]"
    again.close()


def test_a_snapshot_names_omitted_tables(session: SqlSession) -> None:
    shown(session, "CREATE TEMPORARY TABLE IF NOT EXISTS `mine` (a int)")
    assert shown(session, "SELECT * FROM mine") == "[]"
    kept = session.snapshot()
    assert kept.omitted_tables == ("temporary table mine",)
    again = kept.open_last()
    assert "Table 'shop.mine' doesn't exist" in shown(again, "SELECT * FROM mine")
    again.close()


def test_a_snapshot_of_a_reader_copies_nothing(mysql: SqlEngine, shop: DatabaseSpec) -> None:
    session = mysql.open(shop)
    kept = session.snapshot()
    again = kept.open_last()
    session.close()
    assert shown(again, "SELECT COUNT(*) FROM sale") == "[(3,)]"
    assert again.changes() == []
    again.close()
