"""Sandboxes: isolated machines in which code runs.

``Sandbox.open`` opens one on an image, and ``open_sandbox`` one with a full specification::

    from intercode.sandbox import Sandbox

    with Sandbox.open("host") as sandbox:
        print(sandbox.run("echo hi").output)
"""

from __future__ import annotations

import functools
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from intercode.core.errors import SandboxUnavailableError
from intercode.core.lazy import lazy_imports
from intercode.core.registry import (
    Registry,
    load_object,
    portable_reference,
    unknown_name_error,
)
from intercode.sandbox.contract import (
    Capability,
    Limits,
    Sandbox,
    SandboxSnapshot,
    SandboxSpec,
)
from intercode.sandbox.determinism import Determinism, resolve_determinism
from intercode.sandbox.streams import Process

if TYPE_CHECKING:
    from intercode.sandbox.conformance import check_sandbox

__all__ = [
    "SANDBOXES",
    "Capability",
    "Determinism",
    "Limits",
    "Process",
    "Sandbox",
    "SandboxSnapshot",
    "SandboxSpec",
    "check_sandbox",
    "open_sandbox",
    "resolve_determinism",
    "strongest_kind",
    "tier_of",
]

__getattr__ = lazy_imports(__name__, {"check_sandbox": ".conformance"})

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
"""Functions that open a sandbox, by the name of the back end."""


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
    one available. ``files``: a directory in the format of ``Sandbox.save``; the sandbox
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
