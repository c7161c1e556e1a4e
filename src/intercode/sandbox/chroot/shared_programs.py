"""Keeps the files that all sandboxes of an image share: copies that belong to root, in the cache.

They are hard-linked into the root directory of each sandbox, whose commands may read and delete,
but not change them.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import subprocess
from pathlib import Path

from intercode.core.errors import SandboxError
from intercode.core.paths import cache_root
from intercode.sandbox.images.cache.remove_tree import remove_tree
from intercode.sandbox.supervisor import build, programs

_PROGRAM_DIRECTORY = "usr"


def shared_programs(layer: Path) -> Path | None:
    """Return the directory with the shared files of a layer, by their paths in it. Makes it if it
    is missing. None: the layer has no programs.

    Raises SandboxError.
    """
    if not (layer / _PROGRAM_DIRECTORY).is_dir():
        return None
    home = cache_root() / "programs"
    home.mkdir(mode=0o700, exist_ok=True)
    final = home / layer.name
    if final.is_dir():
        return final
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not final.is_dir():
            _remove_unused(home, layer.parent)
            _copy(layer, final)
    return final


def _copy(layer: Path, final: Path) -> None:
    temporary = final.with_name(f".{final.name}.{secrets.token_hex(4)}")
    temporary.mkdir(mode=0o755)
    program = programs.find_program(build.SUPERVISOR)
    command = [str(program), "programs", str(layer), str(temporary)]
    done = subprocess.run(command, stderr=subprocess.PIPE, check=False, env={})
    if done.returncode:
        remove_tree(temporary)
        raise SandboxError(f"the programs cannot be copied: {done.stderr.decode().strip()}")
    os.rename(temporary, final)


def _remove_unused(home: Path, layers: Path) -> None:
    """Remove the copies of layers that are no longer in the cache, and of a killed process."""
    for entry in home.iterdir():
        if entry.is_dir() and not (layers / entry.name).is_dir():
            remove_tree(entry)
