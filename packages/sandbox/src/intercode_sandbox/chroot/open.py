"""Opens sandboxes below a changed root directory, and says whether this machine can run them."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from intercode_sandbox.chroot.sandbox import TIER, ChrootSandbox
from intercode_sandbox.contract import SandboxSpec
from intercode_sandbox.errors import ConfigError, SandboxError, SandboxUnavailableError
from intercode_sandbox.platforms.paths import is_initial_user_namespace
from intercode_sandbox.supervisor.root_files import cached_root_files
from intercode_sandbox.tiers.tier_table import TRIAL_LIMITS
from intercode_sandbox.types import Image

_CAPABILITIES = {
    "CHOWN": 0,
    "DAC_OVERRIDE": 1,
    "FOWNER": 3,
    "KILL": 5,
    "SETGID": 6,
    "SETUID": 7,
    "SETPCAP": 8,
    "SYS_CHROOT": 18,
    "MKNOD": 27,
}
"""The needed capabilities, which engines give to root of a container by default."""


def open_chroot(spec: SandboxSpec, files: Path | None = None) -> ChrootSandbox:
    """Open a sandbox. ``files``: an upper layer to start with a copy of."""
    missing = _missing_rights()
    if missing:
        raise SandboxUnavailableError(f"no sandbox of the tier {TIER} here: {missing}")
    sandbox = ChrootSandbox(spec)
    return sandbox if files is None else sandbox.with_files_of(files)


@functools.cache
def check() -> tuple[bool, str]:
    """Return whether sandboxes of this tier work here, and what is missing if not.

    It opens a sandbox without programs.
    """
    missing = _missing_rights()
    if missing:
        return False, missing
    try:
        tree = cached_root_files({"/tmp": [0o1777, None]})
        spec = SandboxSpec(Image("empty", tree.name, tree), limits=TRIAL_LIMITS)
        with open_chroot(spec) as sandbox:
            sandbox.changes()
            sandbox.close(wait=True)
    except (SandboxError, ConfigError, OSError) as e:
        return False, str(e)
    return True, ""


def _missing_rights() -> str:
    """Return what this process lacks, or an empty text."""
    if os.geteuid() != 0:
        return "this process is not root; `docker run --user 0` starts a container as root"
    status = Path("/proc/self/status").read_text()
    effective = int(status.partition("CapEff:")[2].split()[0], 16)
    names = [name for name, bit in _CAPABILITIES.items() if not effective >> bit & 1]
    if not names:
        return ""
    if not is_initial_user_namespace():
        return "root of a user namespace, as in a rootless container, cannot make device nodes"
    options = " ".join(f"--cap-add={name}" for name in names)
    return f"root lacks capabilities; start the container with the additional options `{options}`"
