"""Images and layers that only a server of remote sandboxes has. This machine knows their names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from intercode_sandbox.contract import BaseSandbox, Limits
from intercode_sandbox.registry import load_object
from intercode_sandbox.types import Image, Layer, Network

NOWHERE = Path("/nonexistent/remote")
"""The directory of files that are on another machine."""


@dataclass(frozen=True, slots=True)
class RemoteImage(Image):
    """An image at the server with the address ``url``."""

    url: str = ""

    def capture(
        self,
        key: str,
        layers: tuple[Layer, ...],
        work: Callable[[BaseSandbox], None],
        network: Network = "none",
        limits: Limits = Limits(),  # noqa: B008
    ) -> Layer:
        """Return the changes that ``work`` makes in a sandbox of the server, as a layer there."""
        # by name, because that module imports this one and loads an HTTP client
        capture = load_object("intercode_sandbox.remote.images:capture_layer")
        layer: Layer = capture(self, key, layers, work, network, limits)
        return layer


@dataclass(frozen=True, slots=True)
class RemoteLayer(Layer):
    """A layer at a server, which knows it by ``reference``."""

    reference: str = ""

    def redated(self, hour: int) -> RemoteLayer:
        """Return the layer with shifted dates, as ``layer_dates.redated_layer`` shifts them."""
        return RemoteLayer(self.root, f"{self.digest}@{hour}", f"{self.reference}@{hour}")
