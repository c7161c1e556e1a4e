"""Functions whose arguments or types follow rules of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from intercode.sql.dialect.errors import denied, fault, unable
from intercode.sql.embedded.catalog.collations import collate
from intercode.sql.embedded.catalog.types import (
    BOOL,
    DATE,
    DATETIME,
    DOUBLE,
    INT,
    STRING,
    TIME,
    decimal,
    digits,
    joined,
    merged,
)
from intercode.sql.embedded.compile.arithmetic import Maker, concatenated, remainder, shifted
from intercode.sql.embedded.compile.comparisons import compared
from intercode.sql.embedded.compile.conversions import (
    as_number,
    as_text,
    constant,
    converted,
    quoted,
)
from intercode.sql.embedded.compile.scope import Ex, Scope

Args = list[exp.Expr]


def _made(name: str, args: Args, scope: Scope, make: Maker, low: int, high: int) -> list[Ex]:
    if not low <= len(args) <= high:
        raise fault(1582, name)
    out = [make(a, scope) for a in args]
    if any(o.columns for o in out):
        raise fault(1241, 1)
    return out


def _truth(ex: Ex) -> str:
    return as_number(ex).sql if not ex.type.number else ex.sql


def _if(name: str, args: Args, scope: Scope, make: Maker) -> Ex:
    test, yes, no = _made(name, args, scope, make, 3, 3)
    kind = merged(yes.type, no.type)
    a, b = converted(yes, kind), converted(no, kind)
    return Ex(f"(CASE WHEN {_truth(test)} THEN {a.sql} ELSE {b.sql} END)", kind)


def _coalesce(name: str, args: Args, scope: Scope, make: Maker) -> Ex:
    made = _made(
        name, args, scope, make, 2 if name == "IFNULL" else 1, 2 if name == "IFNULL" else 99
    )
    kind = merged(*(m.type for m in made))
    kind = replace(kind, nullable=all(m.type.nullable for m in made))
    if len(made) == 1:
        return made[0]
    return Ex(f"COALESCE({', '.join(converted(m, kind).sql for m in made)})", kind)


def _nullif(name: str, args: Args, scope: Scope, make: Maker) -> Ex:
    a, b = _made(name, args, scope, make, 2, 2)
    same = compared("=", a, b).sql
    return Ex(f"(CASE WHEN {same} THEN NULL ELSE {a.sql} END)", a.type.maybe())


def _isnull(name: str, args: Args, scope: Scope, make: Maker) -> Ex:
    (a,) = _made(name, args, scope, make, 1, 1)
    return Ex(f"({a.sql} IS NULL)", replace(BOOL, nullable=False))


def _extreme(name: str, args: Args, scope: Scope, make: Maker) -> Ex:
    made = _made(name, args, scope, make, 2, 99)
    kind = merged(*(m.type for m in made))
    word = "MAX" if name == "GREATEST" else "MIN"
    parts = [converted(m, kind).sql for m in made]
    clause = collate(True, kind) if kind.kind == "string" else ""
    return Ex(f"{word}({parts[0]}{clause}, {', '.join(parts[1:])})", kind)


def _concat(name: str, args: Args, scope: Scope, make: Maker) -> Ex:
    return concatenated(_made(name, args, scope, make, 1, 999))


def _round(name: str, args: Args, scope: Scope, make: Maker) -> Ex:
    made = [as_number(m) for m in _made(name, args, scope, make, 1, 2)]
    number = made[0]
    if name == "TRUNCATE" and len(made) == 1:
        raise fault(1582, name)
    places = made[1] if len(made) > 1 else constant(0)
    kind = number.type
    exact = kind.kind in ("int", "decimal", "year")
    sql = f"mysql_{name.lower()}({number.sql}, {places.sql}, {int(exact)})"
    if kind.kind in ("int", "year"):
        return Ex(f"CAST({sql} AS INTEGER)", replace(INT, nullable=True))
    known = places.literal if isinstance(places.literal, int) else None
    if not exact:
        fixed = None if known is None else max(0, min(known, 30))
        fixed = fixed if kind.scale is not None or fixed == 0 else None
        return Ex(sql, replace(DOUBLE, scale=fixed))
    scale = kind.scale or 0
    if known is not None:
        scale = max(0, min(known, scale if name == "TRUNCATE" else max(scale, 0)))
        scale = min(max(known, 0), max(kind.scale or 0, 0))
    return Ex(sql, replace(decimal(digits(kind) + 1 + scale, scale), nullable=True))


def whole(name: str, args: Args, scope: Scope, make: Maker) -> Ex:
    """FLOOR and CEILING."""
    (a,) = _made(name, args, scope, make, 1, 1)
    number = as_number(a)
    word = "floor" if name == "FLOOR" else "ceiling"
    if number.type.kind in ("int", "year"):
        return number
    sql = f"mysql_{word}({number.sql})"
    exact = number.type.kind == "decimal"
    return Ex(f"CAST({sql} AS INTEGER)", INT) if exact else Ex(sql, replace(DOUBLE, scale=0))


def _abs(name: str, args: Args, scope: Scope, make: Maker) -> Ex:
    (a,) = _made(name, args, scope, make, 1, 1)
    number = as_number(a)
    return Ex(f"ABS({number.sql})", number.type)


def _mod(name: str, args: Args, scope: Scope, make: Maker) -> Ex:
    a, b = _made(name, args, scope, make, 2, 2)
    return remainder(as_number(a), as_number(b))


def now(name: str, args: Args, scope: Scope, make: Maker) -> Ex:
    """Date or time at which the statement began."""
    scope.unit.volatile = True
    moment = scope.unit.now
    if name in ("CURDATE", "UTC_DATE"):
        return Ex(quoted(moment[:10]), DATE)
    if name in ("CURTIME", "UTC_TIME"):
        return Ex(quoted(moment[11:]), TIME)
    return Ex(quoted(moment), DATETIME)


def _date_add(name: str, args: Args, scope: Scope, make: Maker) -> Ex:
    if len(args) != 2:
        raise fault(1582, name)
    interval = args[1]
    if not isinstance(interval, exp.Interval):
        if name in ("DATE_ADD", "DATE_SUB"):
            raise fault(1064, "", 1)
        interval = exp.Interval(this=interval, unit=exp.Var(this="DAY"))
    sign = -1 if name in ("DATE_SUB", "SUBDATE") else 1
    return shifted(make(args[0], scope), interval, sign, scope, make)


def _timestampdiff(name: str, args: Args, scope: Scope, make: Maker) -> Ex:
    if len(args) != 3:
        raise fault(1582, name)
    unit = args[0].name.upper().removeprefix("SQL_TSI_")
    a, b = (as_text(make(x, scope)) for x in args[1:])
    if name == "TIMESTAMPADD":
        kind = DATETIME if make(args[2], scope).type.kind == "datetime" else joined(STRING)
        return Ex(f"mysql_date_add({b.sql}, {a.sql}, '{unit}', 1)", kind)
    return Ex(f"mysql_timestampdiff('{unit}', {a.sql}, {b.sql})", INT)


def _unix(name: str, args: Args, scope: Scope, make: Maker) -> Ex:
    made = _made(name, args, scope, make, 0, 1)
    if not made:
        scope.unit.volatile = True
        return Ex(f"mysql_unix_timestamp({quoted(scope.unit.now)})", INT)
    return Ex(f"mysql_unix_timestamp({as_text(made[0]).sql})", INT)


def _str_to_date(name: str, args: Args, scope: Scope, make: Maker) -> Ex:
    a, b = _made(name, args, scope, make, 2, 2)
    form = b.literal if isinstance(b.literal, str) else "%Y %H"
    clock = any(f"%{c}" in form for c in "HhIiklpRrSsTf")
    day = any(f"%{c}" in form for c in "abcdDeMmUuYyj")
    kind = DATETIME if clock and day else TIME if clock else DATE
    return Ex(f"mysql_str_to_date({as_text(a).sql}, {as_text(b).sql})", kind)


def session(name: str, args: Args, scope: Scope, make: Maker) -> Ex:
    """What a session knows of itself."""
    scope.unit.volatile = True
    value = scope.unit.session.get(name)
    if name in ("DATABASE", "SCHEMA"):
        value = scope.unit.database or None
    return constant(value)


def _any_value(name: str, args: Args, scope: Scope, make: Maker) -> Ex:
    (a,) = _made(name, args, scope, make, 1, 1)
    return a


def _rand(name: str, args: Args, scope: Scope, make: Maker) -> Ex:
    scope.unit.volatile = True
    if args and not isinstance(args[0], exp.Literal):
        raise unable("RAND with a seed that is no constant")
    seed = args[0].name if args else "NULL"
    return Ex(f"mysql_rand({seed})", DOUBLE)


def _sleep(name: str, args: Args, scope: Scope, make: Maker) -> Ex:
    scope.unit.volatile = True
    (a,) = _made(name, args, scope, make, 1, 1)
    return Ex(f"mysql_sleep({as_number(a).sql})", INT)


def _values(name: str, args: Args, scope: Scope, make: Maker) -> Ex:
    raise unable("VALUES() outside ON DUPLICATE KEY UPDATE")


def _denied(name: str, args: Args, scope: Scope, make: Maker) -> Ex:
    raise denied(f"{name}()", "it reaches out of the database")


SPECIAL: dict[str, Callable[[str, Args, Scope, Maker], Ex]] = {
    "IF": _if, "IFNULL": _coalesce, "COALESCE": _coalesce, "NULLIF": _nullif, "ISNULL": _isnull,
    "GREATEST": _extreme, "LEAST": _extreme, "CONCAT": _concat, "ROUND": _round,
    "TRUNCATE": _round, "FLOOR": whole, "CEIL": whole, "CEILING": whole, "ABS": _abs,
    "MOD": _mod, "NOW": now, "CURDATE": now, "CURTIME": now, "SYSDATE": now,
    "UTC_DATE": now, "UTC_TIME": now, "UTC_TIMESTAMP": now, "DATE_ADD": _date_add,
    "DATE_SUB": _date_add, "ADDDATE": _date_add, "SUBDATE": _date_add,
    "TIMESTAMPDIFF": _timestampdiff, "TIMESTAMPADD": _timestampdiff, "UNIX_TIMESTAMP": _unix,
    "STR_TO_DATE": _str_to_date, "DATABASE": session, "SCHEMA": session, "USER": session,
    "SESSION_USER": session, "SYSTEM_USER": session, "VERSION": session,
    "CONNECTION_ID": session, "LAST_INSERT_ID": session, "ROW_COUNT": session,
    "FOUND_ROWS": session, "ANY_VALUE": _any_value, "RAND": _rand, "SLEEP": _sleep,
    "LOAD_FILE": _denied, "GET_LOCK": _denied, "RELEASE_LOCK": _denied, "BENCHMARK": _denied,
    "VALUES": _values,
}  # fmt: skip
