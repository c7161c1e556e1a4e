"""Families about queries within queries."""

from __future__ import annotations

from intercode.core.types import Task
from intercode_lab.families.family import Draw, family
from intercode_lab.families.sql.schema import draw_data, draw_schema
from intercode_lab.families.sql.sql_task import (
    any_of,
    draw_data_with_answer,
    event_conditions,
    sql_task,
)


@family("sql")
def above_own_average(draw: Draw) -> Task:
    """Find the items that cost more than the average of their kind."""
    s = draw_schema(draw)
    w = s.words
    more = draw.query.one((0, 5, 10, 15)) if draw.difficulty > 2 else 0
    above = f"more than {more} above" if more else "above"
    kinds = sorted(draw.query.some(w.kinds, max(2, draw.difficulty)))
    among, shown = ", ".join(f"'{kind}'" for kind in kinds), any_of(kinds)
    order = f"i.{s.kind} IN ({among}) ORDER BY i.{s.name}"
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"Take the {w.item[1]} whose {s.kind} is {shown}. Which of them have a {s.price} "
            f"{above} the average {s.price} of their own {s.kind}? Show name and {s.price}, sorted "
            f"by name.",
            f"Among the {w.item[1]} whose {s.kind} is {shown}, find those whose {s.price} is "
            f"{above} the mean {s.price} of all {w.item[1]} of the same {s.kind}. Give name and "
            f"{s.price} in the order of the names.",
            f"The average {s.price} of a {s.kind} is that of all its {w.item[1]}. Only these "
            f"{w.item[1]} are asked for: those whose {s.kind} is {shown}. Which of them lie "
            f"{above} the average of their {s.kind}? List name and {s.price}, by name.",
        ),
        f"SELECT i.{s.name}, i.{s.price} FROM {s.item} AS i WHERE i.{s.price} > (SELECT "
        f"AVG(o.{s.price}) + {more} FROM {s.item} AS o WHERE o.{s.kind} = i.{s.kind}) AND {order}",
        also=(
            f"SELECT i.{s.name}, i.{s.price} FROM {s.item} AS i JOIN (SELECT {s.kind}, "
            f"AVG({s.price}) AS mean FROM {s.item} GROUP BY {s.kind}) AS m ON m.{s.kind} = "
            f"i.{s.kind} WHERE i.{s.price} > m.mean + {more} AND {order}",
        ),
    )


@family("sql", held_out=True)
def had_every_kind(draw: Draw) -> Task:
    """Find the people who had an event of each of several kinds."""
    s = draw_schema(draw)
    w = s.words
    kinds = sorted(draw.query.some(w.kinds, draw.by_difficulty(2, 2, 2, 3, 3)))
    least = draw.query.between(2, 7)
    text, condition = f"with {w.quantity} of at least {least}", f"e.{s.quantity} >= {least}"
    among = ", ".join(f"'{kind}'" for kind in kinds)
    inner = (
        f"SELECT x.{s.member_id} FROM {s.event} AS x JOIN {s.item} AS y ON y.{s.id} = "
        f"x.{s.item_id} WHERE x.{s.quantity} >= {least} AND y.{s.kind} = "
    )
    every = " AND ".join(f"{s.id} IN ({inner}'{kind}')" for kind in kinds)
    gold = (
        f"SELECT p.{s.name} FROM {s.all_joined} WHERE i.{s.kind} IN ({among}) AND {condition} "
        f"GROUP BY p.{s.id}, p.{s.name} HAVING COUNT(DISTINCT i.{s.kind}) = {len(kinds)} "
        f"ORDER BY p.{s.name}"
    )
    return sql_task(
        draw,
        draw_data_with_answer(draw, s, gold),
        (
            f"Which {w.member[1]} have {w.event[1]} ({text}) of {w.item[1]} of every {s.kind} in "
            f"this list: {among}? Give the names alphabetically.",
            f"Consider the {w.event[1]} {text}. Name in alphabetical order the {w.member[1]} who "
            f"have such {w.event[1]} of {w.item[1]} of each {s.kind} in this list: {among}.",
            f"We look for {w.member[1]} who have, for every single {s.kind} of {among}, at least "
            f"one {w.event[0]} {text} and of a {w.item[0]} of that {s.kind}. List their names in "
            "alphabetical order.",
        ),
        gold,
        also=(f"SELECT {s.name} FROM {s.member} WHERE {every} ORDER BY {s.name}",),
    )


@family("sql")
def best_of_each(draw: Draw) -> Task:
    """Show the dearest or cheapest item of each kind."""
    s = draw_schema(draw)
    w = s.words
    word, function = draw.query.one((("highest", "MAX"), ("lowest", "MIN")))
    limit = draw.query.between(40, 90)
    condition, text = "1 = 1", f"{w.item[1]}"
    if draw.difficulty > 1:
        condition, text = f"{{}}.{s.price} < {limit}", f"{w.item[1]} with a {s.price} below {limit}"
    if draw.difficulty > 3:
        letter = draw.query.one("aeio")
        condition += f" AND {{}}.{s.name} LIKE '%{letter}%'"
        text += f", and with the letter '{letter}' (small or capital) in their name"
    outer, inner = condition.replace("{}", "i"), condition.replace("{}", "o")
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"Take the {text}. For each {s.kind} among them show the {s.kind}, and name and "
            f"{s.price} of the one with the {word} {s.price}, sorted by {s.kind}.",
            f"Take the {text}, and group them by {s.kind}. Which one of each group has the {word} "
            f"{s.price}? Show {s.kind}, name and {s.price}, in the order of the {s.kind}.",
            f"In every {s.kind} that occurs among the {text}, one of them has the {word} "
            f"{s.price}. Show {s.kind}, name and {s.price} of each of these, ordered by {s.kind}.",
        ),
        f"SELECT i.{s.kind}, i.{s.name}, i.{s.price} FROM {s.item} AS i WHERE {outer} AND "
        f"i.{s.price} = (SELECT {function}(o.{s.price}) FROM {s.item} AS o WHERE o.{s.kind} = "
        f"i.{s.kind} AND {inner}) ORDER BY i.{s.kind}",
        also=(
            f"SELECT i.{s.kind}, i.{s.name}, i.{s.price} FROM {s.item} AS i JOIN (SELECT o.{s.kind}"
            f" AS k, {function}(o.{s.price}) AS v FROM {s.item} AS o WHERE {inner} GROUP BY "
            f"o.{s.kind}) AS b ON b.k = i.{s.kind} AND b.v = i.{s.price} WHERE {outer} "
            f"ORDER BY i.{s.kind}",
        ),
    )


@family("sql")
def extreme_of_sums(draw: Draw) -> Task:
    """Show the largest or smallest sum of all groups."""
    s = draw_schema(draw)
    w = s.words
    text, condition = event_conditions(draw, s, draw.difficulty)
    word, function, order = draw.query.one((("largest", "MAX", " DESC"), ("smallest", "MIN", "")))
    by, column = draw.query.one(
        [(w.member[0], f"e.{s.member_id}"), (w.item[0], f"e.{s.item_id}"), (s.day, f"e.{s.day}")]
    )
    inner = (
        f"SELECT SUM(e.{s.amount}) AS total FROM {s.all_joined} WHERE {condition} GROUP BY {column}"
    )
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"Take the {w.event[1]} {text}. Add up their {s.amount} for each {by}. How many sums "
            f"are there, and which is the {word}?",
            f"For the {w.event[1]} {text}, compute the sum of {s.amount} per {by}. Show the number "
            f"of these sums and the {word} of them.",
            f"Only these {w.event[1]} count: those {text}. Group them by {by}, and add up the "
            f"{s.amount} of each group. Give two values in one row: how many groups there are, and "
            f"the {word} of their sums.",
        ),
        f"SELECT COUNT(*), {function}(total) FROM ({inner}) AS sums",
        also=(
            f"WITH sums AS ({inner}) SELECT (SELECT COUNT(*) FROM sums), total FROM sums "
            f"ORDER BY total{order} LIMIT 1",
        ),
    )
