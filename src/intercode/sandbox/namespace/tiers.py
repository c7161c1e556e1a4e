"""The two rungs of the ladder that this back end stands on, by name.

``namespace/1``: the kernel bounds each box by a control group. ``namespace/2``: bounds per process,
and a watchdog for the memory of the whole. Everything else is the same.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from intercode.core.errors import SandboxUnavailableError
from intercode.sandbox.contract import SandboxSpec
from intercode.sandbox.namespace.launcher import Launcher
from intercode.sandbox.namespace.sandbox import NamespaceSandbox

GROUPED, UNGROUPED = "namespace/1", "namespace/2"

HOW_TO_GET_GROUPS = (
    "run as root, or below `systemd-run --user --scope -p Delegate=yes COMMAND`; in a container, "
    "mount /sys/fs/cgroup writable"
)


def strongest() -> str:
    """The tier that a box gets on this machine when none is asked for. Raises SandboxError."""
    return GROUPED if Launcher.get().groups else UNGROUPED


def either(spec: SandboxSpec, files: Path | None = None) -> NamespaceSandbox:
    """A box of the strongest tier. ``files``: an upper layer to begin with a copy of."""
    if files is None:
        return NamespaceSandbox(spec)
    upper = os.open(files, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return NamespaceSandbox(spec, [upper])
    finally:
        os.close(upper)


def grouped(spec: SandboxSpec, files: Path | None = None) -> NamespaceSandbox:
    """A box bounded by a control group. Raises SandboxUnavailableError where there can be none."""
    if not spec.limits.groups:
        spec = replace(spec, limits=replace(spec.limits, groups=True))
    launcher = Launcher.get()
    if not launcher.groups:
        raise SandboxUnavailableError(
            f"no {GROUPED} here: {launcher.why_no_groups}; {HOW_TO_GET_GROUPS}; or ask for "
            f"{UNGROUPED}"
        )
    return either(spec, files)


def ungrouped(spec: SandboxSpec, files: Path | None = None) -> NamespaceSandbox:
    """A box as on a machine without control groups, also where there are some."""
    return either(replace(spec, limits=replace(spec.limits, groups=False)), files)
