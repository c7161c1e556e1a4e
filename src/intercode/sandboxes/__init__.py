"""Boxes in which code runs. ``open_sandbox`` picks the back end."""

from __future__ import annotations

from intercode.registry import Registry, load_object, unknown
from intercode.sandboxes.base import Limits, Sandbox, SandboxSpec

SANDBOXES = Registry(
    "sandbox",
    {
        "namespace": "intercode.sandboxes.namespace.sandbox:NamespaceSandbox",
        "namespace/1": "intercode.sandboxes.namespace.tiers:grouped",
        "namespace/2": "intercode.sandboxes.namespace.tiers:ungrouped",
    },
)


def open_sandbox(spec: SandboxSpec, kind: str = "auto") -> Sandbox:
    """A new sandbox of the kind asked for; ``auto`` takes the strongest that this machine has.

    A kind with a tier, as ``namespace/1``, is that tier or an error.
    Raises UnknownNameError for an unknown kind, SandboxError where it cannot be set up.
    """
    name = "namespace" if kind == "auto" else kind
    sandbox: Sandbox = SANDBOXES.load(name)(spec)
    return sandbox


def tier_of(kind: str = "auto") -> str:
    """The tier of the boxes that ``open_sandbox`` gives for a kind, for every result to name.

    Raises UnknownNameError for an unknown kind, SandboxError where boxes cannot be made.
    """
    if kind in ("auto", "namespace"):
        return str(load_object("intercode.sandboxes.namespace.tiers:strongest")())
    if kind not in SANDBOXES:
        raise unknown(SANDBOXES.kind, kind, ["auto", *SANDBOXES])
    return kind


__all__ = ["SANDBOXES", "Limits", "Sandbox", "SandboxSpec", "open_sandbox", "tier_of"]
