"""The values of AUTO_INCREMENT, in the intervals in which InnoDB reserves them."""

from __future__ import annotations

from typing import Any

from intercode_sql.embedded.catalog.catalog import Table


class Counter:
    """The counter of a table during one INSERT.

    ``rows`` is the number of rows that the statement gives, or 0 if it is unknown: the first
    interval has so many values, each later one twice as many as the one before. ``next`` is the
    value after all that were reserved or given, also by rows that were not written.
    """

    def __init__(self, table: Table, rows: int, keeps_zero: bool) -> None:
        auto = next((c for c in table.columns if c.auto), None)
        self.column = None if auto is None or table.auto_increment is None else auto.name
        self.next = table.auto_increment
        self._rows, self._keeps_zero = rows, keeps_zero
        self._value, self._end, self._intervals = 0, 0, 0

    def assign(self, row: dict[str, Any]) -> int | None:
        """Give a row its value if it has none. Return the value, or None if the row has one."""
        if self.column is None or self.next is None:
            return None
        value = row[self.column]
        if value is not None and (value != 0 or self._keeps_zero):
            return None
        if self._value >= self._end:
            size = self._rows if self._rows and not self._intervals else 1 << self._intervals
            self._value = self.next
            self.next = self._end = self._value + size
            self._intervals += 1
        row[self.column] = self._value
        self._value += 1
        return self._value - 1

    def give_back(self) -> None:
        """Take back the last value that a row was given."""
        self._value -= 1

    def written(self, row: dict[str, Any]) -> None:
        """Note the value of a row that was written."""
        if self.column is None or self.next is None:
            return
        value = int(row[self.column] or 0)
        self.next = max(self.next, value + 1)
        if self._intervals and value >= self._value:
            self._value = value + 1
