"""Families about windows: running sums, ranks, and neighbours in an order."""

from __future__ import annotations

from intercode.core.types import Task
from intercode_lab.families.family import Draw, family
from intercode_lab.families.sql.schema import draw_data, draw_schema
from intercode_lab.families.sql.sql_task import draw_data_with_answer, event_conditions, sql_task


@family("sql")
def running_total(draw: Draw) -> Task:
    """Show the sum so far after every event."""
    s = draw_schema(draw)
    w = s.words
    text, condition = event_conditions(draw, s, draw.difficulty)
    part, shown = "", ""
    if draw.difficulty > 2:
        part, shown = (
            f"PARTITION BY i.{s.kind} ",
            f", separately for each {s.kind} of the {w.item[0]}",
        )
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"Take the {w.event[1]} {text}. Go through them in the order of {s.day}, on the same "
            f"day by {s.id}. Show {s.id} and the sum of {s.amount} up to and with this one{shown}. "
            f"Sort by {s.id}.",
            f"For each of the {w.event[1]} {text}: show {s.id} and the running total of "
            f"{s.amount} in the order of {s.day}, then {s.id}{shown}; sorted by {s.id}.",
            f"Only these {w.event[1]} count: those {text}. They follow each other by {s.day}, and "
            f"within a day by {s.id}. Keep a running sum of {s.amount} over them{shown}. Give "
            f"{s.id} of each with the sum that it brings the total to, in the order of {s.id}.",
        ),
        f"SELECT e.{s.id}, SUM(e.{s.amount}) OVER ({part}ORDER BY e.{s.day}, e.{s.id}) "
        f"FROM {s.all_joined} WHERE {condition} ORDER BY e.{s.id}",
        also=(
            f"SELECT e.{s.id}, SUM(e.{s.amount}) OVER ({part}ORDER BY e.{s.day}, e.{s.id} ROWS "
            f"BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM {s.all_joined} WHERE {condition} "
            f"ORDER BY e.{s.id}",
        ),
    )


@family("sql")
def first_few_of_each(draw: Draw) -> Task:
    """Show the largest few events of each group."""
    s = draw_schema(draw)
    w = s.words
    count = draw.query.between(1, 3)
    text, condition = event_conditions(draw, s, max(1, draw.difficulty - 1))
    group, column = draw.query.one(
        [
            (f"{s.kind} of the {w.item[0]}", f"i.{s.kind}"),
            (f"{s.level} of the {w.member[0]}", f"p.{s.level}"),
        ]
    )
    numbered = (
        f"SELECT {column} AS part, e.{s.id} AS event, ROW_NUMBER() OVER (PARTITION BY {column} "
        f"ORDER BY e.{s.amount} DESC, e.{s.id}) AS position FROM {s.all_joined} WHERE {condition}"
    )
    many = f" {count}" if count > 1 else ""
    which = f"which {count} of them have" if count > 1 else "which one of them has"
    rest = f"WHERE position <= {count} ORDER BY part, position"
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"Take the {w.event[1]} {text}. Sort them within each {group} by {s.amount}, the "
            f"largest first, equal ones by {s.id}. Show group, {s.id} and position (from 1) of the "
            f"first{many} of each group, sorted by group and position.",
            f"Look at the {w.event[1]} {text}. For each {group}, {which} the largest {s.amount} "
            f"(ties: the lower {s.id} comes first)? Show group, {s.id} and its position within the "
            f"group, 1 being the largest, in the order of group and position.",
            f"Only these {w.event[1]} count: those {text}. Make a ranking of them for each "
            f"{group}: the largest {s.amount} is number 1, and of equal ones the lower {s.id} "
            f"comes first. Show group, {s.id} and rank of the top{many or ' one'} of every "
            "ranking, ordered by group and rank.",
        ),
        f"SELECT part, event, position FROM ({numbered}) AS numbered {rest}",
        also=(f"WITH numbered AS ({numbered}) SELECT part, event, position FROM numbered {rest}",),
    )


@family("sql", held_out=True)
def days_between(draw: Draw) -> Task:
    """Show how many days passed since the event before."""
    s = draw_schema(draw)
    w = s.words
    text, condition = event_conditions(draw, s, max(1, draw.difficulty - 2))
    who, column = draw.query.one([(w.member[0], f"e.{s.member_id}"), (w.item[0], f"e.{s.item_id}")])
    least = draw.query.between(10, 90)
    inner = (
        f"SELECT e.{s.id} AS event, DATEDIFF(e.{s.day}, LAG(e.{s.day}) OVER (PARTITION BY {column} "
        f"ORDER BY e.{s.day}, e.{s.id})) AS days FROM {s.all_joined} WHERE {condition}"
    )
    gold = f"SELECT event, days FROM ({inner}) AS gaps WHERE days > {least} ORDER BY event"
    return sql_task(
        draw,
        draw_data_with_answer(draw, s, gold),
        (
            f"Take the {w.event[1]} {text}. Look at those of each {who} in the order of {s.day} "
            f"and {s.id}. Which came more than {least} days after the one before? Show {s.id} and "
            f"the number of days, sorted by {s.id}.",
            f"Take only the {w.event[1]} {text}. Find those that are more than {least} days later "
            f"than the previous one of the same {who} (by {s.day}, then {s.id}). Show {s.id} and "
            f"the days between, in the order of {s.id}.",
            f"How long were the breaks? Take the {w.event[1]} {text}. Go through those of each "
            f"{who} in the order of {s.day} and then {s.id}, and count the days since the one "
            f"before. Where it is more than {least}, show {s.id} and this number of days, ordered "
            f"by {s.id}.",
        ),
        gold,
        also=(
            f"WITH gaps AS ({inner}) SELECT event, days FROM gaps WHERE days > {least} "
            f"ORDER BY event",
        ),
    )
