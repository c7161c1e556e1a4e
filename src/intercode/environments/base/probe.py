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
from intercode.sandbox.contract import Sandbox

PROBE_TIMEOUT = 60.0
"""What a look may take."""
MAX_COPIED_BYTES = 128 << 20
"""Bytes of an end state that are carried over to be looked at: what would exceed them is not."""
_BASH = "/bin/bash"
_CLEAR_SCRIPT = """while IFS= read -r -d '' path; do
  case $path in */) [ -d "${path%/}" ] && [ ! -L "${path%/}" ] && continue;; esac
  rm -rf -- "${path%/}"
done"""


def run_probe(
    task: Task,
    sandbox: Sandbox,
    open_pristine: Callable[[], Sandbox],
    gold: bool,
) -> str:
    """What the look of ``task`` prints of the state of ``box``; empty where the task has none.

    ``open_fresh`` opens a box on the pristine image with the task's files. A look that does not end
    in time tells what it has printed by then. Raises GoldError where that, or an exit status above
    0, comes of the state of a gold.
    """
    if task.probe is None:
        return ""
    with sandbox.clone() as copy:
        if not task.probe_paths:
            return _run_probe_script(task, copy, gold)
        with open_pristine() as fresh:
            copy_changes(copy, fresh, task.probe_paths)
            return _run_probe_script(task, fresh, gold)


def _run_probe_script(task: Task, box: Sandbox, gold: bool) -> str:
    result = box.run([_BASH, "-c", task.probe or ""], timeout=PROBE_TIMEOUT)
    if gold and not result.ok:
        how = f"did not end within {PROBE_TIMEOUT:g} s" if result.timed_out else "failed"
        raise GoldError(
            f"the look at what the gold of {task.id} leaves {how} "
            f"({result.exit_code}): {result.output[-500:]!r}"
        )
    return result.output


def copy_changes(
    source: Sandbox, target: Sandbox, paths: tuple[str, ...]
) -> None:
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
        [_BASH, "-c", _CLEAR_SCRIPT], stdin="\0".join((*names, "")).encode(errors="surrogateescape")
    )
    target.run(
        ["tar", "-xpf", "-", "-C", "/"], stdin=_tar_changes(source, changes), timeout=PROBE_TIMEOUT
    )


def _tar_changes(box: Sandbox, changes: dict[str, FileEntry]) -> bytes:
    """Files, directories, links and FIFOs of a box as a tar; what is nothing of these stays out."""
    kinds = {"dir": tarfile.DIRTYPE, "link": tarfile.SYMTYPE, "fifo": tarfile.FIFOTYPE}
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, entry in changes.items():
            info = tarfile.TarInfo(path.lstrip("/"))
            info.mode, info.linkname = entry.mode & 0o777, entry.target
            if entry.kind == "file":
                with suppress(OSError):  # larger than what can be looked at
                    data = box.read_file(path, limit=max(0, MAX_COPIED_BYTES - whole.tell()))
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
            elif entry.kind in kinds:
                info.type = kinds[entry.kind]
                tar.addfile(info)
    return whole.getvalue()
