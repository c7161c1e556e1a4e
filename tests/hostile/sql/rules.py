"""The rules about MariaDB, the usual server of a comparison, and MySQL 8, which the embedded engine
follows. A rule excuses a difference that the manual of MySQL 8 explains, and no other."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from hostile.sql.operands import (
    ARITHMETIC,
    BIT_OPERATORS,
    COMPARISONS,
    DOCUMENTS,
    arguments,
    kind_of,
    operands,
    tree_of,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A difference between MariaDB and MySQL 8. ``statement``, ``server`` and ``embedded`` are
    patterns of the case up to the statement and of the answers; ``operands`` says whether the
    statement has the operands on which it depends, ``answers`` whether the answers differ as the
    rule says, and ``failing`` whether the server's error is of a part of the statement that the
    rule names. The generator makes a statement that is ``seldom`` asked once in ten times, and no
    more after ``CASES_OF_A_RULE`` of them. ``page`` is of the manual of MySQL 8.0."""

    name: str
    page: str
    statement: str = ""
    server: str = ""
    embedded: str = ""
    operands: Callable[[str], bool] | None = None
    answers: Callable[[str, str], bool] | None = None
    failing: Callable[[str, str], bool] | None = None
    seldom: bool = False

    def concerns(self, code: str, before: str = "") -> bool:
        """Return whether a statement after others can differ as the rule says."""
        found = re.search(self.statement, before + code, re.I | re.S)
        parts = (code, *before.split("; "))
        return bool(found) and (self.operands is None or any(map(self.operands, parts)))

    def excuses(self, code: str, ours: str, theirs: str, before: str = "") -> bool:
        return bool(
            re.search(self.server, theirs, re.S)
            and re.search(self.embedded, ours, re.S)
            and (self.answers is None or self.answers(ours, theirs))
            and (self.failing is None or self.failing(code, ours if theirs[:1] == "[" else theirs))
            and self.concerns(code, before)
        )


_VALUE = re.compile(
    r"(?:^|: )(?:Decimal\(|b)?['\"]?(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)['\"]?\)?$", re.I
)
_MOMENT = re.compile(r"datetime\.(date|datetime|timedelta)\(([^()]*)\)$")


def _number(answer: str) -> float | None:
    """Return the number of an answer, also of a date or a time: 20010203040506."""
    if (found := _VALUE.search(answer)) is not None:
        return float(found[1])
    if (found := _MOMENT.search(answer)) is None:
        return None
    if found[1] != "timedelta":
        parts = [int(part) for part in found[2].split(",")]
        parts += [0] * ((3 if found[1] == "date" else 7) - len(parts))
        whole = float("".join(f"{part:02}" for part in parts[:6]))
        return whole + (parts[6] / 1e6 if len(parts) > 6 else 0)
    sizes = dict(re.findall(r"(\w+)=(-?\d+)", found[2]))
    seconds = 86400 * int(sizes.get("days", 0)) + int(sizes.get("seconds", 0))
    total = seconds + int(sizes.get("microseconds", 0)) / 1e6
    hours, rest = divmod(abs(total), 3600)
    return math.copysign(1e4 * hours + 100 * (rest // 60) + rest % 60, total)


def _within(share: float, least: float | None = None) -> Callable[[str, str], bool]:
    """Return a test whether two answers are numbers, or texts that begin with one, that differ by
    at most a share, or by at most ``least``."""

    def near(ours: str, theirs: str) -> bool:
        a, b = _number(ours), _number(theirs)
        if a is None or b is None:
            return False
        return math.isclose(a, b, rel_tol=share, abs_tol=share if least is None else least)

    return near


def _same_but_zeros(ours: str, theirs: str) -> bool:
    """Return whether two texts differ only in zeros at the end of a fraction of a second."""
    a, b = (re.sub(r"(\.\d*?)0+(?=['\"])", r"\1", text) for text in (ours, theirs))
    return re.sub(r"\.(?=['\"])", "", a) == re.sub(r"\.(?=['\"])", "", b)


def _six_digits(ours: str, theirs: str) -> bool:
    """Return whether a document has six digits of a second where the server's has fewer."""
    times = re.compile(r'(?<=:\d\d:\d\d)(?:\.(\d*))?(?=\\?")')
    return ours == times.sub(lambda m: f".{m[1] or '':0<6}", theirs)


def _same_numbers(ours: str, theirs: str) -> bool:
    """Return whether two documents differ only in zeros at the end of fractions."""
    a, b = (re.sub(r"(\.\d*?)0+(?=[],}'])", r"\1", text) for text in (ours, theirs))
    return re.sub(r"\.(?=[],}'])", "", a) == re.sub(r"\.(?=[],}'])", "", b)


def _fewer_rows(ours: str, theirs: str) -> bool:
    """Return whether all rows of an answer are among those of the other, if it has rows."""
    a, b = ({*_ROW.findall(answer)} for answer in (ours, theirs))
    return not ours.startswith("[") or a <= b


_ROW = re.compile(r"\((?:[^()]|\([^()]*\))*\)")


def _cut_at_question_mark(ours: str, theirs: str) -> bool:
    """Return whether a text ends where the other has a question mark for bytes."""
    a, b = (answer.rpartition(": ")[2] for answer in (ours, theirs))
    return b.startswith(f"{a[:-1]}?")


def _filled_up(ours: str, theirs: str) -> bool:
    """Return whether a text goes on where the other ends."""
    a, b = (answer.rpartition(": ")[2] for answer in (ours, theirs))
    return b.startswith(a[:-1])


def _extended(ours: str, theirs: str) -> bool:
    """Return whether a text ends where the embedded engine's goes on."""
    return _filled_up(theirs, ours)


def _rounded(ours: str, theirs: str) -> bool:
    """Return whether the server's number is the other, rounded to a few digits."""
    a, b = _number(ours), _number(theirs)
    return a is not None and b is not None and any(round(a, n) == b for n in range(9))


def _cut_to_integer(ours: str, theirs: str) -> bool:
    a, b = _number(ours), _number(theirs)
    return a is not None and b == math.trunc(a)


def _padded(ours: str, theirs: str) -> bool:
    """Return whether the server's byte string is the other, filled up with zeros."""
    a, b = (answer.rpartition(": ")[2] for answer in (ours, theirs))
    return re.sub(r"(\\x00)+'$", "'", a) == re.sub(r"(\\x00)+'$", "'", b)


def _time_between_texts(code: str) -> bool:
    return any("time" in k and k & (_TEXTS | {"bytes"}) for k in operands(code, exp.Between))


_OF_MOMENTS = re.compile(r"(?:Truncated i|I)ncorrect (?:date|time|datetime) value: '(.*)'", re.S)


def _same_moment(ours: str, theirs: str) -> bool:
    """Return whether two errors are about one text that is no date or time."""
    a, b = _OF_MOMENTS.search(ours), _OF_MOMENTS.search(theirs)
    if a is None or b is None:
        return False
    return b[1] in (a[1], _escaped(a[1], "utf-8"), _escaped(a[1], "latin-1"))


def _escaped(text: str, encoding: str) -> str:
    """Return a text with the bytes of what is not ASCII as MariaDB writes them."""
    return "".join(
        c if c.isascii() else "".join(f"\\x{byte:02X}" for byte in c.encode(encoding, "replace"))
        for c in text
    )


_PARTS = re.compile(
    r"'(?:[^'\\]|\\.)*'|\b(WHERE|ON(?! DUPLICATE)|SELECT|FROM|JOIN|GROUP|HAVING|ORDER|WINDOW|LIMIT"
    r"|UNION|EXCEPT|INTERSECT|SET|VALUES)\b|.",
    re.I | re.S,
)


def _conditions(code: str) -> tuple[str, str]:
    """Return the text of the conditions of WHERE and ON, and the rest of a statement."""
    found: list[str] = []
    rest: list[str] = []
    depth, begun = 0, None
    for part in _PARTS.finditer(code):
        depth += (part[0] == "(") - (part[0] == ")")
        if begun is not None and (depth < begun or (part[1] and depth == begun)):
            begun = None
        if begun is None and part[1] and part[1].upper() in ("WHERE", "ON"):
            begun = depth
        (rest if begun is None else found).append(part[0])
    return "".join(found), "".join(rest)


def _fails_in_condition(code: str, theirs: str) -> bool:
    """Return whether what an error quotes is part of a condition, and of nothing else."""
    conditions, rest = _conditions(code)
    names = [rf"\b{name}\b" for name in re.findall(r"(\w+)\(", theirs.partition(" in '")[2])]
    if not names:
        quoted = re.findall(r"`(\w+)`\.`(\w+)`(?!\.)", theirs)
        names = [rf"(?<![.\w])(?:{table}\.)?{name}\b" for table, name in quoted]
    return (
        bool(names)
        and all(re.search(name, conditions, re.I) for name in names)
        and not any(re.search(name, rest, re.I) for name in names)
    )


def _null_for(ours: str, theirs: str) -> bool:
    """Return whether the embedded engine has NULL where the server has a value, or one answer has
    some of the rows of the other."""
    rows = _fewer_rows(ours, theirs) or _fewer_rows(theirs, ours)
    return rows if ours[:1] == theirs[:1] == "[" else ours.endswith("None")


def _unread_bytes(ours: str, theirs: str) -> bool:
    """Return whether bytes are NULL, or another truth value."""
    return _null_for(ours, theirs) or bool(re.search(r": '?[01]'?$", theirs))


def _length_that_can_be_null(code: str) -> bool:
    tree = tree_of(code)
    calls = tree.find_all(exp.SHA2) if tree is not None else ()
    return any(not isinstance(call.args.get("length"), exp.Literal) for call in calls)


def _range_in_wrong_order(code: str) -> bool:
    """Return whether a pattern has a range such as [z-a], or is made of other values."""
    tree = tree_of(code)
    for found in tree.find_all(*_OF_PATTERNS) if tree is not None else ():
        pattern = found.expression.unnest()
        if not isinstance(pattern, exp.Literal):
            return any(pattern.find_all(exp.Column, exp.Func))
        ranges = re.findall(r"(?=(.)-(.))", "".join(re.findall(r"\[[^\]]*\]", pattern.this)))
        if any(first > last and "\\" not in first + last for first, last in ranges):
            return True
    return False


_OF_PATTERNS = (exp.RegexpLike, exp.RegexpInstr, exp.RegexpReplace, exp.RegexpSubstr)


def _unsigned_double(code: str) -> bool:
    tree = tree_of(code)
    casts = tree.find_all(exp.Cast) if tree is not None else ()
    return any(
        "UNSIGNED" in cast.args["to"].sql("mysql")
        and kind_of(cast.this) not in ("int", "unsigned", "year", "bits", "number")
        for cast in casts
    )


def _in_or_not(ours: str, theirs: str) -> bool:
    """Return whether a condition has another truth value, or one answer has some of the rows of the
    other."""
    return ours[:1] != "[" or _fewer_rows(ours, theirs) or _fewer_rows(theirs, ours)


def _number_of_constant_bytes(code: str, answer: str) -> bool:
    """Return whether a number is that of constant bytes of a statement."""
    constants = [int(a, 16) for a in re.findall(r"\b0x([0-9a-f]+)", code, re.I)]
    constants += [int(a, 2) for a in re.findall(r"\bb'([01]+)'", code)]
    return answer.startswith("[") or _number(answer) in constants


def _text_for_number(ours: str, theirs: str) -> bool:
    """Return whether the number of a text is 0 or NULL, or both numbers are equal, or one answer
    has some of the rows of the other."""
    return _null_for(ours, theirs) or _number(ours) == 0 or _within(0.0)(ours, theirs)


_MANUAL = "dev.mysql.com/doc/refman/8.0/en/"
_NUMBERS = frozenset({"int", "unsigned", "decimal", "float", "double", "year", "bits", "number"})
_MOMENTS = frozenset({"date", "datetime", "time"})
_TEXTS = frozenset({"text", "enum", "set", "json"})
_HAS_MOMENT = r"\b(da|dt3?|ts|tm2?)\b|DATE|TIME|INTERVAL|DAY"
_DOUBLES = frozenset({"float", "double", "decimal", "text", "bytes", "time", "datetime", ""})
_WHOLE = r": '?\d[\d.e+]*'?$|^\[|^None$"


def _number_with_moment(code: str) -> bool:
    return any(k & _NUMBERS and k & _MOMENTS for k in operands(code, *COMPARISONS))


def _moment_in_arithmetic(code: str) -> bool:
    return any(k & _MOMENTS and k & (_NUMBERS | {"bytes"}) for k in operands(code, *ARITHMETIC))


def _cast_moment_compared(code: str) -> bool:
    """Return whether a date or a time that is made of a text, bytes or a number is compared."""
    tree = tree_of(code)
    return any(
        made.sql("mysql").upper().startswith(("CAST(", "CONVERT(", "DATE(", "TIME(", "TIMESTAMP("))
        and kind_of(made) in _MOMENTS
        and kind_of(made.this) in _NUMBERS | _TEXTS | {"bytes"}
        for compared in (tree.find_all(*COMPARISONS) if tree is not None else ())
        for made in (node.unnest() for node in compared.iter_expressions())
        if isinstance(made, exp.Func)
    )


def _constant_with_moment(code: str) -> bool:
    """Return whether a date or a time is compared with a constant that does not look like one."""
    tree = tree_of(code) if re.search(_HAS_MOMENT, code) else None
    for node in tree.find_all(*COMPARISONS) if tree is not None else ():
        children = [c for c in node.iter_expressions() if isinstance(c, exp.Expression)]
        if any(kind_of(c) in _MOMENTS for c in children) and any(
            isinstance(c, exp.Boolean)
            or (isinstance(c, exp.Literal) and not re.match(r"\d+[-:]\d+[-:]", c.this))
            for c in children
        ):
            return True
    return False


def _document_compared(code: str) -> bool:
    return any("json" in k and len(k) > 1 for k in operands(code, *COMPARISONS))


_OF_TIMES = (
    "HOUR",
    "MINUTE",
    "SECOND",
    "MICROSECOND",
    "TIME",
    "TIME_TO_SEC",
    "TIME_FORMAT",
    "EXTRACT",
    "ADDTIME",
    "SUBTIME",
    "TIMEDIFF",
    "TIMESTAMP",
)


def _number_as_time(code: str) -> bool:
    """Return whether a number is read as a time."""
    tree = tree_of(code)
    casts = tree.find_all(exp.Cast) if tree is not None else ()
    return any(k & (_NUMBERS | {""}) for k in arguments(code, *_OF_TIMES)) or any(
        kind_of(cast) == "time" and kind_of(cast.this) in _NUMBERS for cast in casts
    )


def _moment_in_document(code: str) -> bool:
    """Return whether a time, with a date or without, is put into a JSON document."""
    return any(k & {"datetime", "time"} for k in arguments(code, *DOCUMENTS))


def _constants_counted(code: str) -> bool:
    tree = tree_of(code)
    counts = tree.find_all(exp.Count) if tree is not None else ()
    return any(
        isinstance(count.this, exp.Distinct) and not any(count.find_all(exp.Column))
        for count in counts
    )


def several_families(kinds: frozenset[str]) -> bool:
    """Return whether kinds are of more than one family: numbers, dates and times, texts."""
    families = (_NUMBERS, _MOMENTS, _TEXTS | {"bytes"})
    return sum(bool(kinds & family) for family in families) > 1


def _bits_of_a_double(code: str) -> bool:
    calls = arguments(code, "BIT_AND", "BIT_OR", "BIT_XOR", "BIT_COUNT", "BITWISE_AND_AGG")
    return any(k & _DOUBLES for k in (*operands(code, *BIT_OPERATORS), *calls))


def _fraction_with_integer(code: str) -> bool:
    return any(
        k & {"float", "double", "decimal"} and k & {"int", "unsigned", "year"}
        for k in operands(code, *COMPARISONS)
    )


def _digits_of_bits(ours: str, theirs: str) -> bool:
    """Return whether the server's number is that of the bytes of the other's digits, or of its text
    or byte string."""
    a, b = re.search(r"(?:^|: )(b?'.*'|\d+)$", ours), _VALUE.search(theirs)
    if a is None or b is None:
        return False
    made = a[1] if a[1].isdigit() else ast.literal_eval(a[1])
    data = made if isinstance(made, bytes) else made.encode("latin-1", "replace")
    return bool(int.from_bytes(data) == float(b[1]))


RULES: tuple[Rule, ...] = (
    Rule(
        "a constant that is no date is an error in a comparison with a date",
        _MANUAL + "type-conversion.html",
        embedded=r"Incorrect (DATE|DATETIME|TIME) value",
    ),
    Rule(
        "a number and a date that are no constants are compared as numbers",
        _MANUAL + "type-conversion.html",
        _HAS_MOMENT,
        operands=_number_with_moment,
        seldom=True,
    ),
    Rule(
        "periods that are none are an error",
        _MANUAL + "date-and-time-functions.html",
        r"PERIOD_(ADD|DIFF)",
        embedded="Incorrect arguments to period_",
        seldom=True,
    ),
    Rule(
        "a text that is no number, in a column of doubles, is cut data",
        _MANUAL + "precision-math-expressions.html",
        "",
        "Incorrect double value",
        "Data truncated",
    ),
    Rule(
        "DIV of doubles beyond 64 bits is out of range",
        _MANUAL + "arithmetic-functions.html",
        r"\bDIV\b",
        "Got overflow when converting",
        "value is out of range",
    ),
    Rule(
        "GREATEST and LEAST of an ENUM or a SET are of its number in a condition",
        _MANUAL + "comparison-operators.html",
        r"\b(WHERE|ON|HAVING)\b.*(GREATEST|LEAST)\([^()]*\b(e|st)\b",
    ),
    Rule(
        "NULLIF of an ENUM is its number in a condition",
        _MANUAL + "flow-control-functions.html",
        r"\b(WHERE|ON|HAVING)\b.*NULLIF\(\(*([ts]\.)?(e|st)\b",
    ),
    Rule(
        "INT UNSIGNED with BIGINT is a BIGINT",
        _MANUAL + "integer-types.html",
        "",
        r"Decimal\('-?\d+'\)$",
        r": -?\d+$",
        answers=_within(0.0),
    ),
    Rule(
        "operators on bits take doubles as 64-bit integers, rounded to even, and round times",
        _MANUAL + "bit-functions.html",
        r"[&|^~]|<<|>>|BIT",
        _WHOLE,
        _WHOLE,
        operands=_bits_of_a_double,
        seldom=True,
    ),
    Rule(
        "bytes that are no text in CAST AS CHAR are NULL",
        _MANUAL + "cast-functions.html",
        r"(CAST|CONVERT)\([^()]*(\b(bl|bn|vbin|bt|b1)\b|\b0x\w+|b'\d+')[^()]* ?(AS|,) CHAR",
        embedded=r"None|^\[|: '?[01]'?$",
        answers=_unread_bytes,
    ),
    Rule(
        "bytes that are no text are cut in a column of texts",
        _MANUAL + "insert.html",
        r"INSERT|UPDATE|REPLACE",
        r"'[^?]*\?.*'$",
        answers=_cut_at_question_mark,
    ),
    Rule(
        "a YEAR takes the year of a date",
        _MANUAL + "year.html",
        r"(INSERT|UPDATE|REPLACE).*\by\b",
        r"Incorrect (date|datetime) value",
        "^None$",
    ),
    Rule(
        "a syntax error comes before those of calls",
        _MANUAL + "function-resolution.html",
        "",
        "Incorrect parameter count",
        "You have an error in your SQL syntax",
    ),
    Rule(
        "TRUE and FALSE have one digit",
        _MANUAL + "boolean-literals.html",
        r"(TRUE|FALSE).*(UNION|EXCEPT|INTERSECT)|(UNION|EXCEPT|INTERSECT).*(TRUE|FALSE)",
        answers=_filled_up,
    ),
    Rule(
        "GROUP_CONCAT is a text, which is a double beside numbers",
        _MANUAL + "type-conversion.html",
        r"GROUP_CONCAT\(.*( AS n .*HAVING n|\)+ [-+*/<>=])",
        r": (-?\d+\.0|[01])$|^\[",
        r": (-?\d+\.\d+|[01])$|^\[",
    ),
    Rule(
        "conditions of a join, or beside a constant, are evaluated in an order that is not said",
        _MANUAL + "nested-loop-joins.html",
        r"JOIN.*WHERE|WHERE.*(\bOR\b|\bAND\b|\|\||&&)",
        r"value is out of range|^\[",
        r"value is out of range|^\[",
        answers=lambda ours, theirs: ours.startswith("[") != theirs.startswith("["),
        failing=_fails_in_condition,
    ),
    Rule(
        "a zero date is an error in strict mode",
        _MANUAL + "sql-mode.html",
        r"INSERT|UPDATE|REPLACE",
        "",
        r"Incorrect (date|datetime) value: '(0|\d+\D00\D)",
    ),
    Rule(
        "FLOAT as text has the digits of a FLOAT",
        _MANUAL + "floating-point-types.html",
        r"\bf\b",
        answers=_within(1e-5),
    ),
    Rule(
        "functions of the text of a FLOAT",
        _MANUAL + "floating-point-types.html",
        r"\b(MD5|SHA\d?|CRC32|\w*LENGTH|HEX|TO_BASE64|REVERSE|RIGHT|[LR]PAD|QUOTE)\([^)]*\bf\b",
        r"^row .*: [^N]",
        r"^row .*: [^N]",
    ),
    Rule(
        "strict modes hold for DELETE, and for conditions that UPDATE evaluates first",
        _MANUAL + "sql-mode.html",
        r"\b(DELETE|UPDATE)\b",
        "^None$|Out of range value",
        r"Truncated incorrect|Division by 0|Incorrect datetime value|field overflow",
    ),
    Rule(
        "a variable of a decimal has the digits of its value",
        _MANUAL + "user-variables.html",
        "@",
        r"0{20}",
        answers=_within(0.0),
    ),
    Rule(
        "FORMAT gives at most 30 digits behind the point",
        _MANUAL + "string-functions.html",
        "FORMAT",
        r"\.\d{31,}",
        r"\.\d{30}\D*$",
    ),
    Rule(
        "a JSON document is normalized",
        _MANUAL + "json.html",
        r"\bjs\b",
        r"[{\[\"]",
        r"[{\[\"]",
    ),
    Rule(
        "a number in a JSON document has no zeros at its end",
        _MANUAL + "json.html",
        r"JSON_\w+\(CONCAT",
        answers=_same_numbers,
    ),
    Rule(
        "a double in a JSON document has a point or an exponent",
        _MANUAL + "json.html",
        r"JSON_\w+\(",
        answers=lambda ours, theirs: re.sub(r"\.0(?=[,\]}'])", "", ours) == theirs,
    ),
    Rule(
        "a time in a JSON document has six digits of a second",
        _MANUAL + "json.html",
        r"JSON_\w+\(",
        operands=_moment_in_document,
        answers=_six_digits,
    ),
    Rule(
        "a text that is no JSON document has an error of its own",
        _MANUAL + "json.html",
        r"\bjs\b",
        "CONSTRAINT `t.js` failed",
        "Invalid JSON text",
    ),
    Rule(
        "SHA2 of a length that is NULL is NULL",
        _MANUAL + "encryption-functions.html",
        "SHA2",
        embedded=r"None$|^\[",
        operands=_length_that_can_be_null,
        answers=_null_for,
        seldom=True,
    ),
    Rule(
        "REPLACE with NULL is NULL",
        _MANUAL + "string-functions.html",
        r"REPLACE\(",
        r"'$|^\[",
        r"None|^\[",
        answers=_fewer_rows,
    ),
    Rule(
        "TIME_TO_SEC gives whole seconds",
        _MANUAL + "date-and-time-functions.html",
        "TIME_TO_SEC",
        r"Decimal\('",
        r": -?\d+$",
        answers=_within(0.0, 1.0),
        seldom=True,
    ),
    Rule(
        "ROUND, TRUNCATE, FLOOR and CEILING of a date or a time are numbers",
        _MANUAL + "mathematical-functions.html",
        r"\b(ROUND|TRUNCATE|FLOOR|CEIL|CEILING)\(",
        r"datetime\.",
        r": ('?-?\d|Decimal)",
        answers=_within(0.0, 1.0),
    ),
    Rule(
        "ROUND and TRUNCATE of digits before the point of a date are numbers",
        _MANUAL + "mathematical-functions.html",
        r"\b(ROUND|TRUNCATE)\(.*, -\d",
        r"datetime\.",
        r": (-?\d|Decimal)",
        answers=_within(0.0, 10.0),
    ),
    Rule(
        "dates and times in arithmetic are integers, and unsigned beside unsigned ones",
        _MANUAL + "out-of-range-and-overflow.html",
        _HAS_MOMENT,
        operands=lambda code: any(k & _MOMENTS for k in operands(code, *ARITHMETIC)),
        answers=lambda ours, theirs: "UNSIGNED value is out of range" in ours + theirs,
    ),
    Rule(
        "dates and times beside a DECIMAL are one",
        _MANUAL + "precision-math-expressions.html",
        _HAS_MOMENT,
        r": -?\d+$",
        "Decimal",
        operands=_moment_in_arithmetic,
        answers=_within(0.0),
    ),
    Rule(
        "a BIT that is no column is sent as its bytes",
        _MANUAL + "bit-type.html",
        r"\b(bt|b1)\b|b'",
        answers=_digits_of_bits,
    ),
    Rule(
        "an address is read as a double, up to its second point",
        _MANUAL + "type-conversion.html",
        "INET_NTOA",
        answers=_cut_to_integer,
    ),
    Rule(
        "the text of a date and an interval is as long as it is in UNION",
        _MANUAL + "date-and-time-functions.html",
        r"UNION.*(INTERVAL|TIMESTAMPADD)|(INTERVAL|TIMESTAMPADD).*UNION",
        r"\\x00'$",
        "'$",
        answers=_padded,
    ),
    Rule(
        "the text of a date and an interval has all digits of a double",
        _MANUAL + "type-conversion.html",
        "INTERVAL",
        r": -?\d*\.\d+$",
        r": -?\d*\.\d+$",
        answers=_rounded,
    ),
    Rule(
        "a time between texts is compared as a text",
        _MANUAL + "type-conversion.html",
        "BETWEEN",
        r": [01]$|^\[",
        r": [01]$|^\[",
        operands=_time_between_texts,
    ),
    Rule(
        "MIN and MAX of an ENUM are its text",
        _MANUAL + "aggregate-functions.html",
        r"M(IN|AX)\((DISTINCT )?(t\.)?(e|st)\) [+/]",
        r": \d+$|Decimal",
        r"\.0$",
        answers=_within(0.0),
    ),
    Rule(
        "MIN and MAX of an ENUM are its text in a condition",
        _MANUAL + "aggregate-functions.html",
        r"HAVING M(IN|AX)\((DISTINCT )?(t\.)?(e|st)\)"
        r"|M(IN|AX)\((DISTINCT )?(e|st)\) AS n .*(HAVING n|ORDER BY n)",
    ),
    Rule(
        "a text that is no path in a JSON document is an error",
        _MANUAL + "json.html",
        r"JSON_(EXTRACT|LENGTH)\(",
        embedded="Invalid JSON path expression",
    ),
    Rule(
        "JSON_EXTRACT gives values in the order of its paths",
        _MANUAL + "json-search-functions.html",
        r"JSON_EXTRACT\(",
        r"'\[",
        r"'\[",
        answers=lambda ours, theirs: sorted(ours) == sorted(theirs),
    ),
    Rule(
        "a JSON value can be a date",
        _MANUAL + "json.html",
        r"\bjs\b|JSON_",
        r"Illegal parameter data types \w+/json",
    ),
    Rule(
        "the longest TIME has no fraction",
        _MANUAL + "time.html",
        "",
        r"838:59:59\.[1-9]|=82799, microseconds=|=3600, microseconds=|: 9+$|8385959\.9",
        r"838:59:59(\.0+)?'|=82799\)|=3601\)|: 0$|8385959(\.0+)?'?\)?$",
    ),
    Rule(
        "a YEAR has the digits of a number where a date is needed",
        _MANUAL + "year.html",
        r"[A-Z_]\((t\.)?y\b|\by [-+] INTERVAL",
        seldom=True,
    ),
    Rule(
        "a text with an interval has six digits of a second or none",
        _MANUAL + "date-and-time-functions.html",
        r"INTERVAL|ADDDATE|SUBDATE|TIMESTAMPADD",
        answers=_same_but_zeros,
    ),
    Rule(
        "a TIME with a fraction is a rounded integer as an argument",
        _MANUAL + "date-and-time-type-conversion.html",
        r"(SPACE|INSERT|INET_NTOA|LEFT|RIGHT|ELT|FORMAT|SUBSTRING_INDEX|MAKE\w+|REPEAT|CHAR|[LR]PAD)"
        r"\([^()]*((tm2|dt3)\b|TIME'00:00:00\.5')"
        r"|WEEK\([^(),]*,[^()]*((tm2|dt3)\b|TIME'00:00:00\.5')"
        r"|(CAST|CONVERT)\([^()]*((tm2|dt3)\b|TIME'00:00:00\.5') ?(AS|,) (UN)?SIGNED",
    ),
    Rule(
        "a time where a date is needed is one of the current day",
        _MANUAL + "date-and-time-type-conversion.html",
        r"(DATE_FORMAT\(|EXTRACT\((DAY|WEEK|MONTH|QUARTER|YEAR)\w* FROM )"
        r"\(*(t\.)?(tm|TIME|SEC_TO)",
    ),
    Rule(
        "a constant in E notation as a text has the digits of its number",
        _MANUAL + "number-literals.html",
        r"\d[eE]\d",
        r"['\"]-?\d+e\d+",
        r"\d{5,}",
        answers=_within(0.0),
    ),
    Rule(
        "FROM_UNIXTIME of a text has six digits of a second",
        _MANUAL + "date-and-time-functions.html",
        "FROM_UNIXTIME",
        answers=_same_but_zeros,
    ),
    Rule(
        "JSON_QUOTE and JSON_UNQUOTE of no string are an error",
        _MANUAL + "json-modification-functions.html",
        "JSON_(UN)?QUOTE",
        embedded="Incorrect type for argument 1",
        seldom=True,
    ),
    Rule(
        "a JSON document is compared by its type and value",
        _MANUAL + "json.html",
        operands=_document_compared,
    ),
    Rule(
        "FROM_UNIXTIME reaches the year 3001",
        _MANUAL + "date-and-time-functions.html",
        "FROM_UNIXTIME",
        "None$",
        r"datetime\.datetime\([23]\d\d\d|'[23]\d\d\d-",
    ),
    Rule(
        "FROM_UNIXTIME of a column reaches the year 3001",
        _MANUAL + "date-and-time-functions.html",
        r"FROM_UNIXTIME\((t\.)?(u|ub|bi|f|2147483648)\)",
    ),
    Rule(
        "a CAST that gives no date is NULL in a comparison",
        _MANUAL + "cast-functions.html",
        r"(CAST|CONVERT)\(.*(AS|,) (DATE|DATETIME|TIME)\b|\b(DATE|TIME|TIMESTAMP)\(",
        r": -?\d+(\.\d+)?$|^\[\(",
        r"None$|^\[",
        operands=_cast_moment_compared,
        answers=_fewer_rows,
    ),
    Rule(
        "ANY, ALL and IN with NULL in the subquery are NULL",
        _MANUAL + "any-in-some-subqueries.html",
        r"(ANY|SOME|ALL|IN) \(SELECT",
        r": 0$|^\[\(\d",
        r"None$|^\[\]$",
    ),
    Rule(
        "ALL and NOT IN with NULL in the subquery are never true",
        _MANUAL + "any-in-some-subqueries.html",
        r"(ALL|NOT IN) \(SELECT",
        r": 1$",
        r"None$",
    ),
    Rule(
        "INSERT and RPAD of a number or a date and a text keep the characters",
        _MANUAL + "string-functions.html",
        r"(INSERT|RPAD)\(",
        "Ã",
    ),
    Rule(
        "a negative number in ORDER BY is no position",
        _MANUAL + "select.html",
        r"ORDER BY (\d+ DESC, )?\(?-\d",
        "Unknown column",
    ),
    Rule(
        "a fraction and an integer are compared as doubles, also with a subquery",
        _MANUAL + "type-conversion.html",
        r"(ANY|SOME|ALL|IN) \(SELECT",
        r": [01]$|^\[",
        r": [01]$|None$|^\[",
        operands=_fraction_with_integer,
    ),
    Rule(
        "a range of characters whose ends are in the wrong order is an error",
        _MANUAL + "regexp.html",
        "REGEXP|RLIKE",
        embedded=r"\[x-y\] character range",
        operands=_range_in_wrong_order,
    ),
    Rule(
        "a rounded double has more than 17 digits in a temporary table",
        _MANUAL + "floating-point-types.html",
        r"\b(ROUND|TRUNCATE|FLOOR|CEIL|CEILING)\(.*(DISTINCT|GROUP BY|UNION|FROM \(|ORDER BY)"
        r"|(DISTINCT|FROM \(.*) (ROUND|TRUNCATE|FLOOR|CEIL|CEILING)\(",
        r": -?1e\+17$",
        r": -?\d(\.\d+)?e\+(1[7-9]|[2-9]\d|\d{3})$",
    ),
    Rule(
        "a negative double in CAST AS UNSIGNED is not zero in a condition",
        _MANUAL + "cast-functions.html",
        r"(WHERE|ON|HAVING)\b.*(CAST|CONVERT)\(.*(AS|,) UNSIGNED|UNSIGNED\) IS ",
        r"^\[|: \d+$",
        r"^\[|: \d+$",
        operands=_unsigned_double,
    ),
    Rule(
        "a negative double in CAST AS UNSIGNED wraps",
        _MANUAL + "cast-functions.html",
        "UNSIGNED",
        ": '?0'?$",
        r": '?\d{19,20}'?$",
    ),
    Rule(
        "BINARY(n) has n bytes",
        _MANUAL + "cast-functions.html",
        r"(AS|,) BINARY\(",
        answers=_filled_up,
    ),
    Rule(
        "a text of a number has all digits of a double",
        _MANUAL + "type-conversion.html",
        r"(AS|,) (CHAR|BINARY)|\b(ROUND|TRUNCATE|FLOOR|CEIL|CEILING)\(",
        r"\d\.\d{0,4}'?$|'-?\d{16,}'$",
        r"\d\.\d+(e-\d+)?'?$|e\d+'$",
        answers=_within(1e-9, 1e-4),
    ),
    Rule(
        "a CAST that gives no date is NULL as a number",
        _MANUAL + "cast-functions.html",
        r"\b(SELECT|SET|VALUES)\b((?! FROM | WHERE ).)*(CAST|CONVERT)\(((?! FROM | WHERE ).)*"
        r"(AS|,) (DATE|DATETIME)\b",
        r": Decimal\('\d{4}(00\d\d|\d\d00)",
        "None$",
    ),
    Rule(
        "a CAST that gives no date is NULL in CASE",
        _MANUAL + "cast-functions.html",
        r"CASE (CAST|CONVERT)\(.*(AS|,) (DATE|DATETIME|TIME)\b.* WHEN",
    ),
    Rule(
        "FROM_BASE64 of other text is NULL",
        _MANUAL + "string-functions.html",
        "FROM_BASE64",
        "Bad base64 data",
        "None|^\\[",
    ),
    Rule(
        "a date with no time is no time of day",
        _MANUAL + "date-and-time-literals.html",
        r"EXTRACT\((DAY_|HOUR|MINUTE|SECOND|MICROSECOND)\w* FROM "
        r"\(*('[^:']*'|(t\.)?(c|v|vb|l|tx|e|st|bl|bn|vbin)\b)",
        r": '?-?[\d.]+'?$|None$|^\[",
        r": '?-?[\d.]+'?$|None$|^\[",
    ),
    Rule(
        "a double beyond 64 bits in CAST AS UNSIGNED is the largest signed integer",
        _MANUAL + "cast-functions.html",
        "UNSIGNED",
        ": '?18446744073709551615'?$",
        ": '?9223372036854775807'?$",
    ),
    Rule(
        "constant bytes that another expression gives are a text",
        _MANUAL + "hexadecimal-literals.html",
        r"(M(IN|AX)\((DISTINCT )?|THEN |ELSE |(IF|IFNULL|COALESCE|NULLIF)\(.*)(0x|b')",
        r"Decimal|: -?\d+$|^\[",
        r"Decimal|\.\d+$|: 0$|None$|^\[",
        answers=_text_for_number,
        failing=_number_of_constant_bytes,
    ),
    Rule(
        "constant bytes that another expression gives have an angle",
        _MANUAL + "hexadecimal-literals.html",
        r"\bA(SIN|COS)\((CASE|IF|IFNULL|COALESCE|NULLIF|MIN|MAX)\b.*(0x|b')",
        "None$",
        r": (0\.0|1\.5707963267948966)$",
    ),
    Rule(
        "constant bytes in IN are a number beside numbers",
        _MANUAL + "hexadecimal-literals.html",
        r"(0x\w+|b'\d+') (NOT )?IN \(",
        r": [01]$|^\[",
        r": [01]$|^\[",
        operands=lambda code: any(
            k & {"bytes"} and k & _TEXTS and k & _NUMBERS for k in operands(code, exp.In)
        ),
        answers=_in_or_not,
    ),
    Rule(
        "a text of ASCII is converted to the character set of the others",
        _MANUAL + "charset-repertoire.html",
        r"\b(SHA1?|SHA2|MD5|HEX|TO_BASE64)\(.*\bl\b|\bl\b.*\b(SHA1?|SHA2|MD5|HEX|TO_BASE64)\(",
        r",COERCIBLE\) and \(latin1_swedish_ci,IMPLICIT\) for operation '",
        r"^\[",
    ),
    Rule(
        "FROM_DAYS gives no days before the calendar",
        _MANUAL + "date-and-time-functions.html",
        "FROM_DAYS",
        embedded=r"None$|^\[",
    ),
    Rule(
        "STR_TO_DATE gives no zero date",
        _MANUAL + "date-and-time-functions.html",
        "STR_TO_DATE",
        embedded=r"None$|^\[",
    ),
    Rule(
        "a number beyond the longest time is no time",
        _MANUAL + "time.html",
        embedded=r"None$|^\[|: '?0'?$|Truncated incorrect time value",
        operands=_number_as_time,
    ),
    Rule(
        "a number that is no date has no day",
        _MANUAL + "date-and-time-functions.html",
        r"EXTRACT\(DAY FROM",
        r": '?-?\d+'?$|^\[",
        r"None$|^\[",
    ),
    Rule(
        "a logarithm of no positive number has an error of its own",
        _MANUAL + "mathematical-functions.html",
        r"\b(LN|LOG\d*)\(",
        "Division by 0",
        "Invalid argument for logarithm",
    ),
    Rule(
        "bytes, hexadecimal digits and formatted dates in arithmetic are texts, which are doubles",
        _MANUAL + "type-conversion.html",
        r"HEX\(|(AS|,) (BINARY|CHAR)|INTERVAL.*[-+*/]|/.*(DATE|TIME)_FORMAT\(",
        answers=_rounded,
    ),
    Rule(
        "COUNT(DISTINCT) of a constant is one",
        _MANUAL + "aggregate-functions.html",
        operands=_constants_counted,
    ),
    Rule(
        "a text is no time, or begins with a date",
        "dev.mysql.com/doc/mysql-errors/8.0/en/server-error-reference.html",
        answers=_same_moment,
    ),
    Rule(
        "a date is no time in TIMESTAMP",
        _MANUAL + "date-and-time-functions.html",
        "TIMESTAMP",
        "Incorrect INTERVAL DAY TO SECOND value",
        r"None$|^\[",
    ),
    Rule(
        "a name that is no type is a syntax error in CAST",
        _MANUAL + "cast-functions.html",
        "CAST|CONVERT",
        "Unknown data type",
        "You have an error in your SQL syntax",
    ),
    Rule(
        "a decimal as a text has the digits of its type",
        _MANUAL + "fixed-point-types.html",
        "UNION|EXCEPT|INTERSECT",
        r"'-?\d+(\.\d+)?'$",
        r"\.\d*0'$",
        answers=_within(0.0),
    ),
    Rule(
        "a quotient as a text has the digits of its type",
        _MANUAL + "fixed-point-types.html",
        "/.*(UNION|EXCEPT|INTERSECT)|(UNION|EXCEPT|INTERSECT).*/",
        r"'-?\d+\.\d{5,}'$",
        r"'-?\d+\.\d{4,}'$",
        answers=_within(0.0, 5.1e-5),
    ),
    Rule(
        "a text of a negative number is no SET",
        _MANUAL + "set.html",
        r"(INSERT|REPLACE|UPDATE).*\bst\b.*'-\d",
        r"'[a-z,]*'$",
        "''$",
    ),
    Rule(
        "digits before a point are a date",
        _MANUAL + "date-and-time-literals.html",
        "INET_NTOA",
        "None$",
        r"datetime\.|'\d{4}-",
    ),
    Rule(
        "a number beside a text has all its digits",
        _MANUAL + "flow-control-functions.html",
        r"CASE|IF\(|COALESCE",
        r"'-?[\d.]+'$",
        r"'-?[\d.]+'$",
        answers=_extended,
    ),
    Rule(
        "LOCATE beside bytes counts bytes",
        _MANUAL + "string-functions.html",
        r"LOCATE\(.*(\b(bl|bn|vbin|bt|b1)\b|0x|b'|HEX|BINARY)",
        r": \d+$",
        r": \d+$",
    ),
    Rule(
        "a text that is no date is the zero date in BETWEEN",
        _MANUAL + "datetime.html",
        r"BETWEEN.*'2023-02-30'|'2023-02-30'.*BETWEEN",
        operands=lambda code: any(
            k & _MOMENTS and "text" in k for k in operands(code, exp.Between)
        ),
    ),
    Rule(
        "a value that is no JSON document has an error",
        _MANUAL + "json-function-reference.html",
        "JSON_",
        embedded="Invalid (data type for JSON data|JSON text) in argument 1",
        seldom=True,
    ),
    Rule(
        "a position in ORDER BY has more than 32 bits",
        _MANUAL + "select.html",
        r"ORDER BY \d{10,}",
        "Unknown column",
        "Unknown column",
    ),
    Rule(
        "LOCATE of no characters behind the end is that position",
        _MANUAL + "string-functions.html",
        r"LOCATE\(",
        r": 0$|^\[",
        r": \d+$|^\[",
    ),
    Rule(
        "a moving window of doubles is summed anew",
        _MANUAL + "window-function-optimization.html",
        r"(AVG|SUM)\((x|f)\) OVER .*PRECEDING",
    ),
    Rule(
        "a result longer than max_allowed_packet is NULL",
        _MANUAL + "string-functions.html",
        r"REPEAT|SPACE|[LR]PAD",
        "execution was interrupted",
        "None",
    ),
    Rule(
        "a number that is no time is an error",
        _MANUAL + "time.html",
        r"INSERT|UPDATE|REPLACE",
        "",
        r"Incorrect time value: '\d{8}'",
    ),
    Rule(
        "FALSE and TRUE are no positions in ORDER BY",
        _MANUAL + "select.html",
        r"ORDER BY \(*[-+]?(TRUE|FALSE)",
        failing=lambda code, theirs: "Unknown column" in theirs or "LIMIT" in code,
    ),
    Rule(
        "a TIME with a fraction is rounded to an integer",
        _MANUAL + "date-and-time-type-conversion.html",
        r"(INSERT|UPDATE|REPLACE).*(TIME ?'[\d:]+\.\d+'|tm2)",
        r": -?\d+$|entry '\d+'",
        r": -?\d+$|entry '\d+'",
    ),
)


CASES_OF_A_RULE = 40
"""Random cases of a run that a rule about other answers concerns, if its statements are few."""


def asked_seldom(case: list[str]) -> set[str]:
    """Return the names of the rules that concern a case and of which the generator makes few."""
    found = {rule.name for rule in RULES if rule.seldom and any(map(rule.concerns, case))}
    return found | {RULES[0].name} if any(map(_constant_with_moment, case)) else found
