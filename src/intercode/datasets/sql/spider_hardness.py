"""Spider's degree of hardness, by the rules of its own evaluation (Yu et al. 2018, section 6).

What is counted stands in the ``sql`` that the release gives for each question: a tree of clauses.
A condition is ``[not, operator, value unit, value, value]``; between two conditions stands ``and``
or ``or``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_LIKE = 9
"""The number of LIKE among Spider's operators."""

Clauses = Mapping[str, Any]


def hardness(sql: Clauses) -> str:
    """``easy``, ``medium``, ``hard`` or ``extra``. Raises KeyError, TypeError or IndexError for a
    tree of another form."""
    first, nested, others = (
        _count_clauses(sql),
        sum(1 for _ in _nested_queries(sql)),
        _count_others(sql),
    )
    if first <= 1 and others == 0 and nested == 0:
        return "easy"
    if nested == 0 and ((others <= 2 and first <= 1) or (first <= 2 and others < 2)):
        return "medium"
    if nested == 0 and ((others > 2 and first <= 2) or (2 < first <= 3 and others <= 2)):
        return "hard"
    return "hard" if first <= 1 and others == 0 and nested <= 1 else "extra"


def _conditions(sql: Clauses) -> list[Any]:
    return [*sql["from"]["conds"], *sql["where"], *sql["having"]]


def _count_clauses(sql: Clauses) -> int:
    """WHERE, GROUP BY, ORDER BY, LIMIT, each further table, each OR, each LIKE."""
    count = sum(bool(sql[key]) for key in ("where", "groupBy", "orderBy"))
    count += sql["limit"] is not None
    count += max(len(sql["from"]["table_units"]) - 1, 0)
    words = [part for key in ("where", "having") for part in sql[key][1::2]]
    words += sql["from"]["conds"][1::2]
    count += words.count("or")
    return count + sum(_is_like(part) for part in _conditions(sql))


def _is_like(part: Any) -> bool:
    return not isinstance(part, str) and part[1] == _LIKE


def _nested_queries(sql: Clauses) -> Iterator[Any]:
    """Queries inside conditions, and those joined by INTERSECT, EXCEPT and UNION."""
    for part in _conditions(sql):
        if not isinstance(part, str):
            yield from (value for value in part[3:5] if isinstance(value, dict))
    yield from (sql[key] for key in ("intersect", "except", "union") if sql[key] is not None)


def _count_others(sql: Clauses) -> int:
    """One each for more than one aggregate, column shown, condition, column grouped by."""
    select = sql["select"][1]
    aggregates = sum(unit[0] != 0 for unit in select)
    aggregates += sum(bool(part[0]) for part in sql["where"][::2])
    aggregates += sum(unit[0] != 0 for unit in sql["groupBy"])
    if sql["orderBy"]:
        units = [column for unit in sql["orderBy"][1] for column in unit[1:3] if column]
        aggregates += sum(column[0] != 0 for column in units)
    aggregates += sum(bool(part[0]) for part in sql["having"])
    return sum((aggregates > 1, len(select) > 1, len(sql["where"]) > 1, len(sql["groupBy"]) > 1))
