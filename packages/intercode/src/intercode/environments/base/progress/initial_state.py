"""Reads what partial credit needs to know of files: what they hold, and what was there before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from intercode.core.types import TRUNCATED_CHANGES, FileEntry, Task
from intercode.environments.base.diffs.initial_files import initial_file_entries
from intercode.environments.base.diffs.lower_layers import MAX_FILE_BYTES, read_lower
from intercode_sandbox.contract import BaseSandbox

_MAX_PATHS = 200
"""Paths of which more is read than whether they exist."""
_MAX_BYTES = 1 << 20
"""Bytes of content that are read of one state."""

Entries = Mapping[str, FileEntry]


def read_texts(sandbox: BaseSandbox, entries: Entries) -> dict[str, str]:
    """Return the content of the files among these entries that are short texts."""
    texts: dict[str, str] = {}
    left = _MAX_BYTES
    for path, entry in _first(entries):
        if entry.kind != "file" or entry.size > min(MAX_FILE_BYTES, left):
            continue
        try:
            data = sandbox.read(path, MAX_FILE_BYTES)
        except OSError:  # a background process has changed it since
            continue
        left -= len(data)
        _add_text(texts, path, data)
    return texts


def read_initial_state(
    sandbox: BaseSandbox, task: Task, changes: Entries
) -> tuple[dict[str, FileEntry], dict[str, str]]:
    """Return the entries and texts, before the setup of the task, of changed paths that existed.

    They come from the image and the layers on this machine, and from the task's initial files.
    """
    entries: dict[str, FileEntry] = {}
    texts: dict[str, str] = {}
    for path, changed in _first(changes):
        if changed.new or path == TRUNCATED_CHANGES:
            continue
        state = read_lower(sandbox.base_trees, path)
        if state is not None:
            entries[path] = replace(state.entry, new=False)
            _add_text(texts, path, state.data)
    initial = initial_file_entries(task.initial_files) if task.initial_files else {}
    for path in changes.keys() & initial.keys():
        entries[path] = replace(initial[path], new=False)
    for file in task.initial_files:
        if file.path in changes and file.kind == "file" and len(file.data) <= MAX_FILE_BYTES:
            _add_text(texts, file.path, file.data)
    return entries, texts


def _first(entries: Entries) -> Iterable[tuple[str, FileEntry]]:
    return sorted(entries.items())[:_MAX_PATHS]


def _add_text(texts: dict[str, str], path: str, data: bytes | None) -> None:
    if data is None or b"\0" in data:
        return
    try:
        texts[path] = data.decode()
    except UnicodeDecodeError:
        texts[path] = data.decode("latin-1")
