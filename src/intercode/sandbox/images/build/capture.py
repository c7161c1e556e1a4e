"""Layers made by work done in a sandbox: what the work changes becomes the layer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from intercode.core.paths import sandbox_uid
from intercode.core.types import Image, Layer, Network
from intercode.sandbox import SandboxSpec, open_sandbox, strongest_kind
from intercode.sandbox.images.build import steps
from intercode.sandbox.namespace.sandbox import NamespaceSandbox
from intercode.sandbox.supervisor.client import SupervisedSandbox


def layer_key(*parts: str) -> str:
    return hashlib.sha256("\0".join((str(sandbox_uid()), *parts)).encode()).hexdigest()[:32]


def captured_layer(
    key: str,
    image: Image,
    layers: tuple[Layer, ...],
    work: Callable[[SupervisedSandbox], None],
    network: Network = "none",
) -> Layer:
    """What ``work`` changes in a fresh box, as a layer. Made once; other processes wait for it."""
    spec = SandboxSpec(image, layers, network=network, appearance="docker")
    return steps.cached_step(key, lambda home: capture_changes(home, spec, work))


def capture_changes(
    stage: Path, spec: SandboxSpec, work: Callable[[SupervisedSandbox], None]
) -> None:
    """Have ``work`` done in a fresh box, and what it changes written to ``upper`` of a directory:
    at once, or from a container afterwards, where this machine has no other boxes."""
    if strongest_kind() == "container":
        with open_sandbox(spec, "container") as box:
            work(box)
            box.write_upper(stage / "upper")
        return
    sandbox = NamespaceSandbox(replace(spec, upper=stage))
    try:
        work(sandbox)
    finally:
        sandbox.close(wait=True)
