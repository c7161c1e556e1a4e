"""Statements that are enumerated, not drawn: every pair of types under every operator, every
function with every type, and every pair of clauses.

Chance decides only which column or literal of a type stands in a statement, and the order.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations, product

from hostile.sql.expressions_grammar import (
    ARITHMETIC,
    BITS,
    CAST_TYPES,
    COMPARISONS,
    FUNCTIONS,
    LITERALS,
    LOGIC,
    UNITS,
    Expressions,
)
from hostile.sql.tables import COLUMNS

KINDS = tuple(kind for kind in COLUMNS if kind != "json")
OPERATORS = (*COMPARISONS, *ARITHMETIC, *BITS, *LOGIC)
FORMS = {
    "LIKE": "({a} LIKE {b})",
    "NOT LIKE": "({a} NOT LIKE {b})",
    "IN": "({a} IN ({b}, NULL))",
    "NOT IN": "({a} NOT IN ({b}, {a}))",
    "BETWEEN": "({a} BETWEEN {b} AND {a})",
    "CASE": "CASE WHEN id > 3 THEN {a} ELSE {b} END",
    "simple CASE": "CASE {a} WHEN {b} THEN 1 END",
    "IF": "IF(id % 2, {a}, {b})",
    "IFNULL": "IFNULL({a}, {b})",
    "NULLIF": "NULLIF({a}, {b})",
    "COALESCE": "COALESCE({a}, {b}, {a})",
    "CONCAT": "CONCAT({a}, {b})",
    "GREATEST": "GREATEST({a}, {b})",
    "LEAST": "LEAST({a}, {b})",
    "ANY": "({a} = ANY (SELECT {b} FROM t))",
    "ALL": "({a} <= ALL (SELECT {b} FROM t))",
    "rows": "(({a}, id) = ({b}, id))",
}
"""Operators that are no signs between their operands."""
_COMPARING = frozenset(
    {
        *(*COMPARISONS, "IN", "NOT IN", "BETWEEN", "simple CASE", "NULLIF"),
        *("ANY", "ALL", "rows"),
    }
)
_NUMBERS = frozenset({"int", "unsigned", "decimal", "float", "double", "year", "bits"})
_WHOLE = {
    "float": "(FLOOR({}) % 1000)",
    "double": "(FLOOR({}) % 1000)",
    "text": "LEFT({}, 2)",
    "datetime": "CAST({} AS DATETIME)",
    "time": "CAST({} AS TIME)",
}
"""The whole number, or the date or time without a fraction, of an operand on bits."""
_DATED = {"date": "20010203", "datetime": "20200615123045", "time": "101112"}
AGGREGATES = (
    "COUNT",
    "SUM",
    "AVG",
    "MIN",
    "MAX",
    "STD",
    "STDDEV_SAMP",
    "VAR_POP",
    "VAR_SAMP",
    "BIT_AND",
    "BIT_OR",
    "BIT_XOR",
    "GROUP_CONCAT",
)
WINDOWS = (
    "LAG({c})",
    "LEAD({c}, 2)",
    "FIRST_VALUE({c})",
    "LAST_VALUE({c})",
    "NTH_VALUE({c}, 2)",
    "COUNT({c})",
    "SUM({c})",
    "AVG({c})",
    "MIN({c})",
    "MAX({c})",
)
RANKS = ("ROW_NUMBER()", "RANK()", "DENSE_RANK()", "NTILE(3)", "PERCENT_RANK()", "CUME_DIST()")
PREFIXES = ("-", "NOT ", "! ", "~", "+", "BINARY ", "DISTINCT ")
TESTS = ("IS NULL", "IS NOT NULL", "IS TRUE", "IS FALSE", "IS NOT TRUE", "IS UNKNOWN")
WRITES = (
    "INSERT INTO t (id, {c}) VALUES (20, {v})",
    "UPDATE t SET {c} = {v} WHERE id = 6",
    "INSERT IGNORE INTO t (id, {c}) VALUES (20, {v}), (21, {v})",
    "UPDATE IGNORE t SET {c} = {v} WHERE id < 4",
    "REPLACE INTO t (id, {c}) VALUES (3, {v})",
    "INSERT INTO t (id, {c}) VALUES (2, {v}) ON DUPLICATE KEY UPDATE {c} = VALUES({c})",
)
CLAUSES = (
    "where",
    "distinct",
    "group",
    "having",
    "rollup",
    "aggregate",
    "window",
    "order",
    "order desc",
    "order position",
    "limit",
    "offset",
    "join",
    "left join",
    "right join",
    "using",
    "cross join",
    "derived",
    "common table",
    "scalar subquery",
    "correlated subquery",
    "exists",
    "in subquery",
    "any subquery",
    "union",
    "union all",
    "except",
    "intersect",
    "create table",
    "view",
    "insert",
    "update",
    "delete",
)
_SETS = {"union": "UNION", "union all": "UNION ALL", "except": "EXCEPT", "intersect": "INTERSECT"}
_JOINS = {
    "join": "t JOIN s ON t.i = s.i",
    "left join": "t LEFT JOIN s ON t.i = s.i",
    "right join": "t RIGHT JOIN s ON t.id = s.k",
    "using": "t JOIN s USING (i)",
    "cross join": "t CROSS JOIN s",
}
Key = tuple[str, ...]


def keys() -> Iterator[Key]:
    """Yield what there is to reach: the part of the grammar, and its words."""
    yield from (("operator", *key) for key in product((*OPERATORS, *FORMS), KINDS, KINDS))
    yield from (("function", *key) for key in product(FUNCTIONS, (*KINDS, "json")))
    yield from (("aggregate", *key) for key in product(AGGREGATES, KINDS))
    yield from (("distinct aggregate", *key) for key in product(AGGREGATES[:5], KINDS))
    yield from (("window", *key) for key in product((*WINDOWS, *RANKS), KINDS))
    yield from (("cast", *key) for key in product(CAST_TYPES, (*KINDS, "json")))
    yield from (("interval", *key) for key in product(UNITS, KINDS))
    yield from (("prefix", *key) for key in product(PREFIXES, KINDS))
    yield from (("test", *key) for key in product(TESTS, (*KINDS, "json")))
    yield from (("order", kind) for kind in KINDS)
    yield from (("write", *key) for key in product(WRITES, KINDS, LITERALS))
    yield from (("clauses", *key) for key in combinations(CLAUSES, 2))


class Enumerated:
    """Makes the case of each key. Two with equal seeds make the same ones."""

    def __init__(self, rng: random.Random) -> None:
        self.made = Expressions(rng)
        self.rng = rng

    def case(self, key: Key) -> list[str]:
        """Return the statements of a key."""
        part, *words = key
        if part == "clauses":
            return self._clauses(frozenset(words))
        if part == "write":
            return self._write(*words)
        kind = words[-1]
        column = self.made.column(kind)
        if words[0].startswith("PERIOD_") and kind in _NUMBERS and self.rng.random() < 0.85:
            column = f"({column} * 0 + 202001)"
        elif words[0].startswith("JSON_") and kind in _NUMBERS and self.rng.random() < 0.85:
            column = f"CONCAT({column})"
        if part in ("aggregate", "distinct aggregate"):
            word = "DISTINCT " if part.startswith("distinct") else ""
            tail = f" ORDER BY {column}, id" if words[0] == "GROUP_CONCAT" else ""
            return [f"SELECT {words[0]}({word}{column}{tail}), COUNT(*) FROM t"]
        if part == "order":
            grouped = f"SELECT {column}, COUNT(*) FROM t GROUP BY {column} ORDER BY {column}"
            return [f"SELECT id, {column} FROM t ORDER BY {column} DESC, id", grouped]
        if part == "prefix" and words[0] == "DISTINCT ":
            return [f"SELECT DISTINCT {column} FROM t ORDER BY 1"]
        return [f"SELECT id, {self._expression(part, words, column)} FROM t ORDER BY id"]

    def _expression(self, part: str, words: list[str], column: str) -> str:
        if part == "operator":
            a, b = self._operands(words[0], *words[1:])
            if words[0] in FORMS:
                return FORMS[words[0]].format(a=a, b=b)
            return f"({a} {words[0]} {b})"
        if part == "function":
            return self.made.call_with(words[0], column)
        if part == "window":
            order = f"ORDER BY {column}, id" if words[0] in WINDOWS else f"ORDER BY {column}"
            order += ", id" * words[0].startswith(("ROW", "NTILE"))
            return f"{words[0].format(c=column)} OVER ({order})"
        if part == "cast":
            return f"CAST({column} AS {words[0]})"
        if part == "interval":
            way = self.rng.choice(("{c} + {i}", "{c} - {i}", "DATE_ADD({c}, {i})"))
            size = self.rng.choice(("1", "-1", "'1:2'", "2.5", "i", "100"))
            return way.format(c=column, i=f"INTERVAL {size} {words[0]}")
        return f"({words[0]}{column})" if part == "prefix" else f"({column} {words[0]})"

    def _operands(self, operator: str, *kinds: str) -> list[str]:
        """Return operands of these types, mostly some for which both servers have one rule. Beside
        a date, a number is one of a date and a text a column; on bits, doubles, texts, dates and
        times have no fraction, and doubles less than 64 bits."""
        found = [self._operand(kind) for kind in kinds]
        dated = next((_DATED[kind] for kind in kinds if kind in _DATED), None)
        for n, kind in enumerate(kinds):
            if self.rng.random() < 0.15:
                continue
            if dated and operator in _COMPARING and kind in _NUMBERS:
                found[n] = f"({self.made.column(kind)} * 0 + {dated})"
            elif dated and operator in _COMPARING and kind not in _DATED:
                found[n] = self.made.column(kind)
            elif operator in BITS and kind in _WHOLE:
                found[n] = _WHOLE[kind].format(found[n])
        return found

    def _operand(self, kind: str) -> str:
        """Return a column, or seldom a literal, of a type."""
        return self.made.column(kind) if self.rng.random() < 0.8 else self.made.literal(kind)

    def _write(self, form: str, kind: str, literal: str) -> list[str]:
        columns = [c for c in COLUMNS[kind] if c != "id"]
        column, value = self.rng.choice(columns), self.made.literal(literal)
        mode = self.rng.choice(("", "", "SET sql_mode = ''"))
        return [
            *filter(None, [mode]),
            "BEGIN",
            form.format(c=column, v=value),
            f"SELECT id, {column} FROM t ORDER BY id",
            "ROLLBACK",
            "SET sql_mode = DEFAULT",
        ]

    # ------------------------------------------------------------ clauses
    def _clauses(self, names: frozenset[str]) -> list[str]:
        """Return a query with these clauses, or statements that contain it."""
        select = self._select(names)
        if "create table" in names or "view" in names:
            both = {"create table", "view"} <= names
            kind = "TABLE" if "create table" in names else "VIEW"
            out = [f"CREATE {kind} z AS {select}", "SELECT * FROM z ORDER BY 1, 2"]
            out += (
                ["CREATE VIEW w AS SELECT * FROM z", "SELECT * FROM w ORDER BY 1, 2", "DROP VIEW w"]
                if both
                else []
            )
            out += self._changes(names, "SELECT g, n FROM z")
            return [*out, f"DROP {kind} z"]
        return self._changes(names, select) or [select]

    def _changes(self, names: frozenset[str], select: str) -> list[str]:
        changes = {
            "insert": f"INSERT IGNORE INTO s (i, k) SELECT g, n FROM ({select}) q ORDER BY 1, 2",
            "update": f"UPDATE t JOIN (SELECT g, MAX(n) AS n FROM ({select}) r GROUP BY g) q "
            "ON t.id = q.g SET t.bi = q.n",
            "delete": f"DELETE t FROM t JOIN ({select}) q ON t.id = q.g",
        }
        found = [changes[name] for name in changes if name in names]
        look = ["SELECT id, bi FROM t ORDER BY id", "SELECT k, i FROM s ORDER BY k"]
        return ["BEGIN", *found, *look, "ROLLBACK"] if found else []

    def _select(self, names: frozenset[str]) -> str:
        grouped = not names.isdisjoint(("group", "having", "rollup"))
        alone = "aggregate" in names and not grouped
        inner = self._tables(names)
        columns = ["t.ti % 3 AS g", "COUNT(*) AS n"] if grouped else ["t.id AS g", "t.ti AS n"]
        if "aggregate" in names:
            columns = [
                columns[0] if grouped else "COUNT(t.v) AS g",
                f"MAX(t.{self._number()}) AS n",
            ]
        if "window" in names:
            over = "ORDER BY COUNT(*)" if grouped or alone else "PARTITION BY t.e ORDER BY t.id"
            columns.append(f"{'RANK()' if grouped or alone else 'SUM(t.i)'} OVER ({over}) AS w1")
        if "scalar subquery" in names:
            columns.append("(SELECT MAX(s.k) FROM s) AS q1")
        if "correlated subquery" in names and not (grouped or alone):
            columns.append("(SELECT COUNT(*) FROM s AS o WHERE o.i = t.i) AS q2")
        words = "SELECT DISTINCT" if "distinct" in names else "SELECT"
        text = f"{words} {', '.join(columns)} FROM {inner}{self._conditions(names)}"
        if grouped:
            text += " GROUP BY t.ti % 3" + " WITH ROLLUP" * ("rollup" in names)
        if "having" in names:
            text += " HAVING COUNT(*) > 1"
        for name, word in _SETS.items():
            if name in names:
                more = ", NULL" * (len(columns) - 2)
                text += f" {word} SELECT s.k, s.i{more} FROM s"
        if "rollup" in names:  # MariaDB sorts no such query
            text = f"SELECT * FROM ({text}) r"
        text += self._order(names, len(columns))
        return "WITH t AS (SELECT * FROM d.t) " * ("common table" in names) + text

    def _number(self) -> str:
        return self.rng.choice(("ti", "i", "y", "d0"))

    def _tables(self, names: frozenset[str]) -> str:
        """Return the FROM clause. The first of two joins has the second inside."""
        joins = [_JOINS[name] for name in _JOINS if name in names]
        text = joins[0] if joins else "t"
        if len(joins) > 1:
            text += " LEFT JOIN s AS u ON t.id = u.k"
        if "derived" in names:
            inner = "(SELECT * FROM t) t"
            text = text.replace("t ", f"{inner} ", 1) if joins else inner
        return text

    def _conditions(self, names: frozenset[str]) -> str:
        tests = {
            "where": f"t.{self._number()} IS NOT NULL",
            "exists": "EXISTS (SELECT 1 FROM s AS x WHERE x.i = t.i)",
            "in subquery": "t.i IN (SELECT x.i FROM s AS x)",
            "any subquery": "t.i > ANY (SELECT x.i FROM s AS x)",
        }
        found = [tests[name] for name in tests if name in names]
        return f" WHERE {' AND '.join(found)}" if found else ""

    def _order(self, names: frozenset[str], count: int) -> str:
        every = ", ".join(map(str, range(1, count + 1)))
        text = f" ORDER BY {every}"
        if "order" in names:
            text = f" ORDER BY g, n, {every}"
        if "order desc" in names:
            text = f" ORDER BY n DESC, {every}"
        if "order position" in names:
            text = f" ORDER BY 2, {every}"
        if "limit" in names:
            text += " LIMIT 3"
        elif "offset" in names:
            text += " LIMIT 2 OFFSET 1"
        return text
