"""Aggregate functions that SQLite lacks."""

from __future__ import annotations

import math
from typing import Any

from intercode_sql.embedded.catalog.collations import collation_key
from intercode_sql.embedded.catalog.types import BITS, DOUBLE, STRING, Collation
from intercode_sql.embedded.functions.numeric import signed
from intercode_sql.embedded.functions.registry import aggregate

GROUP_CONCAT_MAX_BYTES = 1024
"""group_concat_max_len at the start of a session: MySQL cuts longer results."""
_MAX_CHARACTERS = 4 << 20


class _VarianceAggregate:
    """Computes a variance by Welford's method (Knuth, The Art of Computer Programming 2, 4.2.2).

    ``less`` is what the number of values is lessened by; ``root`` makes it a deviation."""

    less, root = 0, False

    def __init__(self) -> None:
        self.count, self.mean, self.square = 0, 0.0, 0.0

    def step(self, value: Any) -> None:
        if value is None:
            return
        self.count += 1
        gap = value - self.mean
        self.mean += gap / self.count
        self.square += gap * (value - self.mean)

    def finalize(self) -> float | None:
        count = self.count - self.less
        if count <= 0:
            return None
        return math.sqrt(self.square / count) if self.root else self.square / count


@aggregate("VAR_POP", "VARIANCE", returns=DOUBLE)
class VarPop(_VarianceAggregate):
    pass


@aggregate("VAR_SAMP", returns=DOUBLE)
class VarSamp(_VarianceAggregate):
    less = 1


@aggregate("STDDEV_POP", "STDDEV", "STD", returns=DOUBLE)
class StdPop(_VarianceAggregate):
    root = True


@aggregate("STDDEV_SAMP", returns=DOUBLE)
class StdSamp(StdPop):
    less = 1


@aggregate("BIT_AND", returns=BITS)
class BitAnd:
    def __init__(self) -> None:
        self.value = (1 << 64) - 1

    def step(self, value: Any) -> None:
        self.value &= self.value if value is None else value

    def finalize(self) -> int:
        return signed(self.value)


@aggregate("BIT_OR", returns=BITS)
class BitOr:
    def __init__(self) -> None:
        self.value = 0

    def step(self, value: Any) -> None:
        self.value |= value or 0

    def finalize(self) -> int:
        return signed(self.value)


@aggregate("BIT_XOR", returns=BITS)
class BitXor(BitOr):
    def step(self, value: Any) -> None:
        self.value ^= value or 0


@aggregate("GROUP_CONCAT", returns=STRING)
class GroupConcat:
    """Takes value, separator, distinct, directions, collation, group_concat_max_len, and the keys
    to order by."""

    def __init__(self) -> None:
        self.items: list[tuple[tuple[Any, ...], str | bytes]] = []
        self.seen: set[str | bytes] = set()
        self.size = 0
        self.glue, self.ways, self.limit = ",", "", GROUP_CONCAT_MAX_BYTES

    def step(
        self,
        value: Any,
        glue: str,
        distinct: int,
        ways: str,
        collation: Collation,
        limit: int,
        *keys: Any,
    ) -> None:
        self.glue, self.ways, self.limit = glue, ways, limit
        if value is None:
            return
        text = value if isinstance(value, bytes) else str(value)
        if distinct:
            same = text if isinstance(text, bytes) else collation_key(text, collation)
            if same in self.seen:
                return
            self.seen.add(same)
        if not ways and self.size > limit:
            return
        self.size += len(text)
        if self.size > _MAX_CHARACTERS:
            raise MemoryError("GROUP_CONCAT holds too much")
        self.items.append((keys, text))

    def finalize(self) -> str | bytes | None:
        if not self.items:
            return None
        for i in reversed(range(len(self.ways))):
            self.items.sort(
                key=lambda item: (item[0][i] is not None, item[0][i]),
                reverse=self.ways[i] == "d",
            )
        parts = [t if isinstance(t, bytes) else t.encode() for _, t in self.items]
        cut = self.glue.encode().join(parts)[: self.limit]
        return cut if isinstance(self.items[0][1], bytes) else cut.decode("utf-8", "ignore")
