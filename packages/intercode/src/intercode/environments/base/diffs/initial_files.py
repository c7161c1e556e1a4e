"""Writes the initial files of a task into a sandbox, and tells changes of an agent from them."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from intercode.core.errors import InfrastructureError
from intercode.core.types import TRUNCATED_CHANGES, FileEntry, Task, TreeEntry
from intercode_sandbox.contract import BaseSandbox

_TAR_SECONDS = 60.0


def write_initial_files(sandbox: BaseSandbox, entries: Sequence[TreeEntry]) -> None:
    """Write entries into a sandbox. Raises InfrastructureError if tar fails in it.

    Files without a date are written one by one; everything else is unpacked by one tar.
    """
    packed = []
    for entry in entries:
        if entry.kind == "file" and entry.mtime is None:
            sandbox.write(entry.path, entry.data, entry.mode)
        else:
            packed.append(entry)
    if not packed:
        return
    result = sandbox.run(
        ["tar", "-xp", "--no-same-owner", "-f", "-"],
        stdin=pack_tree(packed),
        timeout=_TAR_SECONDS,
    )
    if not result.ok:
        failure = f"{result.exit_code}: {result.output[-500:]!r}"
        raise InfrastructureError(f"tar cannot unpack the files of the task ({failure})")


def pack_tree(entries: Iterable[TreeEntry]) -> bytes:
    """Return entries as a tar archive with names relative to the root directory."""
    kinds = {"dir": tarfile.DIRTYPE, "link": tarfile.SYMTYPE, "file": tarfile.REGTYPE}
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for entry in entries:
            info = tarfile.TarInfo(entry.path.lstrip("/"))
            info.type, info.mode, info.linkname = kinds[entry.kind], entry.mode, entry.target
            info.size, info.mtime = len(entry.data), entry.mtime or 0
            tar.addfile(info, io.BytesIO(entry.data))
    return archive.getvalue()


@lru_cache(maxsize=256)  # every turn asks for those of its task, and contents are hashed
def initial_file_entries(files: tuple[TreeEntry, ...]) -> Mapping[str, FileEntry]:
    """Return the entries of the initial files of a task and of their directories, as a sandbox
    lists them while they are unchanged."""
    entries: dict[str, FileEntry] = {}
    for initial in files:
        for parent in PurePosixPath(initial.path).parents[:-1]:
            entries.setdefault(str(parent), FileEntry("dir", 0o755))
        if initial.kind == "file":
            digest = hashlib.sha256(initial.data).hexdigest()
            entry = FileEntry("file", initial.mode, len(initial.data), digest)
        else:
            entry = FileEntry(initial.kind, initial.mode, target=initial.target)
        entries[initial.path] = entry
    return entries


def changes_of_agent(sandbox: BaseSandbox, task: Task, pause: bool = False) -> dict[str, FileEntry]:
    """Return ``sandbox.changes`` without the initial files of the task that are as they were.

    An initial file that is missing is listed as gone. ``pause``: as for ``BaseSandbox.changes``.
    """
    current = sandbox.changes(pause=pause)
    if not task.initial_files:
        return current
    initial = initial_file_entries(task.initial_files)
    changes = {path: entry for path, entry in current.items() if initial.get(path) != entry}
    if TRUNCATED_CHANGES in current:
        return changes
    missing = (entry.path for entry in task.initial_files if entry.path not in current)
    changes |= {path: FileEntry("gone", new=False) for path in missing}
    return dict(sorted(changes.items()))
