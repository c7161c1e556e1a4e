"""Families about changing a database. What the episode changed is compared, not a result."""

from __future__ import annotations

from intercode.core.types import Task
from intercode_lab.families.family import Draw, family
from intercode_lab.families.sql.schema import (
    FIRST_NAMES,
    LAST_NAMES,
    draw_data,
    draw_day,
    draw_schema,
)
from intercode_lab.families.sql.sql_task import any_of, event_conditions, sql_task


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
    text = each = f"whose {s.kind} is {any_of(kinds)}"
    if draw.difficulty > 3:
        year = draw.query.between(2021, 2024)
        condition += (
            f" AND {s.id} NOT IN (SELECT {s.item_id} FROM {s.event} WHERE YEAR({s.day}) = {year} "
            f"AND {s.quantity} > 15)"
        )
        no_event = f"no {w.event[0]} in {year} with {w.quantity} above 15"
        text, each = f"{text}, and that have {no_event}", f"{each}, and that has {no_event}"
    changed = f"UPDATE {s.item} SET {s.price} = ROUND({s.price} * {factor}, 2)"
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"Take all {w.item[1]} {text}. {word} their {s.price} by {percent} %, rounded to two "
            f"decimals. Change nothing else.",
            f"{word} by {percent} percent the {s.price} of each {w.item[0]} {each}; round to two "
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
            f"Some {w.event[1]} are no longer needed: those {text}. Remove them, and nothing else.",
            f"Remove from the database every {w.event[0]} {text}.",
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
            draw.query.some(FIRST_NAMES, count),
            draw.query.some(LAST_NAMES, count),
            draw.query.some(LAST_NAMES, count),
            strict=True,
        )
    ]
    columns = f"{s.name}, {s.site_id}, {s.level}, {s.joined}"
    words, order = draw.query.one((("earliest", s.opened), ("latest", f"{s.opened} DESC")))
    place = f"(SELECT {s.id} FROM {s.site} ORDER BY {order}, {s.id} LIMIT 1)"
    new, are, in_turn, of_whom = f"a new {w.member[0]}", "is", "", ""
    if count > 1:
        new, are, in_turn = f"new {w.member[1]}", "are", ", in this order"
        of_whom = " of all of them"
    place_text = (
        f"The {w.site[0]}{of_whom} is the one whose {s.opened} is the {words} "
        f"(ties: the lower {s.id})"
    )
    values = ", ".join(f"('{name}', {place}, '{level}', '{day}')" for name, day, level in people)
    listed = "; ".join(
        f"{name}, {s.level} {level}, {s.joined} {day}" for name, day, level in people
    )
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"Add to the {w.member[1]}{in_turn}: {listed}. {place_text}. No {s.email} is known.",
            f"Enter as {new}{in_turn}: {listed}. There is no {s.email}. {place_text}.",
            f"There {are} {new} to enter{in_turn}: {listed}. {place_text}. We do not have any "
            f"{s.email}.",
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
            f"Take the {w.event[1]} {text}. Add a copy of each, {years} years later, with the "
            f"{s.amount} 0 and without a {s.note}; the new ones are numbered in the order of the "
            f"old ones.",
            f"Plan ahead for the {w.event[1]} {text}: for each of them, in the order of {s.id}, "
            f"insert another one {years} years later, otherwise equal, but with {s.amount} 0 and "
            f"no {s.note}.",
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
            f"I want a summary of the {w.event[1]} {text}. It is a new table {table} without a "
            f"key, with the columns {s.kind} varchar(20) not null, {number} bigint not null "
            f"default 0, and {total} decimal(32,2). For each {s.kind} of the {w.item[1]} in these "
            f"{w.event[1]} it has a row: the {s.kind}, how many of these {w.event[1]}, and the sum "
            f"of their {s.amount}.",
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
        text = f" After it, add a column {name}_date of the type date, which may be NULL and is."
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"The table of the {noun} needs a new column {name}: add it at the end, of the type "
            f"{kind}, never NULL, by default {default}.{text}",
            f"Add to the table of the {noun}, after its other columns, {name} {kind}, not null, "
            f"with the default {default}.{text}",
            f"Extend the table of the {noun} by one column at its end, {name} of the type {kind}. "
            f"It must not be NULL, and its default is {default}.{text}",
        ),
        f"ALTER TABLE {table} {parts}",
        changes=True,
    )
