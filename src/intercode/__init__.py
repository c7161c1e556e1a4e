"""InterCode: interactive coding with execution feedback."""

from __future__ import annotations

__version__ = "0.1.0"
