"""The configuration of the runtime, and the sandbox that it describes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from pydantic import Field
from verifiers.v1.configs.runtime import NetworkPolicyConfig
from verifiers.v1.runtimes.base import BaseRuntimeInfo

from intercode.core.types import Layer, LayerSpec
from intercode_sandbox import Limits, SandboxSpec
from intercode_sandbox.images import resolve_layer
from intercode_sandbox.images.build.base_images import BaseImageResolver
from intercode_sandbox.images.build.on_demand import resolve_or_build

_GIGABYTE = 1e9
_MEMORY, _DISK = 2.0, 4.0  # gigabytes of a task that does not say


class InterCodeConfig(NetworkPolicyConfig):
    """The configuration of the runtime: ``[env.agent.runtime]`` with ``type = "intercode"``."""

    type: Literal["intercode"] = "intercode"
    image: str = "host"
    """The root file system: the programs of this machine, or any other form of docs/images.md. The
    image of a task takes precedence, as with all runtimes."""
    workdir: str | None = None
    """The directory of commands, which is made if it does not exist. None: that of the task, else
    /app."""
    memory: float | None = None
    """GB of memory. None: that of the task, else 2."""
    disk: float | None = None
    """GB of files. None: that of the task, else 4."""
    env: dict[str, str] = Field(default_factory=dict)
    """Environment variables of all commands; those of the task precede them."""
    layers: dict[str, Path] = Field(default_factory=dict)
    """Directories of this machine whose files each sandbox shows a copy of, by the paths in it."""
    back_end: str = "auto"
    """The back end, or ``auto`` for the strongest isolation that works on this machine."""


class InterCodeRuntimeInfo(InterCodeConfig, BaseRuntimeInfo):
    """What a trace says about the runtime."""

    tier: str | None = None
    """The isolation tier; see docs/isolation-tiers.md."""


def make_spec(config: InterCodeConfig) -> SandboxSpec:
    """Return the specification of a sandbox, its image fetched or built first if necessary. Raises
    UsageError for an image or a directory that does not exist."""
    disk = int((config.disk or _DISK) * _GIGABYTE)
    limits = Limits(
        memory=int((config.memory or _MEMORY) * _GIGABYTE), disk=disk, file_size=disk,
        address_space=64 << 30, processes=1024, inodes=500_000, output=32 << 20,
    )  # fmt: skip
    image = BaseImageResolver(resolve_or_build).resolve_base(config.image, "runtime.image")
    layers = tuple(_layer(shown, path) for shown, path in config.layers.items())
    return SandboxSpec(image, layers, limits=limits, env=config.env)


def _layer(shown: str, path: Path) -> Layer:
    path = path.expanduser()
    executable = tuple(
        str(found.relative_to(path))
        for found in path.rglob("*")
        if found.is_file() and os.access(found, os.X_OK)
    )
    return resolve_layer(LayerSpec("dir", path, destination=shown, executable=executable))
