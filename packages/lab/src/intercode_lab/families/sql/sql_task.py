"""What the task families of SQL share: how a task is made, and conditions on events."""

from __future__ import annotations

import datetime as dt
import re
import sqlite3
from collections.abc import Collection, Sequence
from contextlib import closing

from intercode.core.types import Task
from intercode_lab.families.family import Draw
from intercode_lab.families.sql.schema import Data, Schema, database_of, draw_data, draw_day

BLIND_BOUND = 0.1
"""The bound of families whose names of tables and columns only looking shows."""
_ARTICLE = re.compile(r"(?<![\w'])([Aa]) (?=[aeio])")
"""The article "a" before a noun that begins with a vowel. Queries put values and letters in quotes,
and quoted ones are left as they are."""
_MAX_DATABASES = 100  # then the gold can return no row, and `intercode check` says so


def sql_task(
    draw: Draw,
    data: Data,
    queries: Sequence[str],
    gold: str,
    *,
    also: Sequence[str] = (),
    turns: Sequence[str] | None = None,
    changes: bool = False,
) -> Task:
    """Return a task with one of several phrasings of its query.

    ``also``: further golds. ``turns``: the actions of a player before the gold, in a family whose
    query does not name tables and columns (None: it names them). ``changes``: the task asks for a
    change of the database, which is compared instead of the result.
    """
    phrasing, query = draw.phrase(queries)
    query = _ARTICLE.sub(r"\1n ", query)
    names = f"\n\nTables: {data.schema.description}." if turns is None else ""
    more = {"compare": "database"} if changes else {}
    return Task(
        "",
        query + names,
        gold,
        tuple(also),
        database=database_of(data),
        data={"phrasing": phrasing, "turns": [*(turns or ()), gold], **more},
    )


def draw_data_with_answer(draw: Draw, s: Schema, gold: str) -> Data:
    """Return rows for which one of the task's golds returns a row. Few databases have to be drawn
    a second time.

    The gold is a SELECT that SQLite understands as well. Of MySQL's own functions it may use YEAR
    and DATEDIFF.
    """
    for _ in range(_MAX_DATABASES):
        data = draw_data(draw, s)
        if _returns_row(data, gold):
            break
    return data


def _returns_row(data: Data, query: str) -> bool:
    rows = (data.sites, data.members, data.items, data.events)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.create_function("YEAR", 1, lambda day: int(day[:4]))
        connection.create_function("DATEDIFF", 2, _days_between)
        for (table, columns), values in zip(data.schema.tables.items(), rows, strict=True):
            connection.execute(f"CREATE TABLE `{table}` ({', '.join(f'`{c}`' for c in columns)})")
            marks = ", ".join("?" * len(columns))
            connection.executemany(f"INSERT INTO `{table}` VALUES ({marks})", values)
        return connection.execute(query).fetchone() is not None


def _days_between(later: str, earlier: str | None) -> int | None:
    if earlier is None:  # there is no row before the first
        return None
    return (dt.date.fromisoformat(later) - dt.date.fromisoformat(earlier)).days


def exploration_of(*tables: str) -> list[str]:
    """Return the actions that show the tables, and the columns of some."""
    return ["SHOW TABLES", *(f"SHOW COLUMNS FROM `{table}`" for table in tables)]


def event_conditions(
    draw: Draw, s: Schema, count: int, *, dates: bool = True, varied: Collection[str] = ()
) -> tuple[str, str]:
    """Return ``count`` conditions on events (at most 5) in words and as SQL, on the tables as in
    ``Schema.all_joined``. The words follow the noun, have commas between them, and need a sign
    behind them, so that nobody takes what comes next for a further condition.

    Several conditions are wide ones, so that some events meet them all. ``dates``: whether a
    condition may be about the date. ``varied``: columns whose value no condition fixes.
    """
    choices, w = draw.query, s.words
    year, day = choices.between(2021, 2024), draw_day(choices, 200, 700)
    least, level = choices.between(3, 6), choices.one(w.levels)
    kinds, city = sorted(choices.some(w.kinds, 2)), choices.one(s.cities)
    among = f"'{kinds[0]}', '{kinds[1]}'"
    kind, by = f"of a {w.item[0]} whose {_noun(s.kind)} is", f"by a {w.member[0]} "
    narrow = [
        (f"in the year {year}", f"YEAR(e.{s.day}) = {year}"),
        (f"{kind} '{kinds[0]}'", f"i.{s.kind} = '{kinds[0]}'"),
        (f"{by}whose {w.site[0]} is in {city}", f"l.{s.city} = '{city}'"),
    ]
    wide = [
        (f"on or after {day}", f"e.{s.day} >= '{day}'"),
        (f"{kind} either {any_of(kinds)}", f"i.{s.kind} IN ({among})"),
        (f"{by}whose {w.site[0]} is not in {city}", f"l.{s.city} <> '{city}'"),
    ]
    known = [
        *(
            c
            for c in (narrow if count == 1 else wide)[0 if dates else 1 :]
            if c[1].partition(" = ")[0] not in varied
        ),
        (f"with {w.quantity} of at least {least}", f"e.{s.quantity} >= {least}"),
        (f"{by}whose {_noun(s.level)} is not '{level}'", f"p.{s.level} <> '{level}'"),
        choices.one(
            [
                (f"without a {_noun(s.note)}", f"e.{s.note} IS NULL"),
                (f"with a {_noun(s.note)}", f"e.{s.note} IS NOT NULL"),
            ]
        ),
    ]
    chosen = choices.some(known, count)
    texts = [text for text, _ in chosen if not text.startswith(by)]
    if about := [text.removeprefix(by) for text, _ in chosen if text.startswith(by)]:
        texts.append(by + " and ".join(about))
    return listed(texts, ", and "), " AND ".join(sql for _, sql in chosen)


def listed(texts: Sequence[str], last: str) -> str:
    """Return texts with commas between them, but ``last`` before the last one."""
    return last.join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else texts[0]


def any_of(values: Sequence[str]) -> str:
    """Return values in quotes, as alternatives."""
    return listed([f"'{value}'" for value in values], " or ")


def _noun(column: str) -> str:
    """Return a column's name as a noun."""
    return column.replace("_", " ")
