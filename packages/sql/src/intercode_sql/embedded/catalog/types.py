"""The properties of MySQL's types on which results and comparisons depend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from intercode_sql.dialect.errors import unsupported

TypeKind = Literal[
    "null",
    "int",
    "decimal",
    "float",
    "double",
    "string",
    "date",
    "datetime",
    "time",
    "year",
    "json",
    "bytes",
]
Collation = Literal["general", "uca", "bin", "swedish"]

NUMERIC_KINDS = frozenset({"int", "decimal", "float", "double", "year"})
TEMPORAL_KINDS = frozenset({"date", "datetime", "time"})
EXACT_KINDS = frozenset({"int", "decimal", "year", "null"})
SCALE_STEP = 4
"""Digits that a division adds to the scale of its dividend (div_precision_increment)."""
MAX_SCALE = 30
MAX_PRECISION = 65
MIN_TEXT = 65_535
"""Characters of a TEXT."""


@dataclass(frozen=True, slots=True)
class Type:
    """The type of an expression's values.

    ``precision`` is the number of digits of a decimal or of characters of a string (0: unknown).
    ``scale`` is the number of digits after the point, or None for a double with as many as it
    needs. ``plain`` is 1 if SQLite's NOCASE considers the same strings equal as the collation does,
    and 2 if it also orders them alike. ``words`` are the words of an ENUM, in MySQL's sort order.
    ``strong`` marks the collation of a column, which takes precedence over that of a literal,
    ``explicit`` that of COLLATE, which takes it over both.
    ``charset`` is the character set of a string if it is not utf8mb4. ``members`` are the words of
    a SET. ``bits`` is the number of those of a BIT, which is a number, and as a string its bytes.
    ``wrapped`` marks unsigned integers of which SQLite holds those above 63 bits as negative ones.
    ``fixed`` marks a column whose values all have the width of its declaration: CHAR, BINARY and
    the integers. ``dated`` marks the texts of dates that have the numbers of dates, ``typed``
    documents with values of types that their texts do not show: decimals, dates and times.
    """

    kind: TypeKind
    precision: int = 0
    scale: int | None = 0
    unsigned: bool = False
    collation: Collation = "uca"
    plain: int = 0
    strong: bool = False
    nullable: bool = True
    words: tuple[str, ...] = ()
    charset: str = field(default="", repr=False)
    members: tuple[str, ...] = field(default=(), repr=False)
    bits: int = field(default=0, repr=False)
    wrapped: bool = field(default=False, repr=False)
    fixed: bool = field(default=False, repr=False, compare=False)
    dated: bool = field(default=False, repr=False)
    typed: bool = field(default=False, repr=False, compare=False)
    explicit: bool = field(default=False, repr=False)

    @property
    def binary(self) -> bool:
        """Whether the values are byte strings."""
        return self.kind == "bytes"

    @property
    def number(self) -> bool:
        return self.kind in NUMERIC_KINDS

    @property
    def ranked(self) -> bool:
        """Whether the values are words of an ENUM or a SET, which are numbers, too."""
        return bool(self.words or self.members)

    def rank(self, text: str) -> int:
        """Return the number of the words of an ENUM or a SET."""
        if self.words:
            return self.words.index(text) + 1 if text in self.words else 0
        return set_number(text, self.members)

    @property
    def size(self) -> int:
        """The characters of a value, with the digits of a second."""
        return self.precision + (self.scale + 1 if self.moment and self.scale else 0)

    @property
    def moment(self) -> bool:
        return self.kind in TEMPORAL_KINDS

    @property
    def text(self) -> bool:
        return self.kind in ("string", "json", "bytes")

    @property
    def long(self) -> bool:
        """Whether it is the type of a column of TEXT or BLOB."""
        return self.strong and (self.precision >= MIN_TEXT or (self.binary and not self.precision))

    @property
    def text_level(self) -> int:
        """The ``plain`` of its values as texts. Colons are before digits in ``uca``."""
        if self.kind == "string":
            return self.plain
        return {"json": 0, "bytes": 0, "datetime": 1, "time": 1}.get(self.kind, 2)

    def as_nullable(self) -> Type:
        """Return the same type with NULL among its values."""
        return self if self.nullable else replace(self, nullable=True)

    def as_stored(self) -> Type:
        """Return the type of the same values in a row, where the text of a date is only text."""
        return replace(self, dated=False) if self.dated else self


def set_number(text: str, members: Sequence[str]) -> int:
    """Return the number of a SET's value: the first word counts 1, each later one twice the one
    before."""
    given = text.split(",")
    return sum(1 << n for n, word in enumerate(members) if word in given)


def tuples(value: Any) -> Any:
    """Return a value that JSON has held with tuples in place of lists."""
    if isinstance(value, dict):
        return {name: tuples(part) for name, part in value.items()}
    return tuple(map(tuples, value)) if isinstance(value, list) else value


NULL = Type("null")
INT = Type("int", 20)
UNSIGNED_INT = Type("int", 10, unsigned=True)
UNSIGNED_BIGINT = Type("int", 20, unsigned=True)
BITS = Type("int", 20, unsigned=True, wrapped=True)
"""The result of an operator on bits."""
BOOL = Type("int", 1)
NOT_NULL_BOOL = Type("int", 1, nullable=False)
DOUBLE = Type("double", 22, None)
STRING = Type("string")
ASCII_STRING = Type("string", plain=2)
PUNCTUATED = Type("string", plain=1)
"""Printable ASCII without spaces at its end."""
DATE = Type("date", 10)
DATETIME = Type("datetime", 19)
TIME = Type("time", 10)
JSON = Type("json", collation="bin")
JSON_TEXT = Type("string", collation="bin")
"""A text of a JSON document."""
JSON_COLUMN = replace(JSON_TEXT, strong=True)
BYTES = Type("bytes", collation="bin")


def decimal(precision: int, scale: int) -> Type:
    """Return a DECIMAL type within MySQL's limits."""
    scale = min(scale, MAX_SCALE)
    return Type("decimal", min(max(precision, scale, 1), MAX_PRECISION), scale)


def integer_digits(kind: Type) -> int:
    """Return the number of digits before the point of an exact number."""
    if kind.kind in ("int", "year"):
        return kind.precision or 10
    return max(0, kind.precision - (kind.scale or 0))


def is_exact(*kinds: Type) -> bool:
    """Return whether arithmetic over these types is exact in MySQL."""
    return all(k.kind in EXACT_KINDS for k in kinds)


def merge_types(*kinds: Type) -> Type:
    """Return the type of a CASE, COALESCE or UNION over values of these types."""
    known = [k for k in kinds if k.kind != "null"]
    if not known:
        return NULL
    nullable = len(known) < len(kinds) or any(k.nullable for k in known)
    typed = any(k.typed for k in known)
    return replace(_merge_kinds(known), nullable=nullable, typed=typed)


def _merge_kinds(known: list[Type]) -> Type:
    names = {k.kind for k in known}
    known = [replace(k, words=(), members=()) if k.ranked else k for k in known]
    if len(set(known)) == 1:
        return known[0]
    if all(k.bits for k in known):
        return max(known, key=lambda k: k.bits)
    exact = "decimal" in names
    if names <= NUMERIC_KINDS:  # BIT is like BIGINT UNSIGNED, beside a DECIMAL of its own digits
        known = [
            replace(INT, unsigned=True, precision=min(k.bits, 10) if exact else INT.precision)
            if k.bits
            else k
            for k in known
        ]
    elif any(k.bits for k in known):
        return replace(BYTES, strong=True, precision=max(1, *(4 * k.precision for k in known)))
    if names <= {"int", "year"} and _needs_65_bits(known):
        return decimal(20, 0)
    if names <= {"int", "year"}:
        return replace(INT, precision=max(k.precision for k in known))
    if names <= {"int", "decimal", "year"}:
        scale = max(k.scale or 0 for k in known)
        return decimal(max(integer_digits(k) for k in known) + scale, scale)
    if names <= NUMERIC_KINDS:
        scales = [k.scale for k in known]
        fixed = None if None in scales else max(s for s in scales if s is not None)
        return replace(DOUBLE, scale=fixed)
    if names == {"json"}:
        return JSON
    if len(names) == 1 and not known[0].text:
        return max(known, key=lambda k: k.scale or 0)
    if names <= {"date", "datetime", "time"}:
        return replace(DATETIME, scale=max(k.scale or 0 for k in known))
    kind = concatenation_type(*known)
    if kind.binary and any(k.binary and k.fixed for k in known):  # BINARY of a width of all of them
        wide = all(k.fixed or k.number or k.moment for k in known)
        return replace(kind, fixed=wide, precision=0 if wide else kind.precision)
    return kind


def _needs_65_bits(kinds: list[Type]) -> bool:
    """Return whether signed integers are among unsigned ones of 64 bits."""
    return any(k.unsigned and k.precision >= 20 for k in kinds) and any(
        not k.unsigned and k.kind == "int" for k in kinds
    )


def decisive(texts: Sequence[Type]) -> list[Type]:
    """Return those of the types of strings whose collations decide, none if all are literals.

    Raises StatementError for two that COLLATE names, which MySQL does not mix.
    """
    explicit = [k for k in texts if k.explicit]
    if len({k.collation for k in explicit}) > 1:
        raise unsupported("the error of an illegal mix of collations")
    strong = explicit or [k for k in texts if k.strong]
    return [k for k in strong if not k.charset] or strong  # Unicode comes before latin1


def concatenation_type(*kinds: Type) -> Type:
    """Return the type of a concatenation of values of these types. It is a byte string if one of
    them is, but constant bytes take the character set of a column of text."""
    texts = [JSON_COLUMN if k.kind == "json" else k for k in kinds if k.kind in ("string", "json")]
    strong = decisive(texts)
    binary = [k for k in kinds if k.binary]
    explicit = any(k.explicit for k in strong)
    size = sum(k.size for k in kinds) if all(k.precision for k in kinds) else 0
    if binary and not explicit and (not strong or any(k.strong for k in binary)):
        return replace(BYTES, precision=size, strong=any(k.strong for k in binary))
    used = strong or texts or [STRING]
    collation = "bin" if any(k.collation == "bin" for k in used) else used[0].collation
    charset = used[0].charset if len({k.charset for k in used}) == 1 else ""
    plain = min((k.text_level for k in kinds), default=2)
    kind = Type("string", size, collation=collation, plain=plain, strong=used[0].strong)
    if used[0].explicit:
        kind = replace(kind, explicit=True)
    return replace(kind, charset=charset) if charset else kind
