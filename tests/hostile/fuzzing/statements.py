"""SQL statements: mutated golds and hostile cases, random words, and nested calls of functions."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from pathlib import Path

from hypothesis import strategies as st

from hostile.processor_time import ProcessorTime
from hostile.sql.cases import all_cases
from intercode import datasets
from intercode_sql import SqlEngine, SqlLimits, SqlSession, open_engine
from intercode_sql.types import DatabaseSpec
from support.shop import SECRET, shop_in

LIMIT, MARGIN = 1.0, 1.0  # seconds of a statement, and those that it may take beyond
_LIMITS = SqlLimits(rows=20_000, size=1 << 20, storage=64 << 20)
_REFUSED = "Error executing query: "
_KEYWORDS = """
SELECT FROM WHERE GROUP BY ORDER HAVING LIMIT UNION ALL DISTINCT JOIN LEFT RIGHT NATURAL ON USING
AS IN EXISTS BETWEEN LIKE REGEXP IS NOT NULL AND OR XOR CASE WHEN THEN ELSE END INSERT INTO VALUES
UPDATE SET DELETE REPLACE CREATE TABLE VIEW TRIGGER INDEX DROP ALTER ADD COLUMN TRUNCATE SHOW TABLES
DESCRIBE EXPLAIN WITH RECURSIVE OVER PARTITION ROWS CAST CONVERT INTERVAL DAY COLLATE BINARY BEGIN
COMMIT ROLLBACK PRAGMA ATTACH VACUUM USE SESSION GLOBAL LOCK sale customer shop id name price day
city * , ( ) . ; = < > <=> != + - / % || && ! ~ ^ | & := @x @@sql_mode -- # /* */ ' " ` \\ ? 0 1 -1
1e308 9223372036854775807 0x41 '' 'a' '%' '2024-01-02' TRUE é 🙂
"""
_WORDS = (*_KEYWORDS.split(), "\0", "\ud800")
_FUNCTION_NAMES = """
ABS ASCII BIN BIT_COUNT CAST CEIL CHAR CHAR_LENGTH COALESCE CONCAT CONCAT_WS CONV COUNT CRC32 DATE
DATEDIFF DATE_ADD DATE_FORMAT DAYNAME ELT EXP EXPORT_SET FIELD FIND_IN_SET FLOOR FORMAT
FROM_UNIXTIME GREATEST GROUP_CONCAT HEX IF IFNULL INSERT INSTR JSON_EXTRACT JSON_OBJECT LAG LAST_DAY
LEAST LEFT LENGTH LIKE LN LOCATE LOG LOWER LPAD LTRIM MAKEDATE MAX MD5 MID MIN MOD NOW NULLIF OCT
ORD PERIOD_ADD POW QUOTE RADIANS RAND REGEXP_LIKE REGEXP_REPLACE REPEAT REPLACE REVERSE RIGHT ROUND
ROW_NUMBER RPAD SEC_TO_TIME SHA2 SIGN SLEEP SOUNDEX SPACE SQRT STDDEV STR_TO_DATE STRCMP SUBSTRING
SUBSTRING_INDEX SUM TIMEDIFF TIMESTAMPDIFF TO_BASE64 TRIM TRUNCATE UNHEX UPPER UUID WEEK YEARWEEK
printf randomblob zeroblob group_concat load_extension readfile writefile
"""
_FUNCTIONS = tuple(_FUNCTION_NAMES.split())
_ATOMS = (
    "1",
    "-1",
    "0.5",
    "NULL",
    "'a'",
    "'%0%0%0'",
    "id",
    "name",
    "price",
    "100000000",
    "9223372036854775807",
    "'2024-02-30'",
    "@x",
    "*",
)


def _edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    """Return a text with pieces cut out and replaced."""
    for at, length, piece in edits:
        at = at % (len(text) + 1)
        text = (
            f"{text[:at]} {piece} {text[at + length :]}"
            if piece
            else text[:at] + text[at + length :]
        )
    return text


def _calls() -> st.SearchStrategy[str]:
    def call(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        inner_list = st.lists(inner, max_size=4).map(", ".join)
        return st.one_of(
            st.builds("{}({})".format, st.sampled_from(_FUNCTIONS), inner_list),
            st.builds("({} {} {})".format, inner, st.sampled_from(_WORDS), inner),
        )

    return st.recursive(st.sampled_from(_ATOMS), call, max_leaves=12)


class Statements:
    """Sessions of the engines that need no server. A statement ends in time with a result or with
    an error of the database; the session stays usable, and nobody else sees an effect."""

    limit, memory = 60.0, 512 << 20

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fuzz-sql-"))
        self.file = self.folder / "shop.sqlite"
        with contextlib.closing(sqlite3.connect(self.file)) as connection:
            connection.executescript(
                "CREATE TABLE customer (id int, name text, city text);"
                "CREATE TABLE sale (id int, customer_id int, price real, day text);"
                "INSERT INTO customer VALUES (1, 'Ann', 'Bern'), (2, 'Bob', NULL);"
                "INSERT INTO sale VALUES (1, 1, 9.5, '2024-01-02'), (2, 2, 20, NULL);"
            )
        self.given: dict[str, tuple[SqlEngine, DatabaseSpec]] = {
            "embedded": (open_engine("embedded"), shop_in(self.folder)),
            "sqlite": (open_engine("sqlite"), DatabaseSpec("sqlite", self.file, "shop")),
        }
        self.before = self._listing()

    def cases(self) -> st.SearchStrategy[tuple[str, list[str]]]:
        """Return strategies of an engine and the statements of a session."""
        golds = [gold for task in datasets.load("starter", "sql").tasks for gold in task.golds]
        known = golds + [code for case in all_cases() for code in case.does if len(code) < 2000]
        edits = st.lists(
            st.tuples(st.integers(0, 400), st.integers(0, 40), st.sampled_from(("", *_WORDS))),
            max_size=4,
        )
        statement = st.one_of(
            st.builds(_edited, st.sampled_from(known), edits),
            st.lists(st.sampled_from(_WORDS), max_size=25).map(" ".join),
            st.builds("SELECT {} FROM sale, customer".format, _calls()),
            st.text(max_size=40),
        )
        return st.tuples(
            st.sampled_from(sorted(self.given)), st.lists(statement, min_size=1, max_size=3)
        )

    def attack(self, case: tuple[str, list[str]]) -> None:
        """Run the statements in a new session."""
        engine, database = self.given[case[0]]
        session = engine.open(database, _LIMITS)
        try:
            for code in case[1]:
                self._run(session, code)
            self._run(session, "ROLLBACK")
            assert session.run("SELECT 40 + 2", 60.0).output == "[(42,)]", "the session is broken"
            session.changes()
        finally:
            session.close()
        assert self._listing() == self.before, "a file was made or removed"

    def _run(self, session: SqlSession, code: str) -> None:
        work = ProcessorTime()
        result = session.run(code, LIMIT)
        assert (took := work.seconds()) <= LIMIT + MARGIN, f"the statement took {took:.1f} s"
        assert SECRET not in result.observation, "the data of another database were read"
        assert len(result.observation) <= _LIMITS.size + 1000, "the result is too long"
        assert result.ok or result.output.startswith(_REFUSED), result.output[:200]

    def _listing(self) -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in self.folder.iterdir()}

    def close(self) -> None:
        """Close the engines."""
        for engine, _ in self.given.values():
            engine.close()
        shutil.rmtree(self.folder)
