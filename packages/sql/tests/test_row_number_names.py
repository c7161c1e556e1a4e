"""Tables whose columns have SQLite's names of the row number: every statement writes the rows that
it selects, and no others."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from intercode_sql import SqlSession, open_engine
from intercode_sql.errors import SqlDataError
from intercode_sql.types import DatabaseSpec
from support.sql_engines import engine_or_skip

Open = Callable[[str], SqlSession]
NAMES = (
    *((name, "k") for name in ("rowid", "_rowid_", "oid", "OID", "_RowId_")),
    *permutations(("rowid", "_rowid_", "oid"), 2),
)
"""The names of the columns ``A`` and ``B`` of the statements below."""
DUMP = """
CREATE DATABASE d; USE d;
CREATE TABLE p (id int PRIMARY KEY, A int, B int);
INSERT INTO p VALUES (3,1,NULL),(1,1,2),(2,1,1);
CREATE TABLE h (A int, v varchar(5), B int);
INSERT INTO h VALUES (2,'x',1),(2,'y',1),(NULL,'z',2);
CREATE TABLE o (A int PRIMARY KEY, B int, UNIQUE KEY (B));
INSERT INTO o VALUES (30,1),(10,3),(20,2);
CREATE TABLE c (id int, A int, B int,
  CONSTRAINT f FOREIGN KEY (A) REFERENCES o (A) ON DELETE CASCADE ON UPDATE CASCADE,
  CONSTRAINT g FOREIGN KEY (B) REFERENCES o (B) ON DELETE SET NULL ON UPDATE CASCADE);
INSERT INTO c VALUES (1,10,1),(2,20,1),(3,20,2),(4,NULL,2);
CREATE TABLE m (id int PRIMARY KEY, A int, B int AS (A + id), CHECK (A < 100));
INSERT INTO m (id, A) VALUES (2,1),(1,1);
"""
KEYED, HEAP, PARENT, CHILD, COMPUTED = (
    f"SELECT * FROM {table}" for table in ("p", "h", "o ORDER BY A", "c", "m")
)
CASES: dict[str, tuple[list[str], list[tuple[Any, ...]]]] = {
    "the order of a key": ([KEYED], [(1, 1, 2), (2, 1, 1), (3, 1, None)]),
    "the order of a heap": ([HEAP], [(2, "x", 1), (2, "y", 1), (None, "z", 2)]),
    "the order of a key with such a name": (
        [
            "CREATE TABLE n (A int PRIMARY KEY, v int, B int)",
            "INSERT INTO n VALUES (3,1,1),(1,1,2),(2,1,3)",
            "DELETE FROM n WHERE B = 2",
            "INSERT INTO n VALUES (1,4,4)",
            "SELECT * FROM n",
        ],
        [(1, 4, 4), (2, 1, 3), (3, 1, 1)],
    ),
    "UPDATE": (["UPDATE p SET A = 5 WHERE id = 1", KEYED], [(1, 5, 2), (2, 1, 1), (3, 1, None)]),
    "UPDATE where it is NULL": (
        ["UPDATE h SET v = 'n' WHERE A IS NULL", HEAP],
        [(2, "x", 1), (2, "y", 1), (None, "n", 2)],
    ),
    "UPDATE with ORDER BY and LIMIT": (
        ["UPDATE h SET B = 9 ORDER BY v DESC LIMIT 1", HEAP],
        [(2, "x", 1), (2, "y", 1), (None, "z", 9)],
    ),
    "UPDATE of a key with such a name": (
        ["UPDATE o SET A = A + 1 WHERE B = 2", PARENT],
        [(10, 3), (21, 2), (30, 1)],
    ),
    "DELETE": (["DELETE FROM p WHERE id = 2", KEYED], [(1, 1, 2), (3, 1, None)]),
    "DELETE where it is NULL": (["DELETE FROM h WHERE v = 'z'", HEAP], [(2, "x", 1), (2, "y", 1)]),
    "DELETE with LIMIT": (["DELETE FROM h LIMIT 1", HEAP], [(2, "y", 1), (None, "z", 2)]),
    "INSERT": (
        ["INSERT INTO h VALUES (1,'n',0)", "INSERT INTO h (v) VALUES ('m')", HEAP],
        [(2, "x", 1), (2, "y", 1), (None, "z", 2), (1, "n", 0), (None, "m", None)],
    ),
    "REPLACE": (
        ["REPLACE INTO p VALUES (2,7,7),(4,1,1)", KEYED],
        [(1, 1, 2), (2, 7, 7), (3, 1, None), (4, 1, 1)],
    ),
    "REPLACE with two equal keys": (
        ["SET foreign_key_checks = 0", "REPLACE INTO o VALUES (10,1)", PARENT],
        [(10, 1), (20, 2)],
    ),
    "ON DUPLICATE KEY": (
        ["INSERT INTO p VALUES (1,8,8),(9,9,9) ON DUPLICATE KEY UPDATE A = VALUES(A) + 1", KEYED],
        [(1, 9, 2), (2, 1, 1), (3, 1, None), (9, 9, 9)],
    ),
    "ON DUPLICATE KEY with such a name": (
        ["INSERT INTO o VALUES (99,2) ON DUPLICATE KEY UPDATE B = 7", PARENT],
        [(10, 3), (20, 7), (30, 1)],
    ),
    "INSERT IGNORE and CHECK": (
        ["INSERT IGNORE INTO m (id, A) VALUES (3,500),(4,1)", COMPUTED],
        [(1, 1, 2), (2, 1, 3), (4, 1, 5)],
    ),
    "generated columns": (["UPDATE m SET A = 4 WHERE id = 2", COMPUTED], [(1, 1, 2), (2, 4, 6)]),
    "UPDATE of several tables": (
        [
            "UPDATE p JOIN h ON h.B = p.B SET p.A = 6, h.v = 'w'",
            "SELECT id, p.A, v, h.A FROM p, h ORDER BY id, v, h.A",
        ],
        [
            (i, a, v, b)
            for i, a in ((1, 6), (2, 6), (3, 1))
            for v, b in (("w", None), ("w", 2), ("w", 2))
        ],
    ),
    "DELETE of several tables": (
        [
            "DELETE p, h FROM p JOIN h ON h.B = p.B WHERE p.id = 2",
            "SELECT id, v FROM p, h ORDER BY id",
        ],
        [(1, "z"), (3, "z")],
    ),
    "a foreign key that cascades": (
        ["DELETE FROM o WHERE A = 20", CHILD],
        [(1, 10, 1), (4, None, None)],
    ),
    "a foreign key that sets NULL": (
        ["DELETE FROM o WHERE A = 30", CHILD],
        [(1, 10, None), (2, 20, None), (3, 20, 2), (4, None, 2)],
    ),
    "a foreign key whose parent changes": (
        ["UPDATE o SET A = 11 WHERE A = 10", "UPDATE o SET B = 5 WHERE B = 1", CHILD],
        [(1, 11, 5), (2, 20, 5), (3, 20, 2), (4, None, 2)],
    ),
    "TRUNCATE": (["TRUNCATE h", "INSERT INTO h VALUES (5,'a',5)", HEAP], [(5, "a", 5)]),
    "CREATE and ALTER": (
        [
            "CREATE TABLE n (v int)",
            "INSERT INTO n VALUES (3),(1),(2)",
            "ALTER TABLE n ADD A int DEFAULT 4",
            "ALTER TABLE n ADD B int",
            "UPDATE n SET A = 9 WHERE v = 1",
            "DELETE FROM n WHERE v = 3",
            "SELECT * FROM n",
        ],
        [(1, 9, None), (2, 4, None)],
    ),
    "CREATE from a query": (
        [
            "CREATE TABLE n SELECT * FROM p",
            "DELETE FROM n WHERE id = 2",
            "ALTER TABLE n DROP id",
            "UPDATE n SET A = 3 WHERE B IS NULL",
            "SELECT * FROM n",
        ],
        [(1, 2), (3, None)],
    ),
    "an index": (
        ["CREATE INDEX i ON h (A)", "DELETE FROM h WHERE v = 'x'", HEAP],
        [(2, "y", 1), (None, "z", 2)],
    ),
}


@pytest.fixture(params=["embedded", pytest.param("mysql", marks=pytest.mark.mysql)])
def load(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """A function that loads a dump into one of the engines and opens a session."""
    engine = engine_or_skip(request.param)
    request.addfinalizer(engine.close)

    def opened(dump: str) -> SqlSession:
        path = tmp_path / "d.sql"
        path.write_text(dump, "utf-8")
        session = engine.open(DatabaseSpec("mysql-dump", path, "d"))
        request.addfinalizer(session.close)
        return session

    return opened


@pytest.mark.parametrize("names", NAMES, ids="-".join)
def test_statements_write_the_rows_that_they_select(load: Open, names: tuple[str, str]) -> None:
    def named(text: str) -> str:
        return re.sub(r"\b[AB]\b", lambda found: names["AB".index(found[0])], text)

    for case, (codes, right) in CASES.items():
        with closing(load(named(DUMP))) as session:
            for code in map(named, codes):
                result = session.run(code, 60.0)
                assert result.ok, (case, code, result.output)
            assert list(result.rows or ()) == right, case


@pytest.mark.parametrize(
    "code",
    [
        "CREATE TABLE n (rowid int, oid int, _ROWID_ int)",
        "ALTER TABLE p ADD oid int, ADD _rowid_ int",
        "CREATE TABLE n SELECT 1 AS rowid, 2 AS oid, 3 AS _rowid_",
        "ALTER TABLE h CHANGE v _rowid_ varchar(5), ADD oid int",
    ],
)
def test_a_table_with_all_three_names_is_refused(tmp_path: Path, code: str) -> None:
    dump = DUMP.replace("A int", "rowid int").replace("A)", "rowid)").replace("(A ", "(rowid ")
    message = "with columns named rowid, _rowid_ and oid"
    path = tmp_path / "d.sql"
    with closing(open_engine("embedded")) as engine:
        path.write_text(dump, "utf-8")
        with closing(engine.open(DatabaseSpec("mysql-dump", path, "d"))) as session:
            assert message in session.run(code, 60.0).output
            assert session.run("UPDATE p SET rowid = 5 WHERE id = 1", 60.0).ok
            assert session.run("SELECT id, rowid FROM p", 60.0).rows == ((1, 5), (2, 1), (3, 1))
        path.write_text(f"{dump}{code};\n", "utf-8")
        with pytest.raises(SqlDataError, match=message):
            engine.open(DatabaseSpec("mysql-dump", path, "d"))
