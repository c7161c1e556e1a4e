"""Families about rows of several tables that belong together, or do not."""

from __future__ import annotations

from intercode.core.types import Task
from intercode_lab.families.family import Draw, family
from intercode_lab.families.sql.schema import draw_data, draw_schema
from intercode_lab.families.sql.sql_task import event_conditions, sql_task


@family("sql")
def events_in_full(draw: Draw) -> Task:
    """Write out events with the names that they refer to."""
    s = draw_schema(draw)
    w = s.words
    text, condition = event_conditions(draw, s, draw.difficulty)
    columns, shown = f"p.{s.name}, i.{s.name}", f"the names of {w.member[0]} and {w.item[0]}"
    if draw.difficulty > 2:
        columns += f", l.{s.city}"
        shown += f", and the {s.city} of the {w.member[0]}'s {w.site[0]}"
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"For each of the {w.event[1]} {text}: show its {s.id}, {shown}, sorted by {s.id}.",
            f"List all {w.event[1]} {text}. Give {s.id}, {shown}. Sort by {s.id}.",
            f"I need a report with one row for each {w.event[0]} {text}: {s.id} of the "
            f"{w.event[0]}, then {shown}. Order the rows by {s.id}.",
        ),
        f"SELECT e.{s.id}, {columns} FROM {s.all_joined} WHERE {condition} ORDER BY e.{s.id}",
    )


@family("sql")
def never_happened(draw: Draw) -> Task:
    """Find the people without an event of a kind."""
    s = draw_schema(draw)
    w = s.words
    text, condition = event_conditions(draw, s, draw.difficulty)
    inner = f"SELECT e.{s.member_id} FROM {s.all_joined} WHERE {condition}"
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"Consider the {w.event[1]} {text}. Which {w.member[1]} have none of them? Give their "
            f"names alphabetically.",
            f"Name, in alphabetical order, all {w.member[1]} who have none of these {w.event[1]}: "
            f"those {text}.",
            f"Some {w.member[1]} have a {w.event[0]} {text}. Give the sorted names of all others.",
        ),
        f"SELECT {s.name} FROM {s.member} WHERE {s.id} NOT IN ({inner}) ORDER BY {s.name}",
        also=(
            f"SELECT q.{s.name} FROM {s.member} AS q WHERE NOT EXISTS ({inner} AND "
            f"e.{s.member_id} = q.{s.id}) ORDER BY q.{s.name}",
        ),
    )


@family("sql")
def pairs_alike(draw: Draw) -> Task:
    """Find the pairs of people who share a property."""
    s = draw_schema(draw)
    w = s.words
    same = [(s.site_id, f"the same {w.site[0]}"), (s.level, f"the same {s.level}")]
    chosen = [draw.query.one(same)] if draw.difficulty < 3 else same
    level = draw.query.one(w.levels)
    condition = " AND ".join(f"a.{column} = b.{column}" for column, _ in chosen)
    text = " and ".join(words for _, words in chosen)
    if draw.difficulty % 2 == 0:
        condition += f" AND a.{s.level} <> '{level}' AND b.{s.level} <> '{level}'"
        text += f", where neither has the {s.level} '{level}'"
    columns = f"SELECT a.{s.name}, b.{s.name}"
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"Which two {w.member[1]} have {text}? Show every pair once, as two names, first that "
            f"of the {w.member[0]} with the lower {s.id}, sorted by first and second name.",
            f"List all pairs of {w.member[1]} with {text}: the name of the one whose {s.id} is "
            f"lower, followed by the other name; sorted by the first and the second name.",
            f"Pair up the {w.member[1]} who have {text}. A row is one pair, two names, of which "
            f"that of the {w.member[0]} with the lower {s.id} comes first; no pair occurs twice. "
            "Order the rows by the first name and then by the second.",
        ),
        f"{columns} FROM {s.member} AS a JOIN {s.member} AS b ON a.{s.id} < b.{s.id} "
        f"WHERE {condition} ORDER BY a.{s.name}, b.{s.name}",
        also=(
            f"{columns} FROM {s.member} AS a, {s.member} AS b WHERE a.{s.id} < b.{s.id} AND "
            f"{condition} ORDER BY a.{s.name}, b.{s.name}",
        ),
    )


@family("sql", held_out=True)
def with_zero(draw: Draw) -> Task:
    """Count the events of every item, also of those that have none."""
    s = draw_schema(draw)
    w = s.words
    year, least = draw.query.between(2021, 2024), draw.query.between(2, 9)
    condition, text = f"YEAR(e.{s.day}) = {year}", f"in {year}"
    if draw.difficulty > 2:
        condition += f" AND e.{s.quantity} >= {least}"
        text += f" with {w.quantity} of at least {least}"
    outer, shown = "", f"every {w.item[0]}"
    if draw.difficulty > 3:
        kind = draw.query.one(w.kinds)
        outer, shown = (
            f"WHERE i.{s.kind} <> '{kind}' ",
            f"{shown} (except those whose {s.kind} is '{kind}')",
        )
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"How many {w.event[1]} {text} does {shown} have? Show name and number, also 0, sorted "
            f"by name.",
            f"For {shown} show its name and the number of its {w.event[1]} {text}; 0 if there are "
            f"none. Sort by name.",
            f"Make a list with {shown}, in the order of the names: the name, and the number of "
            f"its {w.event[1]} {text}. Where there are none, the number is 0.",
        ),
        f"SELECT i.{s.name}, COUNT(e.{s.id}) FROM {s.item} AS i LEFT JOIN {s.event} AS e ON "
        f"e.{s.item_id} = i.{s.id} AND {condition} {outer}GROUP BY i.{s.id}, i.{s.name} "
        f"ORDER BY i.{s.name}",
        also=(
            f"SELECT i.{s.name}, (SELECT COUNT(*) FROM {s.event} AS e WHERE e.{s.item_id} = "
            f"i.{s.id} AND {condition}) FROM {s.item} AS i {outer}ORDER BY i.{s.name}",
        ),
    )
