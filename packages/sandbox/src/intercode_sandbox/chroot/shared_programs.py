"""Keeps the files that all sandboxes of an image share: copies that belong to root, in the cache.

They are hard-linked into the root directory of each sandbox, whose commands may read and delete,
but not change them. A file that was changed since its copy was made is not linked.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import subprocess
from pathlib import Path

from intercode_sandbox.errors import SandboxError
from intercode_sandbox.images.cache.remove_tree import remove_tree
from intercode_sandbox.platforms.paths import cache_root
from intercode_sandbox.supervisor import build, programs

_PROGRAM_DIRECTORY = "usr"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_SOURCE = ".source"
"""The suffix of a file beside a copy, which names the layer of which it was made."""


def open_programs(layer: Path) -> int | None:
    """Open the directory with the shared files of a layer, by their paths in it. Makes it if it
    is missing. None: the layer has no programs.

    Raises SandboxError.
    """
    if not (layer / _PROGRAM_DIRECTORY).is_dir():
        return None
    home = cache_root() / "programs"
    home.mkdir(mode=0o700, exist_ok=True)
    source = _source_of(layer)
    final = home / hashlib.sha256(source.encode()).hexdigest()[:24]
    try:
        return os.open(final, _DIRECTORY)
    except FileNotFoundError:
        pass
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not final.is_dir():
            _remove_unused(home)
            final.with_suffix(_SOURCE).write_text(source)
            _copy(layer, final)
        return os.open(final, _DIRECTORY)


def _source_of(layer: Path) -> str:
    """Return what identifies a layer: two may have the same name, and one may be replaced."""
    info = layer.stat()
    return json.dumps([str(layer.resolve()), info.st_dev, info.st_ino, info.st_ctime_ns])


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


def _remove_unused(home: Path) -> None:
    """Remove the copies of layers that were removed or replaced, and of a killed process."""
    for entry in home.iterdir():
        if entry.is_dir() and not _is_current(entry.with_suffix(_SOURCE)):
            remove_tree(entry)
            entry.with_suffix(_SOURCE).unlink(missing_ok=True)


def _is_current(source: Path) -> bool:
    try:
        recorded = source.read_text()
        return recorded == _source_of(Path(json.loads(recorded)[0]))
    except (OSError, ValueError):
        return False
