"""SWE-bench: rows in its layout as an environment, whose hidden tests score the change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercode_sandbox.lazy import lazy_imports

if TYPE_CHECKING:
    from intercode.integrations.swe_bench.env import SweBenchEnv

__all__ = ["SweBenchEnv"]

__getattr__ = lazy_imports(__name__, {"SweBenchEnv": ".env"})
