"""OpenEnv without its web page: every server and client of OpenEnv's imports Gradio for it, which
takes seconds and more memory than the rest. We serve no page, so nothing of Gradio's is called."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_WEB_INTERFACE_VARIABLE = "ENABLE_WEB_INTERFACE"
"""OpenEnv's variable that asks for the page."""


class _StubModule(ModuleType):
    """Stands for a module while others take names from it and call them."""

    def __getattr__(self, name: str) -> _StubModule:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StubModule(f"{self.__name__}.{name}")

    def __call__(self, *_: Any, **__: Any) -> _StubModule:
        return self


@contextmanager
def without_gradio() -> Iterator[None]:
    """Within, imports get no Gradio, unless it is there already or the page is asked for."""
    if "gradio" in sys.modules or os.environ.get(_WEB_INTERFACE_VARIABLE):
        yield
        return
    sys.modules["gradio"] = _StubModule("gradio")
    try:
        yield
    finally:
        del sys.modules["gradio"]
