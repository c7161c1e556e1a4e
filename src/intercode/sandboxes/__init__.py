"""Boxes in which code runs. ``open_sandbox`` picks the back end."""

from __future__ import annotations

from intercode.registry import Registry
from intercode.sandboxes.base import Limits, Sandbox, SandboxSpec

SANDBOXES = Registry(
    "sandbox",
    {"namespace": "intercode.sandboxes.namespace.sandbox:NamespaceSandbox"},
)


def open_sandbox(spec: SandboxSpec, kind: str = "auto") -> Sandbox:
    """A new sandbox of the kind asked for; ``auto`` takes the strongest that this machine has.

    Raises UnknownNameError for an unknown kind, SandboxError where it cannot be set up.
    """
    name = "namespace" if kind == "auto" else kind
    sandbox: Sandbox = SANDBOXES.load(name)(spec)
    return sandbox


__all__ = ["SANDBOXES", "Limits", "Sandbox", "SandboxSpec", "open_sandbox"]
