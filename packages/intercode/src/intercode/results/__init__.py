"""Results of recorded episodes: statistics, reports, comparisons, exports and the viewer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercode_sandbox.lazy import lazy_imports

if TYPE_CHECKING:
    from intercode.results.run import Run, load_run
    from intercode.results.statistics import figures

__all__ = ["Run", "figures", "load_run"]

__getattr__ = lazy_imports(
    __name__,
    {"Run": ".run", "figures": ".statistics.figures", "load_run": ".run"},
)
