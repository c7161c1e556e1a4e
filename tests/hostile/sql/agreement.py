"""Runs generated cases on the embedded engine and on a server, and compares them.

A statement agrees if both give equal rows (types too), or errors with the same number and message;
it is refused honestly if the embedded engine says in its own words that it cannot do it; everything
else is wrong,
unless one of the ``RULES`` excuses it: MariaDB, the usual server, and MySQL 8 differ there.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from sqlglot import exp

from hostile.sql.expressions_grammar import split_call
from hostile.sql.operands import kind_of, tree_of
from hostile.sql.rules import RULES, several_families
from intercode_sql import SqlSession
from intercode_sql.dialect.errors import ERROR_MESSAGES
from intercode_sql.types import ExecResult

REFUSED = "Error executing query: The embedded engine cannot do this"
_ERROR = "Error executing query: "
_OF_THE_ENGINE = re.compile(r"this (?:statement|row) \((?:SQLite says|\w+): ")
"""Refusals that show an error of SQLite or of Python are faults, and no honest refusals."""
_SECONDS = 20.0


_WORDINGS: tuple[tuple[str, str], ...] = (
    (r"Unknown VIEW: ", "Unknown table "),
    (r"your MariaDB server version", "your MySQL server version"),
    (r"Cannot execute statement in a READ ONLY transaction$", r"\g<0>."),
    (r"in '?SELECT'?( is ambiguous)?$", r"in 'field list'\1"),
    (r"in '?WHERE'?( is ambiguous)?$", r"in 'where clause'\1"),
    (r"in '?ON'?( is ambiguous)?$", r"in 'on clause'\1"),
    (r"in '?GROUP BY'?( is ambiguous)?$", r"in 'group statement'\1"),
    (r"in '?ORDER BY'?( is ambiguous)?$", r"in 'order clause'\1"),
    (r"in '?HAVING'?( is ambiguous)?$", r"in 'having clause'\1"),
    (r"in '([a-z ]+)' is ambiguous$", r"in \1 is ambiguous"),
    (r"for column `\w+`\.`\w+`\.`(\w+)` at row", r"for column '\1' at row"),
    (r"for key '(\w+)'$", r"for key '{table}.\1'"),
    (r"value is out of range in '(`.* [-+*/%] .*)'$", r"value is out of range in '(\1)'"),
)
"""MariaDB's wording of messages, and MySQL 8's."""


def worded(output: str, ours: str) -> str:
    """Return an answer of MariaDB in MySQL 8's words."""
    found = re.search(r"for key '(\w+)\.", ours)
    table = found[1] if found else ""
    for pattern, words in _WORDINGS:
        output = re.sub(pattern, words.replace("{table}", table), output)
    if output.startswith(_OUT_OF_RANGE) and (
        _bare(output) == _bare(ours) or _words(output) == _words(ours)
    ):
        return ours
    kind = re.search(r"Truncated incorrect (DOUBLE|INTEGER) value", ours)
    if kind is not None:
        output = re.sub(r"(?<=Truncated incorrect )DECIMAL(?= value)", kind[1], output)
    if _NO_POSITION.fullmatch(output) and _NO_POSITION.fullmatch(ours):
        return ours  # MariaDB writes the last 32 bits of a number
    found, ours_near = _NEAR.search(output), _NEAR.search(ours)
    if found is not None and ours_near is not None and _same_near(found[1], ours_near[1]):
        return ours
    if "for column" not in ours:
        output = re.sub(r"(Incorrect \w+ value: '.*') for column .* at row \d+$", r"\1", output)
    return output


def _same_near(theirs: str, ours: str) -> bool:
    """Return whether two errors quote the text from one position. MariaDB has read a comma before
    it stops there, and shows dots in place of the end of a text that it cuts."""
    whole = theirs.removesuffix("...").lstrip()
    behind = (ours, ours[1:].lstrip()) if ours.startswith(",") else (ours,)
    if whole != theirs.lstrip():
        return any(text.startswith(whole) for text in behind)
    return any(text[:76] == whole[:76] for text in behind)


_NO_POSITION = re.compile(rf"{_ERROR}Unknown column '\d{{10,}}' in 'order clause'")
_NEAR = re.compile(r"syntax to use near '(.*)' at line \d+$", re.S)
_OUT_OF_RANGE = (f"{_ERROR}BIGINT", f"{_ERROR}DECIMAL", f"{_ERROR}DOUBLE")


def _bare(output: str) -> str:
    """Return a message without the brackets and quotes that only one of both writes, and with TRUE
    and FALSE as numbers, as MariaDB writes them."""
    output = output.replace("octet_length(", "length(").replace(" MOD ", " % ")
    output = re.sub(r"convert\(([^() ]+) using utf8mb4\)", r"\1", output)
    output = re.sub(r"interval '(-?[\d.]+)'", r"interval \1", output)
    output = re.sub(r"cast\(([^() ]*) as time\)", r"time(\1)", output)
    output = re.sub(r"weekofyear\(([^()]*)\)", r"week(\1,3)", output)
    output = re.sub(r"`d`\.`[ts]`\.", "", output)  # of two columns that a join makes equal
    words = re.sub(
        r"\b(true|false)\b", lambda m: str(int(m[1].lower() == "true")), output, flags=re.I
    )
    return re.sub(r"[()`@ ]", "", words)


def _words(output: str) -> list[str]:
    """Return the words of a message, without those with which both write conditions and their
    opposites."""
    text = _bare_names(output.partition(" in '")[2][:-1])
    words = re.findall(r"'(?:[^'\\]|\\.)*'|[\w.]+|[-+*/%&|^~]", text)
    return sorted(word for word in words if word not in _OF_CONDITIONS)


_OF_CONDITIONS = frozenset({"not", "and", "or", "0", "1"})


def _bare_names(output: str) -> str:
    output = output.replace("`", "").replace(" MOD ", " % ")
    return output.replace("lcase(", "lower(").replace("ucase(", "upper(").lower()


@dataclass(slots=True)
class Tally:
    """The counts of a comparison, and examples of what is wrong or refused, by kind."""

    generated: int = 0
    agreed: int = 0
    refused: int = 0
    wrong: int = 0
    asked_again: int = 0
    """Statements for which the server named an illegal mix of collations."""
    excused: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    """The statements that each rule excused, with both answers."""
    kinds: Counter[str] = field(default_factory=Counter)
    examples: dict[str, tuple[str, str, str]] = field(default_factory=dict)

    @property
    def excuses(self) -> int:
        """The number of statements that rules excused."""
        return sum(map(len, self.excused.values()))

    def add(self, kind: str, code: str, ours: str, theirs: str) -> None:
        """Count a statement that does not agree, and keep the shortest of its kind."""
        self.kinds[kind] += 1
        known = self.examples.get(kind)
        if known is None or len(code) < len(known[0]):
            self.examples[kind] = code, ours[:400], theirs[:400]


def run_case(case: Sequence[str], ours: SqlSession, theirs: SqlSession, tally: Tally) -> bool:
    """Run a case on both engines and count each of its statements. After a difference in one of
    the first statements the rest is only run. Return whether the data are still equal."""
    sound = True
    for number, code in enumerate(case):
        a = ours.run(code, _SECONDS)
        # a syntax error quotes the statement
        asked = code if "error in your SQL syntax" in a.output else for_mariadb(code)
        b = _run(asked, theirs, tally)
        if code.startswith("SET sql_mode"):
            as_mysql(theirs)
        if not sound:
            continue
        tally.generated += 1
        if not b.ok:
            b = replace(b, output=worded(b.output, a.output))
        found = difference(code, a, b)
        if found is None:
            tally.agreed += 1
            continue
        sound = False
        if a.output.startswith(REFUSED) and not _OF_THE_ENGINE.search(a.output):
            tally.refused += 1
            tally.add("refused: " + _refusal(a.output), code, a.output, b.output)
            continue
        *shown, item = _differing(code, a, b)
        before = "".join(f"{c}; " for c in case[:number])
        part = code if item is None else of_item(code, item)
        rule = next((r for r in RULES if r.excuses(part, *shown, before)), None)
        if rule is not None:
            tally.excused.setdefault(rule.name, []).append((before + code, *shown))
            continue
        tally.wrong += 1
        tally.add("wrong: " + found, before + code, *shown)
    return sound or len(case) == 1


_CALLS = re.compile(
    r"\b(REGEXP_SUBSTR|GREATEST|LEAST|STD|STDDEV\w*|VAR_\w+|VARIANCE|PERCENT_RANK|CUME_DIST)\(",
    re.I,
)


def for_mariadb(code: str) -> str:
    """Return a statement in a form for which MariaDB follows the rules of MySQL 8: GREATEST and
    LEAST of values of several kinds compare texts (comparison-operators.html), STD, VAR,
    PERCENT_RANK and CUME_DIST have all digits of a double (aggregate-functions.html), and
    REGEXP_SUBSTR gives NULL without a match (regexp.html)."""
    for call in reversed([*_CALLS.finditer(code)]):
        arguments, rest = split_call(code[call.end() :])
        if call[1].upper() in ("GREATEST", "LEAST"):
            trees = [tree_of(f"SELECT {argument}") for argument in arguments]
            kinds = (kind_of(tree.selects[0]) for tree in trees if isinstance(tree, exp.Query))
            if not several_families(frozenset(kinds)):
                continue
            text = f"{call[0]}{', '.join(f'CONCAT({argument})' for argument in arguments)})"
        elif call[1].upper() == "REGEXP_SUBSTR":
            test = f"({arguments[0]}) REGEXP ({arguments[1]})"
            text = f"IF({test}, {call[0]}{', '.join(arguments)}), NULL)"
        else:
            over = re.match(r"\s*OVER\s*\(", rest)
            window, rest = split_call(rest[over.end() :]) if over else ([], rest)
            behind = f" OVER ({', '.join(window)})" if over else ""
            text = f"({call[0]}{', '.join(arguments)}){behind} + 0e0)"
        code = f"{code[: call.start()]}{text}{rest}"
    return code


def as_mysql(server: SqlSession) -> None:
    """Set MariaDB's mode in which fractions of seconds are rounded, as MySQL does
    (fractional-seconds.html), and the collation of constants that orders as MySQL's
    utf8mb4_0900_ai_ci (charset-connection.html)."""
    server.run("SET sql_mode = CONCAT(@@sql_mode, ',TIME_ROUND_FRACTIONAL')", _SECONDS)
    server.run("SET collation_connection = utf8mb4_uca1400_nopad_ai_ci", _SECONDS)


def _run(code: str, server: SqlSession, tally: Tally) -> ExecResult:
    """Run a statement on the server, and again with constants in the collation of the columns if
    CAST AS CHAR gives another one. The embedded engine does not know that error of MySQL, so the
    tally counts it."""
    result = server.run(code, _SECONDS)
    if not result.output.startswith(f"{_ERROR}Illegal mix of collations"):
        return result
    tally.asked_again += 1
    server.run("SET collation_connection = utf8mb4_general_ci", _SECONDS)
    result = server.run(code, _SECONDS)
    server.run("SET collation_connection = utf8mb4_uca1400_nopad_ai_ci", _SECONDS)
    return result


def difference(code: str, a: ExecResult, b: ExecResult) -> str | None:
    """Return the kind of the difference of two results, or None if they agree."""
    if a.ok != b.ok:
        return f"{_short(a)} for {_short(b)} {shape(code)}"
    if not a.ok:
        same = error_number(a.output), error_number(b.output)
        if same[0] != same[1]:
            return f"{_short(a)} for {_short(b)}"
        return None if a.output == b.output else f"message {same[0]}"
    if (a.rows is None) != (b.rows is None):
        return f"rows for none {shape(code)}"
    if a.rows is None or b.rows is None:
        return None
    if len(a.rows) != len(b.rows):
        return f"number of rows {shape(code)}"
    if _FREE_ORDER.search(code) and _folded(a.rows) == _folded(b.rows):
        keys = _sorted_columns(code)
        same = _by_keys(a.rows, keys) == _by_keys(b.rows, keys)
        return None if same else f"order {shape(code)}"
    for x, y in zip(a.rows, b.rows, strict=True):
        for p, q in zip(x, y, strict=True):
            if not equal(p, q):
                what = "type" if type(p) is not type(q) and None not in (p, q) else "value"
                return f"{what} {type(p).__name__} for {type(q).__name__} {shape(code)}"
    return None


_FREE_ORDER = re.compile(r"\b(UNION|EXCEPT|INTERSECT|GROUP BY|DISTINCT|MIN|MAX|ORDER BY \(*TRUE)\b")
"""Statements in which equal strings, such as a and A, may stand for each other, or whose rows have
no order in MySQL."""


def _folded(rows: Sequence[tuple[Any, ...]]) -> list[str]:
    digits = (tuple(f"{v:.12e}" if isinstance(v, float) else v for v in row) for row in rows)
    return sorted(repr(row).casefold() for row in digits)


def _sorted_columns(code: str) -> list[int]:
    """Return the columns of the result by which a query sorts it, the most significant first."""
    tree = tree_of(code)
    order = tree.args.get("order") if isinstance(tree, exp.Query) else None
    shown = tree.selects if isinstance(tree, exp.Query) else []
    names: dict[str, int] = {}
    for number, item in enumerate(shown):
        for name in (str(number + 1), item.alias, item.unalias().sql()):
            names.setdefault(name, number)
    keys: list[int] = []
    for item in order.expressions if order is not None else ():
        if (key := names.get(item.this.sql())) is None:
            break
        keys.append(key)
    return keys


def _by_keys(rows: Sequence[tuple[Any, ...]], keys: list[int]) -> list[tuple[list[str], list[str]]]:
    """Return the rows in their order, those with equal keys as one group without an order."""
    groups = groupby(rows, lambda row: _folded([tuple(row[key] for key in keys)]))
    return [(key, _folded([*group])) for key, group in groups]


def equal(a: Any, b: Any) -> bool:
    """Return whether two values are equal, with the same type. Doubles may differ in the 14th
    digit, because sums are in another order."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return a == b or math.isclose(a, b, rel_tol=1e-13)
    return repr(a) == repr(b)


_PATTERNS = {
    number: re.compile(re.escape(text).replace(r"\{\}", "(.*)"), re.S)
    for number, (_, text) in ERROR_MESSAGES.items()
}


def error_number(output: str) -> int | str:
    """Return the number of an error's message, or its first words."""
    text = output.strip().removeprefix(_ERROR)
    for number, pattern in _PATTERNS.items():
        if pattern.fullmatch(text):
            return number
    return re.sub(r"[`'(].*", "", text)[:60]


def shape(code: str) -> str:
    """Return the operators and functions of a statement, by which differences are grouped."""
    words = re.findall(
        r"\b(\w+)\(|\b(OVER|GROUP BY|HAVING|DISTINCT|UNION|EXCEPT|INTERSECT|JOIN|INTERVAL|LIKE|IN|"
        r"ANY|ALL|BETWEEN|CASE|REGEXP|RLIKE|IS|INSERT|UPDATE|DELETE|REPLACE|CREATE|LIMIT|DIV|MOD|AND|OR|XOR)\b"
        r"|([-+*/%&|^<>=!~]+)(?= )",
        code,
    )
    return " ".join(dict.fromkeys(a or b or c for a, b, c in words))[:50]


def _refusal(output: str) -> str:
    return re.sub(r"[\d'].*", "", output[len(REFUSED) + 2 :])[:60]


def _short(result: ExecResult) -> str:
    return "rows" if result.ok else f"error {error_number(result.output)}"


def _without(rows: Sequence[tuple[Any, ...]], others: Sequence[tuple[Any, ...]]) -> Any:
    """Return the rows that are not among others, as often as they are there."""
    known = Counter(_folded(others))
    left = []
    for row in rows:
        (text,) = _folded([row])
        known[text] -= 1
        if known[text] < 0:
            left.append(row)
    return left


def of_item(code: str, number: int) -> str:
    """Return a query with only that item of its select list, if no other one decides which rows it
    gives and in which order. Rules are asked about that item."""
    found = re.fullmatch(r"SELECT (.*?)( FROM [ts]\b(?: WHERE .*?)?(?: ORDER BY id)?)", code)
    if found is None or re.search(r"\b(UNION|EXCEPT|INTERSECT|DISTINCT|BY [^i]|HAVING)\b", code):
        return code
    items, _ = split_call(found[1] + ")")
    return f"SELECT {items[number]}{found[2]}" if number < len(items) else code


def _differing(code: str, a: ExecResult, b: ExecResult) -> tuple[str, str, int | None]:
    """Return the first rows that differ, or the outputs, and the number of the item that does."""
    if a.rows is not None and b.rows is not None and len(a.rows) == len(b.rows):
        left, right = a.rows, b.rows
        if _FREE_ORDER.search(code):
            left, right = _without(a.rows, b.rows), _without(b.rows, a.rows)
        for x, y in zip(left, right, strict=False):
            if not all(equal(p, q) for p, q in zip(x, y, strict=True)):
                n = next(n for n in range(len(x)) if not equal(x[n], y[n]))
                return f"row {x[0]!r}: {x[n]!r}", f"row {y[0]!r}: {y[n]!r}", n
    return a.output, b.output, None
