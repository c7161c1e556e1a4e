"""Sandboxes: isolated machines in which code runs. ``open_sandbox`` chooses the back end."""

from __future__ import annotations

import functools
import os
from contextlib import suppress
from pathlib import Path

from intercode.core.errors import SandboxUnavailableError
from intercode.core.registry import (
    Registry,
    load_object,
    portable_reference,
    unknown_name_error,
)
from intercode.sandbox.contract import Limits, Sandbox, SandboxSpec

SANDBOXES = Registry(
    "sandbox",
    {
        "namespace": "intercode.sandbox.namespace.tiers:open_strongest",
        "namespace/1": "intercode.sandbox.namespace.tiers:open_with_cgroups",
        "namespace/2": "intercode.sandbox.namespace.tiers:open_with_watchdog",
        "container": "intercode.sandbox.container.tiers:open_first_engine",
        "docker": "intercode.sandbox.container.tiers:open_docker",
        "podman": "intercode.sandbox.container.tiers:open_podman",
        "container/docker": "intercode.sandbox.container.tiers:open_docker",
        "container/podman": "intercode.sandbox.container.tiers:open_podman",
    },
    group="intercode.sandboxes",
)


ENVIRONMENT_VARIABLE = "INTERCODE_SANDBOX"
"""Environment variable that names the back end which ``auto`` stands for."""
_STRONGEST_TIER = {
    "namespace": "intercode.sandbox.namespace.tiers:strongest_tier",
    "container": "intercode.sandbox.container.tiers:strongest_tier",
}


def open_sandbox(spec: SandboxSpec, kind: str = "auto", files: Path | None = None) -> Sandbox:
    """Open a new sandbox.

    ``kind``: a back end such as ``namespace``, a back end with its isolation tier such as
    ``namespace/1``, a reference such as ``file.py:function`` to a back end of your own, or
    ``auto``: the back end that the environment variable INTERCODE_SANDBOX names, else the strongest
    one available. ``files``: a directory in the format of ``Sandbox.write_upper``; the sandbox
    starts with a copy of these files. Raises UnknownNameError for an unknown kind, SandboxError if
    the sandbox cannot be created.
    """
    make = SANDBOXES.load(_resolve_kind(kind))
    sandbox: Sandbox = make(spec) if files is None else make(spec, files)
    return sandbox


def tier_of(kind: str = "auto") -> str:
    """Return the isolation tier of the sandboxes that ``open_sandbox`` creates for a kind.

    Raises UnknownNameError for an unknown kind, SandboxError if this machine cannot run it.
    """
    name = _resolve_kind(kind)
    if name in _STRONGEST_TIER:
        return str(load_object(_STRONGEST_TIER[name])())
    if ":" in name:  # a reference, see Registry.load
        return portable_reference(name)
    if name not in SANDBOXES:
        raise unknown_name_error(SANDBOXES.kind, name, ["auto", *SANDBOXES])
    return f"container/{name}" if name in ("docker", "podman") else name


def _resolve_kind(kind: str) -> str:
    """Return the kind that ``auto`` stands for on this machine, or the kind itself."""
    if kind != "auto":
        return kind
    return os.environ.get(ENVIRONMENT_VARIABLE) or strongest_kind()


@functools.cache
def strongest_kind() -> str:
    """Return the strongest kind available: namespaces, or containers if namespaces are forbidden
    and a container engine answers."""
    try:
        load_object(_STRONGEST_TIER["namespace"])()
    except SandboxUnavailableError:
        with suppress(SandboxUnavailableError):
            load_object(_STRONGEST_TIER["container"])()
            return "container"
    return "namespace"


__all__ = [
    "SANDBOXES",
    "Limits",
    "Sandbox",
    "SandboxSpec",
    "open_sandbox",
    "strongest_kind",
    "tier_of",
]
