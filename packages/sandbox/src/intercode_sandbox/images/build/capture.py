"""Captures the changes that work in a sandbox makes, as a layer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from intercode_sandbox import SandboxSpec, open_sandbox
from intercode_sandbox.contract import BaseSandbox, Limits
from intercode_sandbox.images.build import steps
from intercode_sandbox.platforms.paths import sandbox_uid
from intercode_sandbox.remote.references import RemoteImage
from intercode_sandbox.tiers.choice import choose_tier
from intercode_sandbox.types import Image, Layer, Network


def layer_key(*parts: str) -> str:
    """Return the cache key of a layer made from these parts."""
    return hashlib.sha256("\0".join((str(sandbox_uid()), *parts)).encode()).hexdigest()[:32]


def captured_layer(
    key: str,
    image: Image,
    layers: tuple[Layer, ...],
    work: Callable[[BaseSandbox], None],
    network: Network = "none",
    limits: Limits = Limits(),  # noqa: B008
) -> Layer:
    """Return the changes that ``work`` makes in a fresh sandbox with these limits, as a layer.

    The layer is made once, where the image is. Other processes wait for it.
    """
    if isinstance(image, RemoteImage):
        return image.capture(key, layers, work, network, limits)
    spec = SandboxSpec(image, layers, network=network, limits=limits, appearance="docker")
    return steps.cached_step(key, lambda home: capture_changes(home, spec, work))


def capture_changes(stage: Path, spec: SandboxSpec, work: Callable[[BaseSandbox], None]) -> None:
    """Run ``work`` in a fresh sandbox and write its changes to the directory ``stage``/upper.

    A sandbox with mounts writes there directly. Where none works, the changes are copied out
    afterwards.
    """
    tier = choose_tier().tier
    sandbox = open_sandbox(replace(spec, upper=stage) if tier.own_layers else spec, tier.backend)
    try:
        work(sandbox)
        if not tier.own_layers:
            sandbox.save(stage / "upper")
    finally:
        sandbox.close(wait=True)
