"""Reads the files of a task that a variant may change."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from intercode.core.types import Task
from intercode_sandbox.contract import BaseSandbox

SYSTEM_DIRECTORIES = frozenset(
    (
        "bin",
        "boot",
        "dev",
        "etc",
        "lib",
        "lib32",
        "lib64",
        "libx32",
        "media",
        "mnt",
        "opt",
        "proc",
        "root",
        "run",
        "sbin",
        "sys",
        "tmp",
        "usr",
        "var",
    )
)
"""Directories of ``/`` whose files belong to the machine and not to a task."""
_SHARED_DIRECTORIES = frozenset(("srv", "home"))
"""Directories of ``/`` in which each directory is a task's."""
_MAX_ENTRIES = 400
_MAX_TEXT = 8192
_LIST = (
    'for top; do [ -d "$top" ] && find "$top" -xdev \\( -type f -o -type d \\) '
    "-printf '%y\\t%m\\t%s\\t%T@\\t%p\\0'; done"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or directory. ``text``: the content of a small text file, else None. ``seconds``: when
    it was modified, since the epoch."""

    path: str
    is_directory: bool
    mode: int
    size: int
    seconds: float
    text: str | None = None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def task_text(task: Task) -> str:
    """Return everything that says which files a task is about."""
    return "\n".join(filter(None, (task.query, *task.golds, task.setup or "")))


def read_entries(sandbox: BaseSandbox, task: Task) -> Mapping[str, Entry]:
    """Return the files and directories of the directories that a task names, by path.

    Those are the directories of ``/`` that its query, its golds or its set-up name, without the
    machine's own, and the directory in which it begins. Empty if there are none, or if they have
    more than 400 entries.
    """
    tops = _named_directories(task)
    result, status, _ = sandbox.run_bytes(["bash", "-c", _LIST, "list", *tops], timeout=60)
    if status is None:
        return {}
    entries: dict[str, Entry] = {}
    for row in result.decode("utf-8", "replace").split("\0"):
        fields = row.split("\t", 4)
        if len(fields) == 5 and "�" not in row and "\n" not in fields[4]:
            kind, mode, size, seconds, path = fields
            entry = Entry(path, kind == "d", int(mode, 8), int(size), float(seconds))
            entries[path] = entry
    if len(entries) > _MAX_ENTRIES:
        return {}
    return {path: _with_text(sandbox, entries[path]) for path in sorted(entries)}


def _named_directories(task: Task) -> list[str]:
    names: set[str] = set()
    for word in re.findall(r"[\w./-]+", task_text(task)):
        parts = [part for part in word.split("/") if part not in ("", ".", "..")]
        if parts and parts[0] in _SHARED_DIRECTORIES and len(parts) > 1:
            names.add("/".join(parts[:2]))
        elif parts and parts[0] not in SYSTEM_DIRECTORIES | _SHARED_DIRECTORIES:
            names.add(parts[0])
    first = PurePosixPath(task.cwd).parts[1:2]
    if first and first[0] not in SYSTEM_DIRECTORIES:
        names.add(task.cwd.strip("/"))
    tops = sorted(f"/{name}" for name in names)
    return [top for top in tops if not any(top.startswith(f"{other}/") for other in tops)]


def _with_text(sandbox: BaseSandbox, entry: Entry) -> Entry:
    if entry.is_directory or entry.size > _MAX_TEXT:
        return entry
    try:
        text = sandbox.read(entry.path).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return entry
    if "\0" in text or "\r" in text:
        return entry
    return Entry(entry.path, False, entry.mode, entry.size, entry.seconds, text)
