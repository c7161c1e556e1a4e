"""The cache of translations on disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from intercode_sql.dialect.errors import StatementError
from intercode_sql.embedded import EmbeddedEngine
from intercode_sql.embedded.catalog.types import INT, STRING, Type
from intercode_sql.embedded.catalog.values import result_converter
from intercode_sql.embedded.compile.translation import Translation
from intercode_sql.embedded.execute import caches
from intercode_sql.embedded.execute.caches import (
    FileStore,
    Key,
    open_store,
    translator_digest,
)
from intercode_sql.types import DatabaseSpec
from support.sql_engines import shown

KINDS = (INT, STRING, Type("string", 3, words=("a", "ä\n"), strong=True))
MADE = Translation(
    "SELECT 'ä\n', \"x y\" AS c0",
    ("n", "ü", "m"),
    KINDS,
    tuple(map(result_converter, KINDS)),
    frozenset({"shop"}),
)
FAULT = StatementError(1054, "Unknown column 'ä\n' in 'field list'")


def key(text: str) -> Key:
    return ("digest/shop", "shop", "MODES", text)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "kept"
    monkeypatch.setenv(caches.DIRECTORY_VARIABLE, str(path))
    return path


def store_with_entries(folder: Path) -> Path:
    """Return a store with a translation and an error, and its file."""
    folder.mkdir(exist_ok=True)
    one = FileStore(folder)
    one.add(key("SELECT 1"), MADE)
    one.add(key("SELECT x"), FAULT)
    one.flush()
    return Path(one.path)


def lines_of(path: Path) -> list[list[bytes]]:
    """Return checksum, key and content of each line."""
    return [line.split(b" ", 2) for line in path.read_bytes().split(b"\n") if line]


def test_another_process_finds_entries(folder: Path) -> None:
    store_with_entries(folder)
    other = FileStore(folder)
    found, error = other.find(key("SELECT 1")), other.find(key("SELECT x"))
    assert isinstance(found, Translation) and isinstance(error, StatementError)
    assert (found.sql, found.names, found.types) == (MADE.sql, MADE.names, MADE.types)
    assert (found.databases, found.volatile) == (MADE.databases, False)
    assert [r is None for r in found.converters] == [r is None for r in MADE.converters]
    assert (error.number, error.message) == (FAULT.number, FAULT.message)
    assert other.find(key("SELECT 2")) is None
    assert other.find(("digest/shop", "shop", "", "SELECT 1")) is None  # other SQL modes


def test_later_entries_of_other_processes_are_read(folder: Path) -> None:
    path = store_with_entries(folder)
    reading, writing = FileStore(folder), FileStore(folder)
    assert reading.find(key("SELECT 1")) and reading.find(key("late")) is None
    writing.add(key("late"), MADE)
    assert reading.find(key("late")) is None  # it is not written yet: several are written together
    writing.flush()
    assert reading.find(key("late"))
    path.unlink()
    assert reading.find(key("late")) and reading.find(key("SELECT 9")) is None
    store_with_entries(folder)
    assert reading.find(key("SELECT 9")) is None and reading.find(key("SELECT 1"))


@pytest.mark.parametrize("harm", [b"SELECT", b"shop", b"names"])
def test_a_broken_line_is_ignored(folder: Path, harm: bytes) -> None:
    path = store_with_entries(folder)
    whole = path.read_bytes()
    assert harm in whole
    path.write_bytes(whole.replace(harm, harm[::-1], 1))
    broken = FileStore(folder)
    assert broken.find(key("SELECT 1")) is None
    assert isinstance(broken.find(key("SELECT x")), StatementError)


def test_an_unfinished_line_affects_no_other(folder: Path) -> None:
    path = store_with_entries(folder)
    path.write_bytes(path.read_bytes()[:-9])  # as if its writer was killed
    after = FileStore(folder)
    after.add(key("SELECT 3"), MADE)
    after.flush()
    found = FileStore(folder)
    assert found.find(key("SELECT x")) is None
    assert found.find(key("SELECT 1")) and found.find(key("SELECT 3"))
    path.write_bytes(os.urandom(5000))
    assert FileStore(folder).find(key("SELECT 1")) is None


def test_an_entry_with_a_wrong_key_is_ignored(folder: Path) -> None:
    path = store_with_entries(folder)
    (_, first, _), (check, _, text) = lines_of(path)
    path.write_bytes(b" ".join((check, first, text)) + b"\n")
    assert FileStore(folder).find(key("SELECT 1")) is None


def test_files_that_others_can_write_to_are_ignored(folder: Path) -> None:
    path = store_with_entries(folder)
    path.chmod(0o666)
    assert FileStore(folder).find(key("SELECT 1")) is None
    size = path.stat().st_size
    other = FileStore(folder)
    other.add(key("SELECT 4"), MADE)
    other.flush()
    assert path.stat().st_size == size
    folder.chmod(0o777)
    assert open_store() is None
    folder.chmod(0o700)
    assert isinstance(open_store(), FileStore)


def test_the_file_size_is_limited(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = store_with_entries(folder)
    one = FileStore(folder)
    one.add(
        key("long"),
        Translation("x" * caches.MAX_ENTRY_CHARACTERS, (), (), (), frozenset()),
    )
    one.flush()
    assert FileStore(folder).find(key("long")) is None
    with monkeypatch.context() as smaller:
        smaller.setattr(caches, "MAX_FILE_BYTES", 10)
        one.add(key("SELECT 5"), MADE)
        one.flush()
    assert not path.exists()
    store_with_entries(folder)
    assert FileStore(folder).find(key("SELECT 1"))


def test_old_versions_are_deleted(folder: Path) -> None:
    folder.mkdir()
    for number in range(6):
        old = folder / f"translations-{number}"
        old.write_text("")
        os.utime(old, (number, number))
    path = store_with_entries(folder)
    kept = {f"translations-{n}" for n in (3, 4, 5)}
    assert {p.name for p in folder.iterdir()} == {path.name} | kept
    assert translator_digest() in path.name


def test_without_a_directory_nothing_is_stored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(caches.DIRECTORY_VARIABLE, "")
    assert open_store() is None
    monkeypatch.setenv(caches.DIRECTORY_VARIABLE, str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    assert open_store() is None
    monkeypatch.delenv(caches.DIRECTORY_VARIABLE)
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
    assert isinstance(open_store(), FileStore)
    assert (tmp_path / "cache" / "sql" / "translations").stat().st_mode & 0o077 == 0


def engine_in(folder: Path) -> EmbeddedEngine:
    """Return an engine with that store, as in a new process. All its statements run in this
    one."""
    caches._caches_for.cache_clear()
    return EmbeddedEngine(bounded=False)


STATEMENTS = [
    ("SELECT name, MAX(id) FROM customer WHERE city = 'bern' GROUP BY name ORDER BY 1", True),
    ("SELECT SUM(price), AVG(price), MIN(day) FROM sale", True),
    ("SELECT nowhere FROM sale", True),
    ("SELECT name, COUNT(*) FROM customer GROUP BY city", True),
    ("SELECT @x, NOW() > '2020-01-01'", False),
    ("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'shop'", None),
    ("DELETE FROM sale", False),
]


def test_a_second_process_parses_nothing_again(
    folder: Path, shop: DatabaseSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = engine_in(folder)
    one = first.open(shop)
    told = [shown(one, code) for code, _ in STATEMENTS]
    after = shown(one, "SELECT COUNT(*) FROM sale")
    one.close()
    first.close()
    text = "\n".join(p.read_text() for p in folder.iterdir())
    assert "customer" in text and "DELETE" not in text
    from intercode_sql.embedded.execute import dispatch

    parsed: list[str] = []
    parse = dispatch.parse
    monkeypatch.setattr(dispatch, "parse", lambda code, *a: parsed.append(code) or parse(code, *a))
    second = engine_in(folder)
    two = second.open(shop)
    for (code, lasts), before in zip(STATEMENTS, told, strict=True):
        assert shown(two, code) == before
        if lasts is not None:
            assert (code not in parsed) == lasts, code
    # the changed count, not the first one
    assert shown(two, "SELECT COUNT(*) FROM sale") == after == "[(0,)]"
    two.close()
    second.close()


PROCESS = """
import sys
from pathlib import Path
from intercode_sql import open_engine
from intercode_sql.types import DatabaseSpec
engine = open_engine("embedded")
session = engine.open(DatabaseSpec("mysql-dump", Path(sys.argv[1]), "shop"))
for n in range(120):
    told = session.run(f"SELECT COUNT(*) + {n} FROM sale", 60.0).output
    assert told == f"[({n + 3},)]", told
session.close()
engine.close()
"""


@pytest.mark.slow
def test_many_processes_share_a_file(folder: Path, shop: DatabaseSpec) -> None:
    engine_in(folder).open(shop).close()  # builds the database once
    command = [sys.executable, "-c", PROCESS, str(shop.path)]
    running = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait(60) for process in running] == [0] * 4
    (path,) = folder.iterdir()
    lines = lines_of(path)
    assert len({name for _, name, _ in lines}) == 120
    for check, name, text in lines:
        assert check == caches._checksum(name, text) and json.loads(text)["used"] == ["shop"]
