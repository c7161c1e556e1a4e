"""The two isolation tiers of this back end.

``namespace/1``: a control group limits the whole sandbox. ``namespace/2``: limits per process, and
a watchdog for the memory of the whole sandbox. Everything else is the same.
"""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

from intercode_sandbox.contract import SandboxSpec
from intercode_sandbox.errors import SandboxError, SandboxUnavailableError
from intercode_sandbox.namespace.launcher import Launcher
from intercode_sandbox.namespace.sandbox import NamespaceSandbox
from intercode_sandbox.platforms.paths import cache_remedy, sandbox_uid
from intercode_sandbox.tiers.remedies import CGROUPS_HINT
from intercode_sandbox.tiers.tier_table import TRIAL_LIMITS
from intercode_sandbox.types import Image

CGROUP_TIER, WATCHDOG_TIER = "namespace/1", "namespace/2"


def check_cgroup_tier() -> tuple[bool, str]:
    """Return whether sandboxes with a control group can be opened, and why not."""
    works, fault = check_watchdog_tier()
    if not works or Launcher.get().cgroup_directories:
        return works, fault
    return False, Launcher.get().cgroups_error


def check_watchdog_tier() -> tuple[bool, str]:
    """Return whether sandboxes can be opened, by opening one, and why not.

    Raises SandboxUnavailableError if that is denied and sandboxes cannot reach the cache, because
    a weaker tier would be no remedy.
    """
    try:
        NamespaceSandbox(SandboxSpec(Image("host", ""), limits=TRIAL_LIMITS)).close()
    except SandboxError as e:
        if os.strerror(errno.EACCES) in str(e) and (remedy := cache_remedy()):
            raise SandboxUnavailableError(f"{e}; {remedy}") from e
        return False, str(e)
    return True, ""


def strongest_tier() -> str:
    """Return the default tier on this machine. Raises SandboxError."""
    return CGROUP_TIER if Launcher.get().cgroup_directories else WATCHDOG_TIER


def open_strongest(spec: SandboxSpec, files: Path | None = None) -> NamespaceSandbox:
    """Open a sandbox of the strongest tier. ``files``: an upper layer to start with a copy of."""
    if files is None:
        return NamespaceSandbox(spec)
    if spec.users:  # whose ids need a mount of the files, which another sandbox has
        with open_strongest(replace(spec, users=False), files) as plain:
            copy = plain.open_for_copy()
            try:
                return NamespaceSandbox(spec, [(copy, plain.user_id)])
            finally:
                os.close(copy)
    upper = os.open(files, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return NamespaceSandbox(spec, [(upper, sandbox_uid())], own_user=False)
    finally:
        os.close(upper)


def open_with_cgroups(spec: SandboxSpec, files: Path | None = None) -> NamespaceSandbox:
    """Open a sandbox with a control group. Raises SandboxUnavailableError if that is not
    possible."""
    if not spec.limits.cgroups:
        spec = replace(spec, limits=replace(spec.limits, cgroups=True))
    launcher = Launcher.get()
    if not launcher.cgroup_directories:
        raise SandboxUnavailableError(
            f"no {CGROUP_TIER} here: {launcher.cgroups_error}; {CGROUPS_HINT}; or ask for "
            f"{WATCHDOG_TIER}"
        )
    return open_strongest(spec, files)


def open_with_watchdog(spec: SandboxSpec, files: Path | None = None) -> NamespaceSandbox:
    """Open a sandbox without a control group, even if one is possible."""
    return open_strongest(replace(spec, limits=replace(spec.limits, cgroups=False)), files)
