"""Sandboxes: isolated machines in which code runs.

``Sandbox.open`` opens one on an image, and ``open_sandbox`` one with a full specification::

    from intercode.sandbox import Sandbox

    with Sandbox.open("host") as sandbox:
        print(sandbox.run("echo hi").output)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercode.core.lazy import lazy_imports
from intercode.sandbox.back_ends import (
    SANDBOXES,
    architecture_of,
    describe_choice,
    open_sandbox,
    resolve_image,
    tier_of,
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
from intercode.sandbox.tiers.choice import strongest_kind

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
    "architecture_of",
    "check_sandbox",
    "describe_choice",
    "open_sandbox",
    "resolve_determinism",
    "resolve_image",
    "strongest_kind",
    "tier_of",
]

__getattr__ = lazy_imports(__name__, {"check_sandbox": ".conformance"})
