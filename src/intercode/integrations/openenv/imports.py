"""OpenEnv without its web page: every server and client of OpenEnv's imports Gradio for it, which
takes seconds and more memory than the rest. We serve no page, so nothing of Gradio's is called."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_PAGE = "ENABLE_WEB_INTERFACE"
"""OpenEnv's variable that asks for the page."""


class _Stand(ModuleType):
    """Stands for a module while others take names from it and call them."""

    def __getattr__(self, name: str) -> _Stand:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Stand(f"{self.__name__}.{name}")

    def __call__(self, *_: Any, **__: Any) -> _Stand:
        return self


@contextmanager
def without_page() -> Iterator[None]:
    """Within, imports get no Gradio, unless it is there already or the page is asked for."""
    if "gradio" in sys.modules or os.environ.get(_PAGE):
        yield
        return
    sys.modules["gradio"] = _Stand("gradio")
    try:
        yield
    finally:
        del sys.modules["gradio"]
