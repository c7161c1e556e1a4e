"""MySQL's collations: ``general`` (utf8mb4_general_ci and similar) and ``uca``
(utf8mb4_0900_ai_ci).

``general`` gives each character one weight, its upper case without accents, and ignores spaces at
the end, as ``bin`` does. ``uca`` uses the primary weights of the Unicode Collation Algorithm: it
ignores some characters, expands others, orders punctuation before digits before letters, and
compares spaces.
Both order scripts other than Latin, Greek and Cyrillic by code point. This affects their order
only, not equality.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Callable

from intercode_sql.embedded.catalog.types import Collation, Type, decisive

COLLATION_NAMES: dict[Collation, str] = {
    "general": "mysql_general",
    "uca": "mysql_uca",
    "bin": "mysql_bin",
    "swedish": "mysql_swedish",
}
EXACT_EQUALITY = " COLLATE RTRIM"
"""The clause for equality of texts in a binary collation: spaces at the end are ignored."""
_UCA_ORDER = "\t\n\x0b\x0c\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789"
_UCA_SPECIAL = {
    "ß": "SS",
    "æ": "AE",
    "Æ": "AE",
    "œ": "OE",
    "Œ": "OE",
    "ø": "O",
    "Ø": "O",
    "ł": "L",
    "Ł": "L",
}
_SWEDISH_SPECIAL = {
    "Å": "[",
    "Ä": "\\",
    "Æ": "\\",
    "Ö": "]",
    "Ü": "Y",
    "Ý": "Y",
    "Ð": "D",
    "Ø": "Ø",
    "ß": "ß",
    "Þ": "Þ",
    "ÿ": "ÿ",
}
_GENERAL_SPECIAL = {"ß": "S", "ẞ": "S"}
_MAX_CACHED_KEYS = 50_000
_PRINTABLE = re.compile(r"[ -~]*\Z")
_GENERAL_NOCASE_ORDER = re.compile(r"[ -Za-~]*\Z")
_UCA_NOCASE_ORDER = re.compile(r"[A-Za-z0-9 .-]*\Z")


class _GeneralWeights(dict[int, str]):
    """Weights of characters, computed on first use."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        base = _GENERAL_SPECIAL.get(char) or unicodedata.normalize("NFD", char)[0]
        upper = base.upper()
        weight = upper if len(upper) == 1 else base
        if ord(weight) > 0xFFFF:
            weight = "\ufffd"
        self[code] = weight
        return weight


class _SwedishWeights(dict[int, str]):
    """Weights of characters in latin1_swedish_ci, where Å, Ä and Ö follow Z."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        upper = char if char in "ßÿ" else char.upper()
        weight = _SWEDISH_SPECIAL.get(upper) or unicodedata.normalize("NFD", upper)[:1]
        self[code] = weight
        return weight


class _UcaWeights(dict[int, str]):
    """Weights of characters: text whose code points are in the order of the algorithm."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        expanded = _UCA_SPECIAL.get(char) or unicodedata.normalize("NFKD", char)
        weight = "".join(self._weight(c) for c in expanded if not unicodedata.combining(c))
        self[code] = weight
        return weight

    @staticmethod
    def _weight(char: str) -> str:
        if char in _UCA_ORDER:
            return chr(1 + _UCA_ORDER.index(char))
        if unicodedata.category(char) in ("Cc", "Cf"):
            return ""
        upper = char.upper()
        return upper if len(upper) == 1 else char


_WEIGHTS: dict[str, dict[int, str]] = {
    "general": _GeneralWeights(),
    "uca": _UcaWeights(),
    "swedish": _SwedishWeights(),
}


def weights(text: str, collation: str) -> str:
    """Return a string's weights. Spaces at the end count in every collation."""
    found = _WEIGHTS.get(collation)
    return text if found is None else text.translate(found)


def collation_key(text: str, collation: str) -> str:
    """Return a key by which strings are compared in a collation, or in ``bytes`` byte strings.

    But for ``uca`` and ``bytes``, strings are compared as if they had equal lengths, filled up with
    spaces, so that the end of one is behind a control character.
    """
    if collation in ("uca", "bytes"):
        return weights(text, collation)
    return weights(text.rstrip(" "), collation) + " "


def nocase_level(text: str, collation: Collation) -> int:
    """Return how far SQLite's NOCASE agrees with the collation on this string (see
    ``Type.plain``)."""
    if collation == "bin":
        return 0
    if not text.isascii() or text[-1:] == " " or not _PRINTABLE.match(text):
        return 0
    alike = _GENERAL_NOCASE_ORDER if collation in ("general", "swedish") else _UCA_NOCASE_ORDER
    return 2 if alike.match(text) else 1


def collate_clause(ordered: bool, *types: Type) -> str:
    """Return the COLLATE clause under which SQLite compares strings of these types as MySQL does.
    ``ordered`` says whether their order matters and not only equality."""
    texts = [t for t in types if t.kind == "string"]
    if not texts:
        return ""
    used = decisive(texts) or texts
    if any(t.collation == "bin" for t in used):
        return " COLLATE mysql_bin" if ordered else EXACT_EQUALITY
    if min(t.plain for t in texts) >= (2 if ordered else 1):
        return " COLLATE NOCASE"
    return f" COLLATE {COLLATION_NAMES[used[0].collation]}"


class _KeyCache(dict[str, str]):
    """A cache of keys. Sorting asks for each key many times."""

    def __init__(self, collation: Collation) -> None:
        super().__init__()
        self._collation = collation

    def __missing__(self, text: str) -> str:
        found = collation_key(text, self._collation)
        if len(text) < 200:
            if len(self) >= _MAX_CACHED_KEYS:
                self.clear()
            self[text] = found
        return found


def _comparator(collation: Collation) -> Callable[[str, str], int]:
    keys = _KeyCache(collation)

    def compare(a: str, b: str) -> int:
        x, y = keys[a], keys[b]
        return 0 if x == y else 1 if x > y else -1

    return compare


_COLLATIONS = {name: _comparator(collation) for collation, name in COLLATION_NAMES.items()}


def register_collations(connection: sqlite3.Connection) -> None:
    """Register the collations with a connection."""
    for name, compare in _COLLATIONS.items():
        connection.create_collation(name, compare)
