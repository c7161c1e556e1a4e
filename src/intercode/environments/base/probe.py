"""A task's own look at an end state: a script prints facts of it, which the reward then compares.

It runs after the episode's last action, on a copy, and is in no box in which anybody acts. With
``look_at``, it has a fresh box on the pristine image that gets nothing of the end state but those
paths: programs that were changed elsewhere cannot mislead it. What lies at those paths can still
mislead programs that trust it, such as a repository's own configuration; a look may remove that.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from contextlib import suppress

from intercode.core.errors import GoldError
from intercode.core.types import FileEntry, Task
from intercode.sandbox.supervisor.client import KeptSandbox

SECONDS = 60.0
"""What a look may take."""
MOST = 128 << 20
"""Bytes of an end state that are carried over to be looked at: what would exceed them is not."""
_BASH = "/bin/bash"
_CLEAR = """while IFS= read -r -d '' path; do
  case $path in */) [ -d "${path%/}" ] && [ ! -L "${path%/}" ] && continue;; esac
  rm -rf -- "${path%/}"
done"""


def looked(task: Task, box: KeptSandbox, open_fresh: Callable[[], KeptSandbox], gold: bool) -> str:
    """What the look of ``task`` prints of the state of ``box``; empty where the task has none.

    ``open_fresh`` opens a box on the pristine image with the task's files. A look that does not end
    in time tells what it has printed by then. Raises GoldError where that, or an exit status above
    0, comes of the state of a gold.
    """
    if task.look is None:
        return ""
    with box.clone() as copy:
        if not task.look_at:
            return _run(task, copy, gold)
        with open_fresh() as fresh:
            carry(copy, fresh, task.look_at)
            return _run(task, fresh, gold)


def _run(task: Task, box: KeptSandbox, gold: bool) -> str:
    result = box.run([_BASH, "-c", task.look or ""], timeout=SECONDS)
    if gold and not result.ok:
        how = f"did not end within {SECONDS:g} s" if result.timed_out else "failed"
        raise GoldError(
            f"the look at what the gold of {task.id} leaves {how} "
            f"({result.exit_code}): {result.output[-500:]!r}"
        )
    return result.output


def carry(source: KeptSandbox, target: KeptSandbox, paths: tuple[str, ...]) -> None:
    """Lay what ``source`` has changed at and below ``paths`` over ``target``, which has the same
    image and layers. Nothing may run in either."""
    inside = tuple(f"{path.rstrip('/')}/" for path in paths)
    changes = {
        path: entry for path, entry in source.changes(digests=False).items()
        if f"{path}/".startswith(inside)
    }  # fmt: skip
    if not changes:
        return
    names = [f"{path}/" if entry.kind == "dir" else path for path, entry in changes.items()]
    target.run(
        [_BASH, "-c", _CLEAR], stdin="\0".join((*names, "")).encode(errors="surrogateescape")
    )
    target.run(["tar", "-xpf", "-", "-C", "/"], stdin=_packed(source, changes), timeout=SECONDS)


def _packed(box: KeptSandbox, changes: dict[str, FileEntry]) -> bytes:
    """Files, directories, links and FIFOs of a box as a tar; what is nothing of these stays out."""
    kinds = {"dir": tarfile.DIRTYPE, "link": tarfile.SYMTYPE, "fifo": tarfile.FIFOTYPE}
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, entry in changes.items():
            info = tarfile.TarInfo(path.lstrip("/"))
            info.mode, info.linkname = entry.mode & 0o777, entry.target
            if entry.kind == "file":
                with suppress(OSError):  # larger than what can be looked at
                    data = box.read_file(path, limit=max(0, MOST - whole.tell()))
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
            elif entry.kind in kinds:
                info.type = kinds[entry.kind]
                tar.addfile(info)
    return whole.getvalue()
