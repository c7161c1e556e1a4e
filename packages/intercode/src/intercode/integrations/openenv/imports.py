"""Imports OpenEnv without Gradio.

OpenEnv's servers import Gradio for a web page. That takes seconds, and more memory than
all other imports together. This package does not serve the page.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_WEB_INTERFACE_VARIABLE = "ENABLE_WEB_INTERFACE"
"""The environment variable that enables OpenEnv's web page."""


class _StubModule(ModuleType):
    """A placeholder for a module: any attribute exists, and calling it has no effect."""

    def __getattr__(self, name: str) -> _StubModule:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StubModule(f"{self.__name__}.{name}")

    def __call__(self, *_: Any, **__: Any) -> _StubModule:
        return self


@contextmanager
def without_gradio() -> Iterator[None]:
    """Replace Gradio with a stub module during imports.

    Does nothing if Gradio is already imported, or if the web page is enabled.
    """
    if "gradio" in sys.modules or os.environ.get(_WEB_INTERFACE_VARIABLE):
        yield
        return
    sys.modules["gradio"] = _StubModule("gradio")
    try:
        yield
    finally:
        del sys.modules["gradio"]
