"""Families about sets of results: union, intersection, difference."""

from __future__ import annotations

from intercode.core.types import Task
from intercode_lab.families.family import Draw, family
from intercode_lab.families.sql.schema import Schema, draw_data, draw_schema
from intercode_lab.families.sql.sql_task import draw_data_with_answer, event_conditions, sql_task


def _two_queries(draw: Draw, s: Schema, counts: tuple[int, int]) -> tuple[str, str, str, str]:
    """Return two conditions on events, of ``counts`` parts, in words, and the queries for the names
    of their people. The second condition does not require a city: nobody is in two."""
    texts, queries = [], []
    for count, varied in zip(counts, ([], [f"l.{s.city}"]), strict=True):
        text, condition = event_conditions(draw, s, count, varied=varied)
        texts.append(text)
        queries.append(f"SELECT p.{s.name} FROM {s.all_joined} WHERE {condition}")
    return texts[0], texts[1], queries[0], queries[1]


@family("sql")
def one_or_the_other(draw: Draw) -> Task:
    """Join two lists of names into one without repetitions."""
    s = draw_schema(draw)
    w = s.words
    one, other, first, second = _two_queries(draw, s, (1 + draw.difficulty // 2,) * 2)
    return sql_task(
        draw,
        draw_data(draw, s),
        (
            f"Make one list, without repetitions, of the names of the {w.member[1]} who have one "
            f"or both of these: (1) a {w.event[0]} {one}; (2) a {w.event[0]} {other}. Sort it "
            "alphabetically.",
            f"Which {w.member[1]} have at least one {w.event[0]} {one}? And which have at least "
            f"one {w.event[0]} {other}? Give every name that answers at least one of these "
            "questions once, in alphabetical order.",
            f"Put together two lists of {w.member[1]}. The first has those with a {w.event[0]} "
            f"{one}. The second has those with a {w.event[0]} {other}. Show the names in "
            "alphabetical order; a name that is in both lists appears once.",
        ),
        f"{first} UNION {second} ORDER BY {s.name}",
        also=(
            f"SELECT q.{s.name} FROM {s.member} AS q WHERE q.{s.name} IN ({first}) OR "
            f"q.{s.name} IN ({second}) ORDER BY q.{s.name}",
        ),
    )


@family("sql", held_out=True)
def one_and_the_other(draw: Draw) -> Task:
    """Find the names that are in two lists."""
    s = draw_schema(draw)
    w = s.words
    one, other, first, second = _two_queries(draw, s, (1 + draw.difficulty // 2,) * 2)
    also = (
        f"SELECT q.{s.name} FROM {s.member} AS q WHERE q.{s.name} IN ({first}) AND "
        f"q.{s.name} IN ({second}) ORDER BY q.{s.name}"
    )
    return sql_task(
        draw,
        draw_data_with_answer(draw, s, also),
        (
            f"Some {w.member[1]} have a {w.event[0]} {one}. Which of them also have a (perhaps "
            f"another) {w.event[0]} {other}? Give their names once each, alphabetically.",
            f"Give in alphabetical order the names of those {w.member[1]} who have both of these: "
            f"(1) a {w.event[0]} {one}; (2) a {w.event[0]} {other}. The two may be one and the "
            "same.",
            f"One list has the {w.member[1]} with a {w.event[0]} {one}. Another has those with a "
            f"{w.event[0]} {other}. Whose names are in both lists? Show each of them once, in "
            "alphabetical order.",
        ),
        f"{first} INTERSECT {second} ORDER BY {s.name}",
        also=(also,),
    )


@family("sql")
def one_without_the_other(draw: Draw) -> Task:
    """Find the names that are in one list and not in another."""
    s = draw_schema(draw)
    w = s.words
    one, other, first, second = _two_queries(draw, s, (1 + draw.difficulty // 3, 4))
    also = (
        f"SELECT q.{s.name} FROM {s.member} AS q WHERE q.{s.name} IN ({first}) AND "
        f"q.{s.name} NOT IN ({second}) ORDER BY q.{s.name}"
    )
    return sql_task(
        draw,
        draw_data_with_answer(draw, s, also),
        (
            f"Some {w.member[1]} have a {w.event[0]} {one}. Which of them have none of these "
            f"{w.event[1]}: those {other}? Give their names once each, in alphabetical order.",
            f"Take the {w.member[1]} with a {w.event[0]} {one}. Leave out those who have a "
            f"{w.event[0]} {other}. Give the names of the others, sorted, each once.",
            f"I need the names of the {w.member[1]} who have at least one {w.event[0]} {one}. "
            f"Leave out everybody who has even a single {w.event[0]} {other}. Sort the names, "
            "without repetitions.",
        ),
        f"{first} EXCEPT {second} ORDER BY {s.name}",
        also=(also,),
    )
