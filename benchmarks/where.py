"""Measures where the time of an episode goes, by timing the methods that matter."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Self

from intercode.environments.base import gold_cache
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.sessions.bash.persistent import BashSession
from intercode_sandbox.namespace.sandbox import NamespaceSandbox

PARTS: tuple[tuple[str, Any, str], ...] = (
    ("reset", InterCodeEnv, "reset"),
    (". open a workspace, prewarmed or new", SandboxedEnv, "open_workspace"),
    (". end the last episode", SandboxedEnv, "end_episode"),
    ("step", InterCodeEnv, "step"),
    (". run the action", BashSession, "run"),
    (". what has changed", NamespaceSandbox, "changes"),
    ("submit", InterCodeEnv, "submit"),
    (". the end state of the gold, if cached", gold_cache, "load_golds"),
    ("open a sandbox (any thread)", NamespaceSandbox, "__init__"),
    ("start a shell in it (any thread)", BashSession, "__init__"),
    ("close a sandbox (any thread)", NamespaceSandbox, "close"),
)


class Spans:
    """Measure the time spent in each part while the context is open; ``total`` is in milliseconds.
    Parts that run in several threads at once count for each thread."""

    def __init__(self) -> None:
        self.total: dict[str, float] = {}
        self._lock = threading.Lock()
        self._before: list[tuple[Any, str, Any]] = []

    def clear(self) -> None:
        """Reset all times."""
        with self._lock:
            self.total = {name: 0.0 for name, _, _ in PARTS}

    def _timed(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **more: Any) -> Any:
            start = time.perf_counter()
            try:
                return work(*args, **more)
            finally:
                took = (time.perf_counter() - start) * 1000
                with self._lock:
                    self.total[name] += took

        return timed

    def __enter__(self) -> Self:
        self.total = defaultdict(float)
        for name, home, attribute in PARTS:
            work = getattr(home, attribute)
            self._before.append((home, attribute, vars(home).get(attribute)))
            setattr(home, attribute, self._timed(name, work))
        return self

    def __exit__(self, *_: object) -> None:
        for home, attribute, work in self._before:
            if work is None:
                delattr(home, attribute)
            else:
                setattr(home, attribute, work)
