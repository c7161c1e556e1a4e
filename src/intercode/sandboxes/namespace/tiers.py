"""The two rungs of the ladder that this back end stands on, by name.

``namespace/1``: the kernel bounds each box by a control group. ``namespace/2``: bounds per process,
and a watchdog for the memory of the whole. Everything else is the same.
"""

from __future__ import annotations

from dataclasses import replace

from intercode.errors import SandboxUnavailableError
from intercode.sandboxes.base import SandboxSpec
from intercode.sandboxes.namespace.launcher import Launcher
from intercode.sandboxes.namespace.sandbox import NamespaceSandbox

GROUPED, UNGROUPED = "namespace/1", "namespace/2"

HOW_TO_GET_GROUPS = (
    "run as root, or below `systemd-run --user --scope -p Delegate=yes COMMAND`; in a container, "
    "mount /sys/fs/cgroup writable"
)


def strongest() -> str:
    """The tier that a box gets on this machine when none is asked for. Raises SandboxError."""
    return GROUPED if Launcher.get().groups else UNGROUPED


def grouped(spec: SandboxSpec) -> NamespaceSandbox:
    """A box bounded by a control group. Raises SandboxUnavailableError where there can be none."""
    if not spec.limits.groups:
        spec = replace(spec, limits=replace(spec.limits, groups=True))
    launcher = Launcher.get()
    if not launcher.groups:
        raise SandboxUnavailableError(
            f"no {GROUPED} here: {launcher.why_no_groups}; {HOW_TO_GET_GROUPS}; or ask for "
            f"{UNGROUPED}"
        )
    return NamespaceSandbox(spec)


def ungrouped(spec: SandboxSpec) -> NamespaceSandbox:
    """A box as on a machine without control groups, also where there are some."""
    return NamespaceSandbox(replace(spec, limits=replace(spec.limits, groups=False)))
