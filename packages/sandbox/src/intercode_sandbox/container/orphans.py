"""Labels containers with their owner process, and removes those whose owner has ended."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from intercode_sandbox.container import removal
from intercode_sandbox.container.engine import ContainerEngine
from intercode_sandbox.supervisor.runtime.cgroups import process_start_ticks

OWNER_LABEL = "intercode.owner"
_SEPARATOR = "\t"


def current_owner() -> str:
    """Return the label of this process: its number, start, boot of the machine, and process
    namespace."""
    return f"{os.getpid()}.{process_start_ticks(os.getpid())}.{_boot_and_namespace()}"


@functools.cache
def _boot_and_namespace() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")[:12]
    return f"{boot}.{os.stat('/proc/self/ns/pid').st_ino}"


def has_owner_ended(owner: str) -> bool:
    """Return whether the process of a label is known to have ended."""
    parts = owner.split(".")
    if len(parts) != 4 or not (parts[0].isdigit() and parts[1].isdigit()):
        return False
    boot, space = _boot_and_namespace().split(".")
    if parts[2] != boot:
        return False  # another machine or boot
    if parts[3] != space:
        return False
    try:
        return process_start_ticks(int(parts[0])) != int(parts[1])
    except (OSError, ValueError):
        return True


def remove_orphans(engine: ContainerEngine) -> list[str]:
    """Remove containers whose owners have ended, and return their ids. Running containers end with
    their owner; containers that never started do not."""
    label = (
        f'.Label "{OWNER_LABEL}"' if engine.name == "docker" else f'index .Labels "{OWNER_LABEL}"'
    )
    form = f"{{{{.ID}}}}{_SEPARATOR}{{{{{label}}}}}"
    rows = engine.run(
        "ps", "--all", "--no-trunc", "--filter", f"label={OWNER_LABEL}", "--format", form
    )
    dead = [
        row.split(_SEPARATOR)[0]
        for row in rows.splitlines()
        if has_owner_ended(row.split(_SEPARATOR)[-1])
    ]
    for container in dead:
        removal.remove_container(engine.program, container)
    return dead
