"""Reading dumps: statements, literals, and the files that a dump includes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from intercode_sql.dump.literals import parse_insert, unescape
from intercode_sql.dump.reader import dump_digest, read_statements
from intercode_sql.errors import SqlDataError


def statements(folder: Path, content: str | bytes) -> list[tuple[int, str]]:
    path = folder / "dump.sql"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [(s.line, s.code) for s in read_statements(path)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT '/*!50000 kept */ -- #';", [(1, "SELECT '/*!50000 kept */ -- #'")]),
        ("-- x;\n/* y; */ SELECT 1 /* z; */;", [(2, "SELECT 1")]),
        ("/*!40101 SET a */;/*!99999 NO */;/*M!100616 SET b*/;", [(1, "SET a"), (1, ""), (1, "")]),
        ("A /*!50000 B /*!40000 C */ D */ E;", [(1, "A   B   C   D   E")]),
        ("DELIMITER ;;\nBEGIN; END;;\ndelimiter ;\nUSE d;", [(2, "BEGIN; END"), (4, "USE d")]),
        ("DELIMITER $$\nA'$$'; $ $$\nDELIMITER ;\nB", [(2, "A'$$'; $"), (4, "B")]),
        ("DELIMITER //\nA / b; //\nDELIMITER ;\n\nB;", [(2, "A / b;"), (5, "B")]),
        ("A '\\'; ' \"\\\";\" `;`;\r\nB", [(1, "A '\\'; ' \"\\\";\" `;`"), (2, "B")]),
        ("SELECT 5--1, 6 - -7, 'a''b;c';", [(1, "SELECT 5--1, 6 - -7, 'a''b;c'")]),
        ("\ufeffUSE d;", [(1, "USE d")]),
        (" ; ;\n;", []),
        ("", []),
    ],
)
def test_statements_end_where_the_client_ends_them(
    tmp_path: Path, text: str, found: list[tuple[int, str]]
) -> None:
    assert statements(tmp_path, text) == found


def test_files_in_utf_16_and_bytes_that_are_not_utf_8(tmp_path: Path) -> None:
    assert statements(tmp_path, "USE d;\nSELECT 'é';".encode("utf-16")) == [
        (1, "USE d"),
        (2, "SELECT 'é'"),
    ]
    ((_, code),) = statements(tmp_path, b"SELECT '\xff\x80';")
    assert code.encode("utf-8", "surrogateescape") == b"SELECT '\xff\x80'"


def test_statements_longer_than_what_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("intercode_sql.dump.reader._CHUNK", 3)
    text = "A 'b\n;\n''c' /* d;\n */ e;\n\n-- f;\n/*!50000 g\nh */ i;\nDELIMITER ;;\nj;\nk;;"
    assert statements(tmp_path, text) == [
        (1, "A 'b\n;\n''c'   e"),
        (7, "g\nh   i"),
        (10, "j;\nk"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("USE d;\n\nSELECT 'x;", "line 3: the file ends within a quotation"),
        ("/* x", "line 1: the file ends within a comment"),
        ("A;\n/*!50000 B", "line 2: the file ends within a comment"),
        ("A;\nSOURCE ../x.sql", "line 2: a dump can include only files of its own directory"),
        ("A;\nSOURCE none.sql;", "line 2: there is no file .*none.sql"),
        ("SOURCE dump.sql;", "include each other"),
    ],
)
def test_what_cannot_be_read_names_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SqlDataError, match=message):
        statements(tmp_path, text)


def test_included_files_are_read_where_they_are_named_and_change_the_digest(tmp_path: Path) -> None:
    (tmp_path / "rows.dump").write_text("B;\nC;")
    text = "A;\nsource rows.dump ;\n\\. rows.dump\nD;"
    assert [code for _, code in statements(tmp_path, text)] == ["A", "B", "C", "B", "C", "D"]
    before = dump_digest(tmp_path / "dump.sql")
    (tmp_path / "rows.dump").write_text("B;")
    assert dump_digest(tmp_path / "dump.sql") != before


@pytest.mark.parametrize(
    ("literals", "row"),
    [
        ("1, -2, +3, 1.50, -2.5e3, .5", [1, -2, 3, "1.50", "-2.5e3", ".5"]),
        ("NULL, TRUE, false", [None, 1, 0]),
        (r"'it''s', 'a\'b', 'c\\', '\0\n\Z\%\_\q'", ["it's", "a'b", "c\\", "\0\n\x1a\\%\\_q"]),
        (r'''"say ""x""", "it''s", "\""''', ['say "x"', "it''s", '"']),
        ("N'x', n'y''z'", ["x", "y'z"]),
        ("0x41, X'4142', x'', b'101', 0b1", [b"A", b"AB", b"", b"\5", b"\1"]),
        (r"_binary 'a\0b', _utf8mb4 0x41", [b"a\0b", b"A"]),
        ("NOW(), 'a' 'b', f(1,'),(')", ["!NOW()", "!'a' 'b'", "!f(1,'),(')"]),
        ("_latin1'x', 1 + 2", ["!_latin1'x'", "!1 + 2"]),
    ],
)
def test_literals(literals: str, row: list[Any]) -> None:
    insert = parse_insert(f"INSERT INTO t VALUES ({literals}) , ({literals})")
    assert insert is not None
    found = list(insert.rows(lambda text: f"!{text}"))
    assert found == [row, row]


def test_heads_of_inserts() -> None:
    text = "INSERT IGNORE INTO `a``b`.`t` (`Free (K-12)`, `x,y`) VALUES (1,2);"
    insert = parse_insert(text.rstrip(";"))
    assert insert is not None
    assert (insert.database, insert.table, insert.columns) == ("a`b", "t", ("Free (K-12)", "x,y"))
    assert (insert.ignoring, insert.replacing) == (True, False)
    replacing = parse_insert("replace t value (1)")
    assert replacing is not None
    assert replacing.replacing
    assert parse_insert("INSERT INTO t SELECT 1") is None
    assert parse_insert("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1") is None
    assert parse_insert("INSERT INTO t VALUES ('ON DUPLICATE KEY UPDATE')") is not None
    empty = parse_insert("INSERT INTO t () VALUES ()")
    assert empty is not None
    assert list(empty.rows()) == [[]]


@pytest.mark.parametrize("rows", ["(1", "(1,)x", "(1) x", "(,1)"])
def test_rows_that_are_none(rows: str) -> None:
    insert = parse_insert(f"INSERT INTO t VALUES {rows}")
    assert insert is not None
    with pytest.raises(SqlDataError, match="row"):
        list(insert.rows())


def test_unescape_keeps_the_other_quote() -> None:
    assert unescape("a''b", '"') == "a''b"
    assert unescape('a""b', "'") == 'a""b'
