"""Families that need looking at the database.

Their queries name no table and no column, and names are drawn as hidden choices. What else only
looking shows: how a value is written, what a word means, which tables there are.
"""

from __future__ import annotations

from intercode.core.types import Task
from intercode_lab.families.family import Draw, family
from intercode_lab.families.sql.schema import Schema, Value, create_table, draw_data, draw_schema
from intercode_lab.families.sql.sql_task import BLIND_BOUND, any_of, exploration_of, sql_task


def _hidden_schema(draw: Draw) -> Schema:
    return draw_schema(draw, draw.hidden)


def _first_rows(table: str) -> str:
    return f"SELECT * FROM `{table}` LIMIT 5"


@family("sql", blind=BLIND_BOUND)
def unknown_names(draw: Draw) -> Task:
    """Count or list rows of tables whose names the query does not say."""
    s = _hidden_schema(draw)
    w = s.words
    level, kind = draw.query.one(w.levels), draw.query.one(w.kinds)
    year = draw.query.between(2021, 2022)
    if draw.difficulty < 3:
        queries: tuple[str, ...] = (
            f"How many {w.member[1]} are not '{level}' and came in {year} or later?",
            f"Count the {w.member[1]} who came in {year} or later, without those who are "
            f"'{level}'.",
            f"Leave the '{level}' {w.member[1]} aside. How many of the others came in {year} or "
            f"later?",
        )
        gold = (
            f"SELECT COUNT(*) FROM {s.member} WHERE {s.level} <> '{level}' AND "
            f"YEAR({s.joined}) >= {year}"
        )
        return sql_task(draw, draw_data(draw, s), queries, gold, turns=exploration_of(s.member))
    queries = (
        f"Take the {w.event[1]} of the year {year} or later, by {w.member[1]} who are not "
        f"'{level}', and of {w.item[1]} of the sort '{kind}'. Give the sum of their {w.amount} and "
        f"their number.",
        f"Give the sum of the {w.amount}, and the number, of these {w.event[1]}: those since the "
        f"beginning of {year} in which the {w.member[0]} is not '{level}' and the {w.item[0]} is "
        f"of the sort '{kind}'.",
        f"Only {w.event[1]} in {year} or later count, with {w.item[1]} of the sort '{kind}' and by "
        f"{w.member[1]} who are anything but '{level}'. What does their {w.amount} add up to, and "
        f"how many are there?",
    )
    gold = (
        f"SELECT SUM(e.{s.amount}), COUNT(*) FROM {s.all_joined} WHERE p.{s.level} <> '{level}' "
        f"AND i.{s.kind} = '{kind}' AND YEAR(e.{s.day}) >= {year}"
    )
    turns = exploration_of(s.event, s.member, s.item)
    return sql_task(draw, draw_data(draw, s), queries, gold, turns=turns)


@family("sql", blind=BLIND_BOUND)
def coded_values(draw: Draw) -> Task:
    """Find rows by a category that the database holds as a code."""
    s = _hidden_schema(draw)
    w = s.words
    data = draw_data(draw, s)
    codes = dict(zip(w.kinds, draw.hidden.some(range(10, 99), len(w.kinds)), strict=True))
    for row in data.items:
        row[2] = f"K{codes[str(row[2])]}"
    legend = draw.hidden.one(("codes", "legend", "key_table", "meanings", "lookup"))
    rows: list[list[Value]] = [[n, f"K{codes[kind]}", kind] for n, kind in enumerate(w.kinds, 1)]
    text = ("`code` varchar(8) NOT NULL", "`meaning` varchar(40) NOT NULL")
    data.further.append(create_table(legend, rows, *text))
    kinds = sorted(draw.query.some(w.kinds, draw.by_difficulty(2, 2, 3, 3, 4)))
    limit, shown = draw.query.between(78, 92), any_of(kinds)
    wanted = ", ".join(f"'K{codes[kind]}'" for kind in kinds)
    return sql_task(
        draw,
        data,
        (
            f"Show the names of the {w.item[1]} that cost less than {limit} and are of one of "
            f"these sorts: {shown}. Give them in alphabetical order.",
            f"Which {w.item[1]} are cheaper than {limit}, and of the sort {shown}? Give their "
            f"names, sorted.",
            f"I am looking for {w.item[1]} with a price below {limit}, and of no other sort than "
            f"{shown}. List their names in alphabetical order.",
        ),
        f"SELECT {s.name} FROM {s.item} WHERE {s.kind} IN ({wanted}) AND {s.price} < {limit} "
        f"ORDER BY {s.name}",
        also=(
            f"SELECT i.{s.name} FROM {s.item} AS i JOIN {legend} AS k ON k.code = i.{s.kind} WHERE "
            f"k.meaning IN ({', '.join(repr(kind) for kind in kinds)}) AND i.{s.price} < {limit} "
            f"ORDER BY i.{s.name}",
        ),
        turns=[*exploration_of(s.item), _first_rows(s.item), f"SELECT * FROM `{legend}`"],
    )


@family("sql", blind=BLIND_BOUND, held_out=True)
def defined_word(draw: Draw) -> Task:
    """Apply a definition that is stored in the database."""
    s = _hidden_schema(draw)
    w = s.words
    data = draw_data(draw, s)
    words = ("regular", "valued", "dormant", "loyal", "eligible", "notable")
    word = draw.query.one([word for word in words if word not in w.levels])
    least, year = draw.hidden.between(1, 3), draw.hidden.between(2021, 2022)
    floor = draw.hidden.between(1, 12) * 20
    rule = (
        f"{word}: a {w.member[0]} with at least {least} {w.event[1]} since {year}, counting "
        f"only those with {w.amount} of {floor} or more"
    )
    others = (
        f"new: a {w.member[0]} of the present year",
        f"large: a {w.event[0]} with {w.quantity} above 15",
        f"old: a {w.site[0]} from before 2015",
    )
    table = draw.hidden.one(("glossary", "definitions", "terms", "house_rules", "wording"))
    rules = draw.hidden.shuffled([rule, *others[: draw.by_difficulty(0, 1, 2, 3, 3)]])
    data.further.append(
        create_table(table, [[n, text] for n, text in enumerate(rules, 1)], "`text` varchar(200)")
    )
    return sql_task(
        draw,
        data,
        (
            f"Give the names of the {word} {w.member[1]}, as the database itself defines that "
            f"word, in alphabetical order.",
            f"Which {w.member[1]} count as {word}? The database says what that means. Show the "
            f"names alphabetically.",
            f"The database holds a definition of what makes a {w.member[0]} {word}. Find it and "
            f"apply it: list the names of all {w.member[1]} to whom it applies, in alphabetical "
            "order.",
        ),
        f"SELECT p.{s.name} FROM {s.all_joined} WHERE YEAR(e.{s.day}) >= {year} AND e.{s.amount} "
        f">= {floor} GROUP BY p.{s.id}, p.{s.name} HAVING COUNT(*) >= {least} ORDER BY p.{s.name}",
        turns=[*exploration_of(s.event, s.member), f"SELECT * FROM `{table}`"],
    )


@family("sql", blind=BLIND_BOUND)
def several_archives(draw: Draw) -> Task:
    """Add up over tables of the same form, whose names and number are not known."""
    s = _hidden_schema(draw)
    w = s.words
    data = draw_data(draw, s)
    form = draw.hidden.one(("archive_{}", "old_{}", "y{}", "events_{}", "{}_archive", "a{}_done"))
    years = sorted(draw.hidden.some(range(2010, 2021), draw.by_difficulty(1, 2, 3, 3, 4)))
    place_ids = [row[0] for row in data.sites]
    tables = [form.format(year) for year in years]
    for table in tables:
        rows = [
            [n, draw.world.one(place_ids), draw.world.between(100, 99900) / 100]
            for n in range(1, draw.world.between(6, 12))
        ]
        data.further.append(
            create_table(
                table,
                [list(row) for row in rows],
                f"`{s.site_id}` int NOT NULL",
                f"`{s.amount}` decimal(10,2) NOT NULL",
                id_column=s.id,
            )
        )
    union = " UNION ALL ".join(
        f"SELECT {s.site_id} AS site, {s.amount} AS v FROM {t}" for t in tables
    )
    what, value = draw.query.one(
        [(f"the sum of {w.amount}", "SUM(a.v)"), (f"the largest {w.amount}", "MAX(a.v)")]
    )
    by = f"FROM ({union}) AS a JOIN {s.site} AS l ON l.{s.id} = a.site"
    group = f"SELECT l.{s.name}, {value} {by} GROUP BY l.{s.id}, l.{s.name} ORDER BY l.{s.name}"
    return sql_task(
        draw,
        data,
        (
            f"Besides the present {w.event[1]}, the database has tables with those of earlier "
            f"years. Show for each {w.site[0]} in them its name and {what} over all these earlier "
            f"tables, sorted by name.",
            f"Leave the present {w.event[1]} aside and look at all archived ones, whichever tables "
            f"they are in: show the name of each {w.site[0]} that occurs and {what}, in the order "
            f"of the names.",
            f"The {w.event[1]} of past years are in tables of their own, apart from the present "
            f"ones. Taking all those older tables together, give the name of every {w.site[0]} in "
            f"them with {what}, ordered by name.",
        ),
        group,
        turns=exploration_of(s.site, tables[0]),
    )
