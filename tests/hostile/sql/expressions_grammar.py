"""Random expressions: every type, every operator between every pair of types, every function."""

from __future__ import annotations

import random
from collections.abc import Callable

from hostile.sql.tables import COLUMNS
from intercode_sql.embedded.compile.calls import SPECIAL_FUNCTIONS
from intercode_sql.embedded.functions.registry import SCALARS, Argument

LITERALS = {
    "int": ("0", "1", "-1", "2", "5", "7", "10", "255", "2147483648", "9223372036854775807"),
    "decimal": ("0.0", "1.5", "-2.25", "0.005", "12345.678", "100.00", "2.5"),
    "double": ("1e0", "2.5e-3", "-1e10", "1e20", "0e0"),
    "text": (
        "''",
        "'a'",
        "'ann'",
        "'BOB'",
        "'10'",
        "'2.5x'",
        "'1e1'",
        "'abc'",
        "'50%'",
        "'low'",
        "'a,b,c'",
        "'-3'",
        "' 7'",
        "'Äpfel'",
    ),
    "date": (
        "'2001-02-03'",
        "'2024-02-29'",
        "DATE '2020-06-15'",
        "'2020-6-5'",
        "20200615",
        "DATE'2024-12-31'",
        "'99-12-31'",
        "'2023-02-30'",
    ),
    "datetime": (
        "'2001-02-03 04:05:06'",
        "TIMESTAMP '2020-06-15 12:30:45'",
        "'2020-06-15 12:30:45.5'",
        "20200615123045",
        "'2020-06-15T01:02:03'",
    ),
    "time": (
        "'10:11:12'",
        "TIME '01:02:03'",
        "'12:30'",
        "'-01:00:00'",
        "'100:00:00'",
        "101112",
        "'23:59:59.75'",
        "TIME'00:00:00.5'",
    ),
    "bytes": ("0x41", "0x00ff", "0x3130", "CAST('Ab' AS BINARY)", "UNHEX('C3A4')"),
    "set": ("'red'", "'blue,red'", "3", "'2'", "'pink'"),
    "bits": ("b'101'", "b'1'", "B'0'", "b'1000001'"),
    "null": ("NULL",),
    "bool": ("TRUE", "FALSE"),
}
COMPARISONS = ("=", "<>", "!=", "<", "<=", ">", ">=", "<=>")
ARITHMETIC = ("+", "-", "*", "/", "DIV", "%", "MOD")
BITS = ("&", "|", "^", "<<", ">>")
_WHOLE = ("int", "int", "unsigned", "year", "bits", "bool", "date", None)
"""Kinds of the operands on bits; a double is one of them seldom."""
LOGIC = ("AND", "OR", "XOR", "&&", "||")
UNITS = (
    "DAY",
    "MONTH",
    "YEAR",
    "HOUR",
    "MINUTE",
    "SECOND",
    "WEEK",
    "QUARTER",
    "MICROSECOND",
    "YEAR_MONTH",
    "DAY_HOUR",
    "DAY_MINUTE",
    "DAY_SECOND",
    "HOUR_MINUTE",
    "HOUR_SECOND",
    "MINUTE_SECOND",
    "DAY_MICROSECOND",
    "SECOND_MICROSECOND",
)
CAST_TYPES = (
    "SIGNED",
    "UNSIGNED",
    "CHAR",
    "CHAR(3)",
    "BINARY",
    "BINARY(4)",
    "DECIMAL(10,2)",
    "DECIMAL",
    "DECIMAL(5,1)",
    "DATE",
    "DATETIME",
    "DATETIME(3)",
    "TIME",
    "TIME(2)",
    "DOUBLE",
)
MOMENT_FUNCTIONS = frozenset(
    [
        "DATE",
        "TIMESTAMP",
        "TIME",
        "DATEDIFF",
        "WEEK",
        "YEARWEEK",
        "LAST_DAY",
        "TIME_TO_SEC",
        "TIMEDIFF",
        "YEAR",
        "QUARTER",
        "MONTH",
        "DAY",
        "DAYOFMONTH",
        "HOUR",
        "MINUTE",
        "SECOND",
        "MICROSECOND",
        "DAYOFWEEK",
        "WEEKDAY",
        "DAYOFYEAR",
        "WEEKOFYEAR",
        "DAYNAME",
        "MONTHNAME",
        "TO_DAYS",
        "DATE_FORMAT",
        "TIME_FORMAT",
        "UNIX_TIMESTAMP",
        "ADDTIME",
        "SUBTIME",
        "TO_SECONDS",
    ]
)
"""Functions whose text is a date or a time."""
FORMATS = (
    "'%Y-%m-%d'",
    "'%H:%i:%s'",
    "'%W %M %e %Y'",
    "'%j %U %u %V %v %w'",
    "'%T.%f'",
    "'%d/%m/%y %h:%i %p'",
    "'%D %b %c %k %l'",
    "'%X %x %r'",
)
NOT_COMPARED = frozenset(
    [
        "NOW",
        "CURDATE",
        "CURTIME",
        "SYSDATE",
        "UTC_DATE",
        "UTC_TIME",
        "UTC_TIMESTAMP",
        "UNIX_TIMESTAMP",
        "RAND",
        "SLEEP",
        "UUID",
        "VERSION",
        "USER",
        "SESSION_USER",
        "SYSTEM_USER",
        "CONNECTION_ID",
        "DATABASE",
        "SCHEMA",
        "LAST_INSERT_ID",
        "ROW_COUNT",
        "FOUND_ROWS",
        "VALUES",
        "LOAD_FILE",
        "GET_LOCK",
        "RELEASE_LOCK",
        "BENCHMARK",
        "ANY_VALUE",
        "REGEXP_LIKE",
        "IS_UUID",
        "JSON_PRETTY",
    ]
)
"""Functions whose value depends on the time, the session or chance, is refused to agents, or that
MariaDB lacks."""
FUNCTIONS = sorted(
    name
    for name in (set(SCALARS) | set(SPECIAL_FUNCTIONS)) - NOT_COMPARED
    if not name.endswith("_LITERAL")
)
_OWN_FORMS = frozenset(
    {
        "DATE_ADD",
        "DATE_SUB",
        "ADDDATE",
        "SUBDATE",
        "TIMESTAMPDIFF",
        "TIMESTAMPADD",
        "STR_TO_DATE",
        "DATE_FORMAT",
        "TIME_FORMAT",
        "IF",
        "IFNULL",
        "COALESCE",
        "NULLIF",
        "ISNULL",
        "GREATEST",
        "LEAST",
        "CONCAT",
        "ROUND",
        "TRUNCATE",
        "FLOOR",
        "CEIL",
        "CEILING",
        "ABS",
        "MOD",
        "INTERVAL",
        "CONVERT_TZ",
    }
)
_OWN_COUNTS = {
    "IF": 3,
    "IFNULL": 2,
    "NULLIF": 2,
    "ISNULL": 1,
    "FLOOR": 1,
    "CEIL": 1,
    "CEILING": 1,
    "ABS": 1,
    "MOD": 2,
    "TRUNCATE": 2,
}


_JSON = ("'[1, 2, 3]'", '\'{"a": {"b": 1}, "c": "x"}\'', "'\"text\"'", "'7'", "'null'")
_JSON_PATHS = ("'$[0]'", "'$.a'", "'$.a.b'", "'$.c'", "'$'")


_JSON_FORMS = {
    **dict.fromkeys(("JSON_SET", "JSON_INSERT", "JSON_REPLACE"), "({d}, {p}, {c})"),
    **dict.fromkeys(("JSON_KEYS", "JSON_DEPTH", "JSON_TYPE"), "({d})"),
    **dict.fromkeys(("JSON_MERGE", "JSON_MERGE_PATCH", "JSON_MERGE_PRESERVE"), "({d}, {e})"),
    "JSON_ARRAY_APPEND": "({d}, '$', {c})",
    "JSON_ARRAY_INSERT": "({d}, '$[1]', {c})",
    "JSON_CONTAINS": "({d}, {e})",
    "JSON_CONTAINS_PATH": "({d}, 'one', {p})",
    "JSON_OVERLAPS": "({d}, {e})",
    "JSON_REMOVE": "({d}, '$.a')",
    "JSON_SEARCH": "({d}, 'all', 'x%')",
}
"""The arguments of functions of documents: documents d and e, a path p, a value c."""


def split_call(text: str) -> tuple[list[str], str]:
    """Return the arguments of a call and the text behind it, from the text behind its bracket."""
    found, depth, quoted, start = [], 0, False, 0
    for n, char in enumerate(text):
        quoted ^= char == "'"
        depth += 0 if quoted else (char == "(") - (char == ")")
        if not quoted and (depth < 0 or (char == "," and not depth)):
            found.append(text[start:n].strip())
            start = n + 1
            if depth < 0:
                break
    return found, text[start:]


class Expressions:
    """Makes random expressions over columns, which ``columns`` gives by kind."""

    def __init__(self, rng: random.Random, columns: dict[str, tuple[str, ...]] | None = None):
        self.rng = rng
        self.columns = COLUMNS if columns is None else columns
        self._makers: list[tuple[int, Callable[[int], str]]] = [
            (6, self._comparison),
            (6, self._arithmetic),
            (2, self._bits),
            (3, self._logic),
            (12, self.call),
            (4, self._cast),
            (3, self._in),
            (2, self._between),
            (3, self._like),
            (2, self._is),
            (4, self._case),
            (3, self._interval),
            (2, self._unary),
            (2, self._form),
        ]

    def column(self, kind: str | None = None) -> str:
        """Return a column, of a kind if one is given."""
        known = [
            name
            for k, names in self.columns.items()
            if kind == k or (kind is None and k != "json")
            for name in names
        ]
        return self.rng.choice(known) if known else self.literal(kind)

    def literal(self, kind: str | None = None) -> str:
        """Return a literal, of a kind if one is given."""
        known = kind if kind in LITERALS else self.rng.choice(sorted(LITERALS))
        return self.rng.choice(LITERALS[known])

    def atom(self, kind: str | None = None) -> str:
        """Return a column or a literal."""
        return self.column(kind) if self.rng.random() < 0.6 else self.literal(kind)

    def value(self, depth: int, kind: str | None = None) -> str:
        """Return an expression of at most that depth."""
        if depth <= 0 or self.rng.random() < 0.25:
            return self.atom(kind)
        weights = [w for w, _ in self._makers]
        (maker,) = self.rng.choices([m for _, m in self._makers], weights)
        return maker(depth - 1)

    def number(self, depth: int) -> str:
        """Return an expression that is mostly a number."""
        kind = self.rng.choice(("int", "int", "unsigned", "decimal", "double", "float", None))
        return self.value(depth if self.rng.random() < 0.5 else 0, kind)

    def moment(self, depth: int) -> str:
        """Return an expression that is mostly a date or a time."""
        kind = self.rng.choice(("date", "datetime", "time", "date", "datetime", None))
        return self.value(depth if self.rng.random() < 0.3 else 0, kind)

    # ------------------------------------------------------------ operators
    def _pair(self, depth: int) -> tuple[str, str]:
        return self.value(depth), self.value(depth)

    def _comparison(self, depth: int) -> str:
        kind = self.rng.choice((None, *LITERALS)) if self.rng.random() < 0.7 else None
        a, b = self.value(depth, kind), self.value(depth, kind)
        return f"({a} {self.rng.choice(COMPARISONS)} {b})"

    def _arithmetic(self, depth: int) -> str:
        a, b = self._pair(depth)
        return f"({a} {self.rng.choice(ARITHMETIC)} {b})"

    def _bits(self, depth: int) -> str:
        a, b = (self.value(depth, self.rng.choice(_WHOLE)) for _ in range(2))
        return f"({a} {self.rng.choice(BITS)} {b})"

    def _logic(self, depth: int) -> str:
        a, b = self._pair(depth)
        return f"({a} {self.rng.choice(LOGIC)} {b})"

    def _unary(self, depth: int) -> str:
        return f"({self.rng.choice(('-', 'NOT ', '! ', '+', '~'))}{self.value(depth)})"

    def _cast(self, depth: int) -> str:
        this, kind = self.value(depth), self.rng.choice(CAST_TYPES)
        if self.rng.random() < 0.2:
            return f"CONVERT({this}, {kind})"
        return f"CAST({this} AS {kind})"

    def _in(self, depth: int) -> str:
        kind = self.rng.choice((None, *LITERALS))
        values = ", ".join(self.value(0, kind) for _ in range(self.rng.randint(1, 3)))
        return f"({self.value(depth, kind)} {self.rng.choice(('', 'NOT '))}IN ({values}))"

    def _between(self, depth: int) -> str:
        kind = self.rng.choice((None, *LITERALS))
        this, a, b = (self.value(depth, kind), self.atom(kind), self.atom(kind))
        return f"({this} {self.rng.choice(('', 'NOT '))}BETWEEN {a} AND {b})"

    def _like(self, depth: int) -> str:
        word = self.rng.choice(("LIKE", "NOT LIKE", "LIKE", "REGEXP", "RLIKE"))
        patterns = ("'a%'", "'%n'", "'_b%'", "'%1%'", "'50\\%'", "'A__'", "'%'")
        if "LIKE" not in word.replace("RLIKE", ""):
            patterns = ("'^a'", "'n+$'", "'[0-9]'", "'b|o'", "'^$'", "'.'", "'A'")
        return f"({self.value(depth, 'text')} {word} {self.rng.choice(patterns)})"

    def _is(self, depth: int) -> str:
        what = self.rng.choice(("NULL", "NOT NULL", "TRUE", "FALSE", "NOT TRUE", "UNKNOWN"))
        return f"({self.value(depth)} IS {what})"

    def _case(self, depth: int) -> str:
        yes, no = self._pair(depth)
        if self.rng.random() < 0.5:
            return f"CASE {self.value(depth)} WHEN {self.atom()} THEN {yes} ELSE {no} END"
        last = f" ELSE {no}" if self.rng.random() < 0.7 else ""
        return f"CASE WHEN {self.value(depth)} THEN {yes}{last} END"

    def _interval(self, depth: int) -> str:
        size = self.rng.choice(("1", "-1", "2", "'1'", "1.5", "'1:2'", "'1 2'", "i", "100"))
        text = f"INTERVAL {size} {self.rng.choice(UNITS)}"
        this = self.moment(depth)
        return f"({this} {self.rng.choice('+-')} {text})"

    # ------------------------------------------------------------ functions
    def call(self, depth: int, name: str | None = None) -> str:
        """Return a call of a function, or of the function of that name."""
        name = name or self.rng.choice(FUNCTIONS)
        if name in _OWN_FORMS:
            return self._own_call(name, depth)
        if name in _JSON_FORMS:
            return self._json_call(name, self.value(depth))
        known = SCALARS.get(name)
        parameters: tuple[Argument, ...] = known.arguments if known is not None else ()
        if not parameters:
            return f"{name}()" if known is not None else f"{name}({self.value(depth)})"
        args: list[str] = []
        for parameter in parameters:
            absent = name.startswith("REGEXP_") or self.rng.random() < 0.5
            if parameter.optional and absent:  # MariaDB's REGEXP_INSTR has two arguments
                break
            for _ in range(self.rng.randint(1, 3) if parameter.repeated else 1):
                args.append(self._argument(name, parameter, depth, len(args)))
        return f"{name}({', '.join(args)})"

    def call_with(self, name: str, column: str) -> str:
        """Return a call of a function with a column as its first argument, or behind the unit as
        its last."""
        if name in _JSON_FORMS:
            return self._json_call(name, column)
        text = self.call(0, name)
        args, _ = split_call(text[len(name) + 1 :])
        at = -1 if name in ("TIMESTAMPADD", "TIMESTAMPDIFF") else 0
        args[at : (at + 1) or None] = [column]
        return f"{name}({', '.join(args)})" if text[len(name) + 1 : -1] else text

    def _json_call(self, name: str, value: str) -> str:
        d, e = (self.rng.choice(("js", *_JSON)) for _ in range(2))
        path = self.rng.choice(_JSON_PATHS)
        return name + _JSON_FORMS[name].format(d=d, e=e, p=path, c=value)

    def _argument(self, name: str, parameter: Argument, depth: int, first: int) -> str:
        if name == "FORMAT" and parameter.optional:
            return self.rng.choice(("'en_US'", "'de_DE'", "'en_GB'"))
        if name.startswith("REGEXP_") and self.rng.random() < 0.5:
            return self.rng.choice(("'a'", "'n+'", "'[0-9]'", "'b|o'", "'.'"))
        if name.startswith("PERIOD_") and self.rng.random() < 0.8:
            periods = ("202001", "199912", "9912", "7001", "'202006'", "200002.4")
            return self.rng.choice(periods if not first or name == "PERIOD_DIFF" else ("1", "-13"))
        if name.startswith("JSON_"):
            return self.rng.choice(_JSON_PATHS if first > 0 else _JSON)
        if self.rng.random() < 0.15:
            return self.value(depth)
        if name in MOMENT_FUNCTIONS and parameter.kind not in ("number", "integer"):
            return self.moment(depth)
        if parameter.kind in ("number", "integer"):
            if name in (
                "LEFT",
                "RIGHT",
                "LPAD",
                "RPAD",
                "REPEAT",
                "MID",
                "SUBSTRING_INDEX",
                "ELT",
                "INSERT",
                "WEEK",
                "YEARWEEK",
                "SPACE",
                "LOCATE",
                "FORMAT",
            ):
                return self.rng.choice(("0", "1", "2", "3", "-1", "5", "i", "2.6"))
            return self.number(depth)
        return self.value(depth if self.rng.random() < 0.5 else 0, "text")

    def _own_call(self, name: str, depth: int) -> str:
        if name in ("DATE_ADD", "DATE_SUB", "ADDDATE", "SUBDATE"):
            size = self.rng.choice(("1", "-1", "31", "'1'", "1.5", "'1:2'", "i"))
            if name in ("ADDDATE", "SUBDATE") and self.rng.random() < 0.3:
                return f"{name}({self.moment(depth)}, {size})"
            unit = self.rng.choice(UNITS)
            return f"{name}({self.moment(depth)}, INTERVAL {size} {unit})"
        if name in ("TIMESTAMPDIFF", "TIMESTAMPADD"):
            first = self.moment(depth) if name == "TIMESTAMPDIFF" else self.number(0)
            return f"{name}({self.rng.choice(UNITS[:9])}, {first}, {self.moment(depth)})"
        if name == "STR_TO_DATE":
            text = self.rng.choice(
                (
                    "'2020-06-15'",
                    "'15/06/2020'",
                    "'10:11:12'",
                    "'x'",
                    "v",
                    "'June 5, 2020'",
                    "'2020-06-15 12:30:45'",
                )
            )
            forms = ("'%Y-%m-%d'", "'%d/%m/%Y'", "'%H:%i:%s'", "'%M %e, %Y'", "'%Y-%m-%d %T'")
            return f"STR_TO_DATE({text}, {self.rng.choice(forms)})"
        if name == "DATE_FORMAT":
            return f"{name}({self.moment(depth)}, {self.rng.choice(FORMATS)})"
        if name == "TIME_FORMAT":
            clocks = ("'%H:%i:%s'", "'%h %i %p'", "'%k-%l'", "'%T.%f'", "'%r'")
            return f"{name}({self.moment(depth)}, {self.rng.choice(clocks)})"
        if name == "INTERVAL":
            return f"{name}({self.number(depth)}, 1, 10.5)"
        if name == "CONVERT_TZ":
            return f"{name}({self.moment(depth)}, '+00:00', '-05:30')"
        if name == "ROUND" or name == "TRUNCATE":
            digits = self.rng.choice(("0", "1", "2", "-1", "3", "i"))
            alone = name == "ROUND" and self.rng.random() < 0.4
            return f"{name}({self.number(depth)}{'' if alone else ', ' + digits})"
        if name in ("FLOOR", "CEIL", "CEILING", "ABS"):
            return f"{name}({self.number(depth)})"
        if name == "MOD":
            return f"MOD({self.number(depth)}, {self.number(depth)})"
        count = _OWN_COUNTS.get(name) or self.rng.randint(2, 3)
        kind = self.rng.choice((None, *LITERALS)) if name in ("GREATEST", "LEAST") else None
        return f"{name}({', '.join(self.value(depth, kind) for _ in range(count))})"

    def _form(self, depth: int) -> str:
        """Return a call with syntax of its own."""
        this, kind = self.value(depth, "text"), self.rng.randrange(6)
        if kind == 0:
            side = self.rng.choice(("LEADING", "TRAILING", "BOTH"))
            return f"TRIM({side} {self.rng.choice(LITERALS['text'])} FROM {this})"
        if kind == 1:
            return f"EXTRACT({self.rng.choice(UNITS)} FROM {self.moment(depth)})"
        if kind == 2:
            start, size = self.rng.choice(("1", "2", "-2", "0", "i")), self.rng.randint(0, 3)
            return f"SUBSTRING({this}, {start}, {size})"
        if kind == 3:
            return f"POSITION({self.rng.choice(LITERALS['text'])} IN {this})"
        if kind == 4:
            return f"CHAR({self.rng.choice(('65', '65, 66', '256', '0', 'i', '228'))})"
        return f"({this} COLLATE {self.rng.choice(('utf8mb4_bin', 'utf8mb4_general_ci'))})"
