"""Families about groups: sums, conditions on groups, shares."""

from __future__ import annotations

from intercode.core.types import Task
from intercode_lab.families.family import Draw, family
from intercode_lab.families.sql.schema import Schema, draw_data, draw_schema
from intercode_lab.families.sql.sql_task import draw_data_with_answer, event_conditions, sql_task


def _group(draw: Draw, s: Schema) -> tuple[str, str]:
    """Return a property of events to group by, in words and as SQL."""
    w = s.words
    return draw.query.one(
        [
            (f"{s.kind} of the {w.item[0]}", f"i.{s.kind}"),
            (f"{s.level} of the {w.member[0]}", f"p.{s.level}"),
            (f"{s.city} of the {w.member[0]}'s {w.site[0]}", f"l.{s.city}"),
        ]
    )


@family("sql")
def sum_per_group(draw: Draw) -> Task:
    """Add up, count or average events by a property."""
    s = draw_schema(draw)
    w = s.words
    group, column = _group(draw, s)
    text, condition = event_conditions(draw, s, draw.difficulty, varied=[column])
    what, value = draw.query.one(
        [
            (f"the sum of {s.amount}", f"SUM(e.{s.amount})"),
            (f"the largest {s.amount}", f"MAX(e.{s.amount})"),
            (f"the average {s.quantity}", f"AVG(e.{s.quantity})"),
            (f"the number of different {w.member[1]}", f"COUNT(DISTINCT e.{s.member_id})"),
        ]
    )
    gold = (
        f"SELECT {column}, {value} FROM {s.all_joined} WHERE {condition} "
        f"GROUP BY {column} ORDER BY {column}"
    )
    return sql_task(
        draw,
        draw_data_with_answer(draw, s, gold),
        (
            f"For the {w.event[1]} {text}: show each {group} and {what}, sorted by the former.",
            f"Take the {w.event[1]} {text}. Group them by the {group}. Show the group and {what} "
            f"in the order of the groups.",
            f"What is {what} for each {group}? Only these {w.event[1]} count: those {text}. Show "
            f"one row per group, the {group} first, in the order of this column.",
        ),
        gold,
    )


@family("sql")
def groups_above(draw: Draw) -> Task:
    """Find the people whose events are many, or add up to much."""
    s = draw_schema(draw)
    w = s.words
    least = draw.query.between(2, 3)
    total = draw.query.between(1, 40) * 10
    text, condition = event_conditions(draw, s, draw.by_difficulty(1, 1, 2, 2, 2))
    having, what = f"COUNT(*) >= {least}", f"at least {least} of them"
    if draw.difficulty > 2:
        having += f" AND SUM(e.{s.amount}) > {total}"
        what += f", and a sum of {s.amount} above {total} over all of them"
    gold = (
        f"SELECT p.{s.name}, COUNT(*) FROM {s.all_joined} WHERE {condition} "
        f"GROUP BY p.{s.id}, p.{s.name} HAVING {having} ORDER BY COUNT(*) DESC, p.{s.name}"
    )
    return sql_task(
        draw,
        draw_data_with_answer(draw, s, gold),
        (
            f"Among the {w.event[1]} {text}: which {w.member[1]} have {what}? Show name and number "
            f"of these {w.event[1]}, the highest number first and equal ones by name.",
            f"Count only the {w.event[1]} {text}. Which {w.member[1]} have {what}? Give their name "
            f"and this count, in falling order of the count (ties in order of the name).",
            f"Only these {w.event[1]} count: those {text}. I want every {w.member[0]} who has "
            f"{what}: name and number of these {w.event[1]}, the highest number on top, by name "
            f"where it is equal.",
        ),
        gold,
    )


@family("sql")
def columns_by_year(draw: Draw) -> Task:
    """Show the sums of several years side by side."""
    s = draw_schema(draw)
    w = s.words
    group, column = _group(draw, s)
    years = sorted(draw.query.some(range(2021, 2025), 2 if draw.difficulty < 3 else 3))
    text, condition = event_conditions(draw, s, draw.difficulty, dates=False, varied=[column])
    sums = [
        f"SUM(CASE WHEN YEAR(e.{s.day}) = {year} THEN e.{s.quantity} ELSE 0 END)" for year in years
    ]
    also = [f"SUM(IF(YEAR(e.{s.day}) = {year}, e.{s.quantity}, 0))" for year in years]
    rest = f"FROM {s.all_joined} WHERE {condition} GROUP BY {column} ORDER BY {column}"
    shown = ", ".join(map(str, years))
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"Take the {w.event[1]} {text}. For each {group} among them, show in one row: the "
            f"{group}, and the sums of {s.quantity} of the years {shown}, in this order (0 if "
            f"there is nothing). Sort by the first column.",
            f"Make a table of the {w.event[1]} {text}: one row for each {group}, sorted by it. "
            f"Its columns are the {group} and the sums of {s.quantity} in {shown}, in this order, "
            "with 0 for none.",
            f"I want to compare the years {shown}. Show one row for each {group}, ordered by it: "
            f"first the {group}, then for each of these years, in this order, the sum of "
            f"{s.quantity}, or 0. Only these {w.event[1]} count: those {text}. A group without any "
            "of them has no row.",
        ),
        f"SELECT {column}, {', '.join(sums)} {rest}",
        also=(f"SELECT {column}, {', '.join(also)} {rest}",),
    )


@family("sql", held_out=True)
def share_of_total(draw: Draw) -> Task:
    """Compute the share of each group in the total."""
    s = draw_schema(draw)
    w = s.words
    group, column = _group(draw, s)
    text, condition = event_conditions(draw, s, draw.difficulty, varied=[column])
    total = f"(SELECT SUM(e.{s.amount}) FROM {s.all_joined} WHERE {condition})"
    rest = f"FROM {s.all_joined} WHERE {condition} GROUP BY {column} ORDER BY {column}"
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"Take the {w.event[1]} {text}. What percentage of the sum of their {s.amount} does "
            f"each {group} bring? Show the {group} and the percentage, rounded to one decimal, "
            f"sorted by the former.",
            f"For the {w.event[1]} {text}: show each {group} with its share of the sum of their "
            f"{s.amount} in percent, rounded to one decimal, in the order of the {group}.",
            f"Only these {w.event[1]} count: those {text}. How is the sum of their {s.amount} "
            f"divided up? For each {group} that occurs, give it and its percentage of the whole, "
            "rounded to one decimal, in the order of the first column.",
        ),
        f"SELECT {column}, ROUND(100 * SUM(e.{s.amount}) / {total}, 1) {rest}",
        also=(
            f"WITH sums AS (SELECT {column} AS part, SUM(e.{s.amount}) AS amount FROM "
            f"{s.all_joined} WHERE {condition} GROUP BY {column}) SELECT part, ROUND(100 * amount "
            f"/ (SELECT SUM(amount) FROM sums), 1) FROM sums ORDER BY part",
        ),
    )
