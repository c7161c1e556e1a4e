"""Imports OpenEnv without Gradio.

OpenEnv's servers and clients import Gradio for a web page, which takes seconds and more memory than
everything else. This package serves no page.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_WEB_INTERFACE_VARIABLE = "ENABLE_WEB_INTERFACE"
"""OpenEnv's environment variable that enables the page."""


class _StubModule(ModuleType):
    """Stands in for a module while others import names from it and call them."""

    def __getattr__(self, name: str) -> _StubModule:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StubModule(f"{self.__name__}.{name}")

    def __call__(self, *_: Any, **__: Any) -> _StubModule:
        return self


@contextmanager
def without_gradio() -> Iterator[None]:
    """Replace Gradio by a stub during imports, unless it is loaded already or the page is
    enabled."""
    if "gradio" in sys.modules or os.environ.get(_WEB_INTERFACE_VARIABLE):
        yield
        return
    sys.modules["gradio"] = _StubModule("gradio")
    try:
        yield
    finally:
        del sys.modules["gradio"]
