"""Families about changing a database. What the episode changed is compared, not a result."""

from __future__ import annotations

from intercode.core.types import Task
from intercode.datasets.families.family import Draw, family
from intercode.datasets.sql.families.schema import (
    FIRST_NAMES,
    LAST_NAMES,
    draw_data,
    draw_day,
    draw_schema,
)
from intercode.datasets.sql.families.sql_task import event_conditions, sql_task


@family("sql")
def change_prices(draw: Draw) -> Task:
    """Change the prices of some items by a percentage."""
    s = draw_schema(draw)
    w = s.words
    percent = draw.query.between(2, 30)
    word, factor = draw.query.one(
        (("Raise", f"{100 + percent} / 100"), ("Lower", f"{100 - percent} / 100"))
    )
    kinds = sorted(draw.query.some(w.kinds, 1 if draw.difficulty < 3 else 2))
    condition = f"{s.kind} IN ({', '.join(repr(k) for k in kinds)})"
    text = f"of the {s.kind} {' or '.join(kinds)}"
    if draw.difficulty > 3:
        year = draw.query.between(2021, 2024)
        condition += (
            f" AND {s.id} NOT IN (SELECT {s.item_id} FROM {s.event} WHERE YEAR({s.day}) = {year} "
            f"AND {s.quantity} > 15)"
        )
        text += f" that have no {w.event[0]} in {year} with {w.quantity} above 15"
    changed = f"UPDATE {s.item} SET {s.price} = ROUND({s.price} * {factor}, 2)"
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"{word} the {s.price} of all {w.item[1]} {text} by {percent} %, rounded to two "
            f"decimals. Change nothing else.",
            f"{word} by {percent} percent the {s.price} of each {w.item[0]} {text}; round to two "
            f"decimals and leave everything else as it is.",
            f"Update the {w.item[1]} {text}: {word.lower()} their {s.price} by {percent} percent, "
            "and round the result to two decimals. Nothing else may change.",
        ),
        f"{changed} WHERE {condition}",
        changes=True,
    )


@family("sql")
def delete_events(draw: Draw) -> Task:
    """Delete the events that meet several conditions."""
    s = draw_schema(draw)
    w = s.words
    text, condition = event_conditions(draw, s, draw.difficulty)
    chosen = f"SELECT e.{s.id} FROM {s.all_joined} WHERE {condition}"
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"Delete all {w.event[1]} {text}.",
            f"The {w.event[1]} {text} are no longer needed. Remove them, and nothing else.",
            f"Remove every {w.event[0]} {text} from the database.",
        ),
        f"DELETE FROM {s.event} WHERE {s.id} IN (SELECT * FROM ({chosen}) AS chosen)",
        changes=True,
    )


@family("sql")
def add_people(draw: Draw) -> Task:
    """Insert new people, whose place is given by its name."""
    s = draw_schema(draw)
    w = s.words
    count = draw.by_difficulty(1, 1, 2, 3, 4)
    people = [
        (f"{first} {last}-{other}", draw_day(draw.query), draw.query.one(w.levels))
        for first, last, other in zip(
            draw.query.some(FIRST_NAMES, count), draw.query.some(LAST_NAMES, count),
            draw.query.some(LAST_NAMES, count), strict=True,
        )
    ]  # fmt: skip
    columns = f"{s.name}, {s.site_id}, {s.level}, {s.joined}"
    words, order = draw.query.one(
        ((f"earliest {s.opened}", s.opened), (f"latest {s.opened}", f"{s.opened} DESC"))
    )
    place = f"(SELECT {s.id} FROM {s.site} ORDER BY {order}, {s.id} LIMIT 1)"
    words += f" (ties: the lower {s.id})"
    values = ", ".join(f"('{name}', {place}, '{level}', '{day}')" for name, day, level in people)
    listed = "; ".join(
        f"{name}, {s.level} {level}, {s.joined} {day}" for name, day, level in people
    )
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"Add to the {w.member[1]}: {listed}. Their {w.site[0]} is the one with the {words}; "
            f"their {s.email} is not known.",
            f"Enter as new {w.member[1]}, in this order: {listed}. There is no {s.email}. They "
            f"belong to the {w.site[0]} that has the {words}.",
            f"There are new {w.member[1]} to enter, one after the other: {listed}. All of them "
            f"belong to the {w.site[0]} with the {words}. We do not have their {s.email}.",
        ),
        f"INSERT INTO {s.member} ({columns}) VALUES {values}",
        changes=True,
    )


@family("sql", held_out=True)
def copy_events(draw: Draw) -> Task:
    """Copy events with another date."""
    s = draw_schema(draw)
    w = s.words
    text, condition = event_conditions(draw, s, draw.difficulty)
    years = draw.query.between(5, 9)
    columns = f"{s.member_id}, {s.item_id}, {s.day}, {s.quantity}, {s.amount}"
    day = f"DATE_ADD(e.{s.day}, INTERVAL {years} YEAR)"
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"Add a copy of each of the {w.event[1]} {text}, {years} years later, with the "
            f"{s.amount} 0 and without a {s.note}; the new ones are numbered in the order of the "
            f"old ones.",
            f"Plan ahead: for each of the {w.event[1]} {text}, in the order of {s.id}, insert "
            f"another one {years} years later, otherwise equal, but with {s.amount} 0 and no "
            f"{s.note}.",
            f"Repeat the {w.event[1]} {text}: for each of them, by rising {s.id}, insert a new "
            f"row with a {s.day} that is {years} years later, the {s.amount} 0 and no {s.note}. "
            "In everything else it equals the old one.",
        ),
        f"INSERT INTO {s.event} ({columns}) SELECT e.{s.member_id}, e.{s.item_id}, {day}, "
        f"e.{s.quantity}, 0 FROM {s.all_joined} WHERE {condition} ORDER BY e.{s.id}",
        changes=True,
    )


@family("sql")
def table_of_totals(draw: Draw) -> Task:
    """Create a table with one row for each group."""
    s = draw_schema(draw)
    w = s.words
    table = draw.query.one(("summary", "totals", "overview", "report", "per_kind", "figures"))
    number, total = draw.query.one((("number", "total"), ("n", "amount"), ("how_many", "sum_all")))
    text, condition = event_conditions(draw, s, draw.difficulty)
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"Create the table {table} from the {w.event[1]} {text}: one row for each {s.kind} of "
            f"{w.item[0]} that occurs. Its columns are {s.kind} (varchar(20), not null), {number} "
            f"(bigint, not null, default 0) with the number of {w.event[1]}, and {total} "
            f"(decimal(32,2)) with the sum of {s.amount}. It has no key.",
            f"Make a new table {table} with the columns {s.kind} varchar(20) not null, {number} "
            f"bigint not null default 0, and {total} decimal(32,2), without a key. Fill it with a "
            f"row for every {s.kind} among the {w.event[1]} {text}: the {s.kind}, their number, "
            f"and the sum of their {s.amount}.",
            f"I want the {w.event[1]} {text} summed up in a table of its own, named {table} and "
            f"without a key, with {s.kind} varchar(20) not null, {number} bigint not null default "
            f"0 and {total} decimal(32,2). For each {s.kind} of their {w.item[1]} it has a row: "
            f"the {s.kind}, how many {w.event[1]}, and the sum of {s.amount}.",
        ),
        f"CREATE TABLE {table} ({s.kind} varchar(20) NOT NULL, {number} bigint NOT NULL DEFAULT 0, "
        f"{total} decimal(32,2)) SELECT i.{s.kind} AS {s.kind}, COUNT(*) AS {number}, "
        f"SUM(e.{s.amount}) AS {total} FROM {s.all_joined} WHERE {condition} GROUP BY i.{s.kind}",
        changes=True,
    )


@family("sql")
def add_column(draw: Draw) -> Task:
    """Add a column with a type and a default."""
    s = draw_schema(draw)
    w = s.words
    table, noun = draw.query.one(
        ((s.member, w.member[1]), (s.item, w.item[1]), (s.site, w.site[1]), (s.event, w.event[1]))
    )
    name = draw.query.one(("points", "rating", "weight", "discount", "stock", "priority", "score"))
    kind, value = draw.query.one(
        (
            ("int", str(draw.query.between(1, 99))),
            ("decimal(6,2)", f"{draw.query.between(100, 999) / 100:.2f}"),
            ("varchar(12)", draw.query.one(("open", "new", "plain", "blank"))),
        )
    )
    default = f"'{value}'" if kind.startswith("varchar") else value
    parts, text = f"ADD COLUMN {name} {kind} NOT NULL DEFAULT {default}", ""
    if draw.difficulty > 2:
        parts += f", ADD COLUMN {name}_date date DEFAULT NULL"
        text = f" Add also a column {name}_date of the type date, which may be NULL and is."
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"All {noun} shall have a {name}: add such a column, of the type {kind}, never NULL, "
            f"by default {value}, at the end of the table.{text}",
            f"Add to the table of the {noun}, after its other columns, {name} {kind}, not null, "
            f"with the default {value}.{text}",
            f"Extend the table of the {noun} by one column at its end, {name} of the type {kind}. "
            f"It must not be NULL, and its default is {value}.{text}",
        ),
        f"ALTER TABLE {table} {parts}",
        changes=True,
    )
