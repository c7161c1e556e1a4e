"""Opens sandboxes of the tier ``landlock``, and says whether this machine can run them."""

from __future__ import annotations

import functools
import os
import platform
from contextlib import suppress
from pathlib import Path

from intercode_sandbox.contract import SandboxSpec
from intercode_sandbox.errors import ConfigError, SandboxError, SandboxUnavailableError
from intercode_sandbox.landlock.guard import remove_leftovers
from intercode_sandbox.landlock.layout import TIER
from intercode_sandbox.landlock.sandbox import LandlockSandbox
from intercode_sandbox.platforms.forks import ForkSafeLock
from intercode_sandbox.supervisor.runtime import syscalls
from intercode_sandbox.tiers.tier_table import TRIAL_LIMITS
from intercode_sandbox.types import Image

_NEEDED_VERSION = 6
"""The first version of Landlock that confines signals. Below it, a command could end every process
of the user."""
_cleaned: set[int] = set()  # process numbers: a forked child cleans up again
_clean_up_lock = ForkSafeLock()


def open_landlock(spec: SandboxSpec, files: Path | None = None) -> LandlockSandbox:
    """Open a sandbox. ``files``: an upper layer to start with a copy of."""
    fault = _kernel_fault()
    if fault:
        raise SandboxUnavailableError(f"no sandbox of the tier {TIER} here: {fault}")
    _clean_up_once()
    sandbox = LandlockSandbox(spec)
    if files is not None:
        try:
            sandbox.replace_files(files)
        except BaseException:
            sandbox.close()
            raise
    return sandbox


@functools.cache
def check() -> tuple[bool, str]:
    """Return whether sandboxes of this tier work here, and what is missing if not.

    It opens a sandbox and runs a program in it.
    """
    fault = _kernel_fault()
    if fault:
        return False, fault
    try:
        with open_landlock(SandboxSpec(Image("host", ""), limits=TRIAL_LIMITS)) as sandbox:
            result = sandbox.run(["true"])
            sandbox.close(wait=True)
            return result.ok, result.observation.strip()
    except (SandboxError, ConfigError, OSError) as e:
        return False, str(e)


def _kernel_fault() -> str:
    """Return why the kernel cannot confine commands; empty if it can."""
    try:
        version = syscalls.landlock_version()
    except OSError as e:
        return (
            f"Landlock is not available: {e.strerror}; it needs Linux 6.12 or newer, with "
            "`landlock` in the kernel's parameter lsm= and allowed by the container"
        )
    if version >= _NEEDED_VERSION:
        return ""
    return (
        f"this kernel ({platform.release()}) has version {version} of Landlock; version "
        f"{_NEEDED_VERSION} is needed, which confines signals: Linux 6.12 or newer"
    )


def _clean_up_once() -> None:
    with _clean_up_lock:
        if os.getpid() not in _cleaned:
            _cleaned.add(os.getpid())
            with suppress(OSError, ConfigError):
                remove_leftovers()
