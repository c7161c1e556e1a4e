"""Runs the probe of a task: a script that prints facts of a state, for the reward to compare.

A probe runs on a copy of the state after the last action, and no agent sees its script. With
``probe_paths``, it runs in a new sandbox on the pristine image that gets only these paths of the
state, so that programs which the agent replaced elsewhere cannot influence it. Files at these paths
still can, such as the configuration of a repository. A probe may delete them first.
"""

from __future__ import annotations

import io
import tarfile
from contextlib import suppress

from intercode.core.errors import GoldError, TooManyChangesError
from intercode.core.types import TRUNCATED_CHANGES, FileEntry, Task
from intercode.environments.base.episode_context import EpisodeContext
from intercode_sandbox.contract import BaseSandbox

PROBE_TIMEOUT = 60.0
"""Seconds that a probe may take."""
MAX_COPIED_BYTES = 128 << 20
"""Greatest number of bytes that are copied for a probe. Files beyond it are left out."""
_BASH = "/bin/bash"
_CLEAR_SCRIPT = """while IFS= read -r -d '' path; do
  case $path in */) [ -d "${path%/}" ] && [ ! -L "${path%/}" ] && continue;; esac
  rm -rf -- "${path%/}"
done"""


def run_probe(episode: EpisodeContext, sandbox: BaseSandbox, gold: bool) -> str:
    """Return what the probe of the task prints for the state of ``sandbox``; empty without a probe.

    The output of a probe that exceeds its time limit is what it printed until then. A state with
    more changes than can be listed has none but TRUNCATED_CHANGES. ``gold``: the
    state is that of a gold; raises GoldError if the probe then exceeds its time limit or exits with
    a status other than 0.
    """
    task = episode.task
    if task.probe is None:
        return ""
    try:
        copy = sandbox.fork()
    except TooManyChangesError:
        return TRUNCATED_CHANGES
    with copy:
        if not task.probe_paths:
            return _run_probe_script(task, copy, gold)
        with episode.open_sandbox() as pristine:
            if not copy_changes(copy, pristine, task.probe_paths):
                return TRUNCATED_CHANGES
            return _run_probe_script(task, pristine, gold)


def _run_probe_script(task: Task, sandbox: BaseSandbox, gold: bool) -> str:
    result = sandbox.run([_BASH, "-c", task.probe or ""], timeout=PROBE_TIMEOUT)
    if gold and not result.ok:
        how = f"ended with status {result.exit_code}"
        how = f"did not end within {PROBE_TIMEOUT:g} s" if result.timed_out else how
        printed = f"printed {result.output[-500:]!r}" if result.output else "printed nothing"
        raise GoldError(
            f"the probe of {task.id} {how} and {printed}, in the state that the gold reaches; it "
            f"is the script {_beginning(task.probe or '')!r}"
        )
    return result.output


def _beginning(script: str) -> str:
    """Return the first line of a script that is not a comment."""
    lines = (line.strip() for line in script.splitlines())
    first = next((line for line in lines if line and not line.startswith("#")), "")
    return first if first == script.strip() else f"{first} …"


def copy_changes(source: BaseSandbox, target: BaseSandbox, paths: tuple[str, ...]) -> bool:
    """Copy what ``source`` has changed at and below ``paths`` to ``target``. Return False, and copy
    nothing, if it has changed more than can be listed.

    Both must have the same image and layers, and no processes.
    """
    inside = tuple(f"{path.rstrip('/')}/" for path in paths)
    listed = source.changes(digests=False)
    if TRUNCATED_CHANGES in listed:
        return False
    changes = {path: entry for path, entry in listed.items() if f"{path}/".startswith(inside)}
    if not changes:
        return True
    names = [f"{path}/" if entry.kind == "dir" else path for path, entry in changes.items()]
    target.run(
        [_BASH, "-c", _CLEAR_SCRIPT], stdin="\0".join((*names, "")).encode(errors="surrogateescape")
    )
    target.run(
        ["tar", "-xpf", "-", "-C", "/"], stdin=_tar_changes(source, changes), timeout=PROBE_TIMEOUT
    )
    return True


def _tar_changes(sandbox: BaseSandbox, changes: dict[str, FileEntry]) -> bytes:
    """Return the changed files, directories, links and FIFOs as a tar archive."""
    kinds = {"dir": tarfile.DIRTYPE, "link": tarfile.SYMTYPE, "fifo": tarfile.FIFOTYPE}
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, entry in changes.items():
            info = tarfile.TarInfo(path.lstrip("/"))
            info.mode, info.linkname = entry.mode & 0o777, entry.target
            if entry.kind == "file":
                with suppress(OSError):  # larger than the limit
                    data = sandbox.read(path, limit=max(0, MAX_COPIED_BYTES - archive.tell()))
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
            elif entry.kind in kinds:
                info.type = kinds[entry.kind]
                tar.addfile(info)
    return archive.getvalue()
