"""Files of a box that nothing changes any more: a layer for other boxes, whatever its size."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from intercode.sandbox.namespace.sandbox import NamespaceSandbox

MAX_SEALED_LAYERS = 8
"""Sealed layers over each other; a box that would have more starts with a copy of them all."""


class SealedLayer:
    """The upper layer of a box in which nothing runs. Whoever uses it holds it; the box is closed
    when the last one has released it."""

    def __init__(self, box: NamespaceSandbox) -> None:
        self._sandbox = box
        self._users = 1
        self._lock = threading.Lock()

    @property
    def lower_layers(self) -> tuple[SealedLayer, ...]:
        """The sealed layers that this one lies on, the topmost first."""
        return self._sandbox.sealed_layers

    def acquire(self) -> None:
        """Count one more user. Raises ValueError where all have gone already."""
        with self._lock:
            if not self._users:
                raise ValueError("this layer was released already")
            self._users += 1

    def release(self) -> None:
        """Count one user less."""
        with self._lock:
            self._users -= 1
            last = not self._users
        if last:
            self._sandbox.close()

    def open_mount(self) -> int:
        """A descriptor of a mount of it, which one other box can be given."""
        return self._sandbox.connection.request_fd("seal")

    def open_upper(self) -> int:
        """A descriptor of it, to be copied."""
        return self._sandbox.connection.request_fd("upper")
