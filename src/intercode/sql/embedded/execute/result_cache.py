"""Results of queries on pristine data, which do not change: what was asked once is told again.

A gold is executed for every episode of its task, mostly right after the agent said the same.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from intercode.core.types import ExecResult
from intercode.sql.base import SqlLimits

MAX_TOTAL_CHARACTERS = 32 << 20
"""Characters of output that all results may have together."""
MAX_RESULT_CHARACTERS = 256 << 10
"""Characters of output that one may have; a larger one is worked out anew."""


class ResultCache:
    """The results that were asked for last, within bounds. For several threads."""

    def __init__(self) -> None:
        self._results: OrderedDict[tuple[Any, ...], ExecResult] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def find(self, key: tuple[Any, ...], limits: SqlLimits) -> ExecResult | None:
        """The result of a query under these limits, if it is kept."""
        with self._lock:
            found = self._results.get((limits, *key))
            if found is not None:
                self._results.move_to_end((limits, *key))
            return found

    def add(self, key: tuple[Any, ...], limits: SqlLimits, result: ExecResult) -> None:
        """Keep a result; the oldest make room."""
        size = len(result.output)
        if size > MAX_RESULT_CHARACTERS:
            return
        with self._lock:
            if (limits, *key) in self._results:
                return
            self._results[(limits, *key)] = result
            self._size += size
            while self._size > MAX_TOTAL_CHARACTERS:
                _, gone = self._results.popitem(last=False)
                self._size -= len(gone.output)
