"""Families about choosing, sorting and writing out rows."""

from __future__ import annotations

from intercode.core.types import Task
from intercode_lab.families.family import Draw, family
from intercode_lab.families.sql.schema import FIRST_NAMES, draw_data, draw_schema
from intercode_lab.families.sql.sql_task import any_of, event_conditions, listed, sql_task


@family("sql")
def filtered_events(draw: Draw) -> Task:
    """List the events that meet several conditions."""
    s = draw_schema(draw)
    w = s.words
    text, condition = event_conditions(draw, s, draw.difficulty)
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"Find all {w.event[1]} {text}. Give their {s.id} and {s.amount}, sorted by {s.id}.",
            f"Which {w.event[1]} are {text}? Show their {s.id} and {s.amount}, in the order of "
            f"{s.id}.",
            f"List {s.id} and {s.amount} of each {w.event[0]} {text}; lowest {s.id} first.",
        ),
        f"SELECT e.{s.id}, e.{s.amount} FROM {s.all_joined} WHERE {condition} ORDER BY e.{s.id}",
    )


@family("sql")
def largest_events(draw: Draw) -> Task:
    """Show the few events with the largest amounts."""
    s = draw_schema(draw)
    w = s.words
    count = draw.query.between(2, 7)
    text, condition = event_conditions(draw, s, max(1, draw.difficulty - 1))
    skip = draw.query.between(1, 3) if draw.difficulty > 3 else 0
    without = f" after the first {skip if skip > 1 else 'one'}" if skip else ""
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"Take the {w.event[1]} {text}. Sort them by {s.amount}, the largest first and equal "
            f"ones by {s.id}. Show {s.id}, the name of the {w.member[0]} and the {s.amount} of the "
            f"first {count}{without}.",
            f"For the {w.event[1]} {text}: which are the first {count}{without} if the largest "
            f"{s.amount} is on top (ties: lower {s.id} first)? Give {s.id}, the {w.member[0]}'s "
            f"name and {s.amount}.",
            f"Only these {w.event[1]} count: those {text}. Rank them from the largest {s.amount} "
            f"to the smallest; where it is equal, the lower {s.id} comes first. I need {s.id}, the "
            f"name of the {w.member[0]} and {s.amount} of the first {count}{without}.",
        ),
        f"SELECT e.{s.id}, p.{s.name}, e.{s.amount} FROM {s.all_joined} WHERE {condition} "
        f"ORDER BY e.{s.amount} DESC, e.{s.id} LIMIT {count} OFFSET {skip}",
        also=(
            f"SELECT e.{s.id}, p.{s.name}, e.{s.amount} FROM {s.all_joined} WHERE {condition} "
            f"ORDER BY e.{s.amount} DESC, e.{s.id} LIMIT {skip}, {count}",
        ),
    )


@family("sql", held_out=True)
def names_like(draw: Draw) -> Task:
    """Find names by their beginning and e-mail addresses by their domain."""
    s = draw_schema(draw)
    w = s.words
    letters = sorted(draw.query.some([name[0] for name in FIRST_NAMES], draw.difficulty + 1))
    other = " AND ".join(f"{s.name} NOT LIKE '{letter}%'" for letter in letters)
    known, text = f"{s.email} IS NOT NULL", f"{s.email} is known"
    if draw.difficulty > 2:
        host = draw.query.one(("post.example", "mail.example"))
        known, text = f"{s.email} LIKE '%@{host}'", f"{s.email} is at {host}"
    among, shown = ", ".join(f"'{letter}'" for letter in letters), any_of(letters)
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"Give the names of the {w.member[1]} whose {text} and whose name begins with none of "
            f"the letters {among}, in alphabetical order.",
            f"Leave out the {w.member[1]} whose name starts with {shown}. Show the names of "
            f"the others whose {text}, alphabetically.",
            f"I want to write to the {w.member[1]} whose {text}. List their names in alphabetical "
            f"order, but skip every name whose first letter is {shown}.",
        ),
        f"SELECT {s.name} FROM {s.member} WHERE {other} AND {known} ORDER BY {s.name}",
        also=(
            f"SELECT {s.name} FROM {s.member} WHERE LEFT({s.name}, 1) NOT IN ({among}) AND "
            f"{known} ORDER BY {s.name}",
        ),
    )


@family("sql")
def missing_values(draw: Draw) -> Task:
    """Write another text where a value is missing."""
    s = draw_schema(draw)
    w = s.words
    default = draw.query.one(("unknown", "none", "n/a", "missing", "no entry", "-"))
    year = draw.query.between(2022, 2024)
    levels = sorted(draw.query.some(w.levels, 2))
    among = ", ".join(f"'{level}'" for level in levels)
    condition = f"{s.level} IN ({among})"
    texts = [f"whose {s.level} is {any_of(levels)}"]
    if draw.difficulty > 1:
        condition += f" AND YEAR({s.joined}) <= {year}"
        texts.append(f"whose {s.joined} is in {year} or earlier")
    if draw.difficulty > 3:
        condition += f" AND {s.name} LIKE '%a%'"
        texts.append("whose name has the letter 'a' (small or capital)")
    text = listed(texts, ", and ")
    order = f"FROM {s.member} WHERE {condition} ORDER BY {s.name}"
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"Find the {w.member[1]} {text}. Show their name and {s.email}, sorted by name. Where "
            f"there is no {s.email}, show '{default}'.",
            f"List, in the order of their names, the {w.member[1]} {text}: name and {s.email}, "
            f"but '{default}' instead of a missing {s.email}.",
            f"Only these {w.member[1]} count: those {text}. Give the name of each and beside it "
            f"the {s.email}, or '{default}' if it is missing. Order the rows by name.",
        ),
        f"SELECT {s.name}, COALESCE({s.email}, '{default}') {order}",
        also=(f"SELECT {s.name}, IF({s.email} IS NULL, '{default}', {s.email}) {order}",),
    )


@family("sql")
def months_of_a_year(draw: Draw) -> Task:
    """Count events by a part of their date."""
    s = draw_schema(draw)
    w = s.words
    part, call = draw.query.one(
        (("month", "MONTH({})"), ("quarter", "QUARTER({})"), ("day of the month", "DAY({})"))
    )
    year = draw.query.between(2021, 2024)
    text, condition = event_conditions(draw, s, draw.difficulty, dates=False)
    number = call.format(f"e.{s.day}")
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"Take the {w.event[1]} {text}. Leave out those of the year {year}, and count the "
            f"others for every {part} that occurs, whatever the year. Show {part}, as a number, "
            f"and count, in the order of the {part}.",
            f"Count, by the {part} of {s.day}, the {w.event[1]} {text}. Take all years together, "
            f"but without {year}. Show the {part} as a number and the count, sorted by the {part}.",
            f"Only these {w.event[1]} count: those {text}. Ignore {year}, and take all other years "
            f"together. How do they spread over each {part} of {s.day}? Give the {part} as a "
            "number and the count, one row for each that occurs, in rising order.",
        ),
        f"SELECT {number}, COUNT(*) FROM {s.all_joined} WHERE {condition} AND "
        f"YEAR(e.{s.day}) <> {year} GROUP BY {number} ORDER BY {number}",
    )
