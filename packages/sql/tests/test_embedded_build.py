"""Building databases from dumps: types, order of rows, caching and errors."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest

from intercode_sql import open_engine
from intercode_sql.dump.literals import parse_insert
from intercode_sql.dump.reader import read_statements
from intercode_sql.embedded.load import loader
from intercode_sql.embedded.load.loader import build_databases
from intercode_sql.errors import SqlDataError
from intercode_sql.types import DatabaseSpec
from support.sql_engines import shop_in


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def written(folder: Path, text: str) -> Path:
    path = folder / "dump.sql"
    path.write_text(text, "utf-8")
    return path


def test_the_catalog_describes_tables_as_mysql_does(tmp_path: Path) -> None:
    found = build_databases(shop_in(tmp_path).path).catalog
    assert sorted(found.databases) == ["shop", "vault"]
    sale = found.databases["shop"]["sale"]
    assert [c.declared for c in sale.columns] == ["int", "int", "decimal(8,2)", "date"]
    assert (sale.primary, sale.rows, sale.last) == (("id",), 3, 3)
    assert [(k.name, k.parent) for k in sale.foreign_keys] == [("sale_fk", "customer")]
    assert sale.key_label("customer_id") == "MUL"  # a foreign key creates its own index
    customer = found.databases["shop"]["customer"]
    assert (customer.auto_increment, customer.collation) == (4, "utf8mb4_general_ci")


def test_the_cached_catalog_keeps_the_keys_of_its_builder_version(tmp_path: Path) -> None:
    built = build_databases(shop_in(tmp_path).path)
    stored = json.loads((built.folder / "catalog.json").read_text("utf-8"))
    assert loader.BUILDER_VERSION == "9"
    assert list(stored) == ["databases", "stamp", "collations"]
    assert set(stored["databases"]["shop"]["sale"]) == {
        "name",
        "columns",
        "indexes",
        "foreign",
        "charset",
        "collation",
        "auto_increment",
        "rows",
        "last",
        "comment",
        "query",
        "temporary",
        "generated",
        "checks",
        "triggers",
    }


def test_a_dump_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = shop_in(tmp_path)
    first = build_databases(spec.path)
    monkeypatch.setattr(loader, "_build", None)
    again = build_databases(spec.path)
    assert again == first
    assert again.file("shop").is_file()


def _build_it(path: str, answers: multiprocessing.Queue[str]) -> None:
    answers.put(str(build_databases(Path(path)).folder))


@pytest.mark.slow
def test_concurrent_processes_build_once(tmp_path: Path, cache: Path) -> None:
    spec = shop_in(tmp_path)
    context = multiprocessing.get_context("spawn")
    answers: multiprocessing.Queue[str] = context.Queue()
    workers = [context.Process(target=_build_it, args=(str(spec.path), answers)) for _ in range(3)]
    for worker in workers:
        worker.start()
    folders = {answers.get(timeout=60) for _ in workers}
    for worker in workers:
        worker.join()
    assert len(folders) == 1
    assert not list((cache / "sql").glob(".building-*"))


def test_statements_and_rows_are_parsed(tmp_path: Path) -> None:
    text = (
        "-- a comment; with a semicolon\n/*!40101 SET NAMES utf8 */;\n/*!99999 NOT YET */;\n"
        "INSERT INTO `t` VALUES (1,'a;b','it''s \\\\ \\n'),\n (-2.5e3,NULL,0x41); # the end\n"
        "/* a ; comment */ USE `x`;"
    )
    found = [s for s in read_statements(written(tmp_path, text)) if s.code]
    assert [(s.code.split()[0], s.line) for s in found] == [("SET", 2), ("INSERT", 4), ("USE", 6)]
    insert = parse_insert(found[1].code)
    assert insert is not None
    assert (insert.database, insert.table, insert.columns) == (None, "t", None)
    assert list(insert.rows()) == [[1, "a;b", "it's \\ \n"], ["-2.5e3", None, b"A"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "CREATE DATABASE d; USE d; CREATE TABLE t (a int); INSERT INTO t VALUES (1, 2);",
            "2 values",
        ),
        ("CREATE DATABASE d; USE d; INSERT INTO t VALUES (1);", "there is no table t"),
        ("CREATE TABLE t (a int);", "begin the dump with CREATE DATABASE name; USE name;"),
        ("CREATE DATABASE d; USE d; CREATE TABLE t (a int, a int);", "Duplicate column name 'a'"),
        (
            "CREATE DATABASE d; USE d; CREATE TABLE t (a int); INSERT INTO t VALUES ('x');",
            "Incorrect",
        ),
        ("CREATE DATABASE d; USE d; CREATE TABLE t (a inet6);", "a column of the type INET6"),
        ("CALL something();", "no such statement"),
        (
            "CREATE DATABASE d; INSERT INTO t VALUES ('x;",
            "line 1: the file ends within a quotation",
        ),
        ("CREATE DATABASE `../d`;", "cannot be named"),
    ],
)
def test_errors_name_the_file_and_the_statement(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(SqlDataError, match=message) as caught:
        build_databases(path)
    assert str(path) in str(caught.value)


def test_rows_are_in_primary_key_order(tmp_path: Path) -> None:
    text = (
        "CREATE DATABASE d; USE d; CREATE TABLE t (a varchar(9), b int, PRIMARY KEY (a, b));"
        "INSERT INTO t VALUES ('b', 1), ('A', 2), ('a', 1);"
    )
    found = build_databases(written(tmp_path, text))
    import sqlite3

    with sqlite3.connect(found.file("d")) as connection:
        rows = connection.execute("SELECT a, b FROM t ORDER BY rowid").fetchall()
    assert rows == [("a", 1), ("A", 2), ("b", 1)]


def test_a_relative_path_is_one_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine("embedded")
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        written(folder, f"CREATE DATABASE d; USE d; CREATE TABLE {name} (id INT);")
        monkeypatch.chdir(folder)
        session = engine.open(DatabaseSpec("mysql-dump", Path("dump.sql"), "d"))
        assert session.run("SHOW TABLES", 60.0).output == f"[('{name}',)]"
        monkeypatch.chdir(tmp_path)  # a worker that begins now has another directory
        assert session.run(f"SELECT SLEEP(0), COUNT(*) FROM {name}", 60.0).output == "[(0, 0)]"
        session.close()
    engine.close()
