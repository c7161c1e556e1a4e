"""What each turn of an episode changed in its files, as text for whoever reads the record.

Nobody who plays is told it. A file is read where its digest is another one than after the turn
before; what was there before the episode is read from the image and the layers on this machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from intercode.core.types import FileEntry
from intercode.environments.base.diffs.change_text import UNKNOWN, told
from intercode.environments.base.diffs.lower_layers import LARGEST, Thing, below
from intercode.sandbox.supervisor.client import KeptSandbox

MOST_FILES, MOST_TEXT = 20, 64 << 10
"""Paths that are told of one turn, and bytes of diff."""
MORE = "..."
"""The name under which it is said how many paths there are besides; no path is called so."""
Entries = Mapping[str, FileEntry]
_MOST_KEPT = 16 << 20  # bytes of contents that are remembered


class FileDiffs:
    """The files of a box as they were when this was made, and after every ``turn``.

    Raises InfrastructureError, here and later, when the box has failed.
    """

    def __init__(self, box: KeptSandbox) -> None:
        self._box = box
        self._roots = box.trees
        self._contents: dict[str, bytes] = {}
        self._room = _MOST_KEPT
        self._entries = box.changes()
        self._read(self._entries)

    def turn(self) -> dict[str, str]:
        """What has changed since the last time, by path; see ``told``."""
        old, new = self._entries, self._box.changes()
        changed = _changed(old, new)
        paths, more = changed[:MOST_FILES], len(changed) - MOST_FILES
        made = {p for p in paths if any(e.new for e in (old.get(p), new.get(p)) if e)}
        before = {path: self._stands(path, path in made) for path in paths}
        self._entries = new
        for path in [p for p in self._contents if old.get(p) != new.get(p)]:
            self._room += len(self._contents.pop(path, b""))
        self._read(paths)
        out: dict[str, str] = {}
        room = MOST_TEXT
        for path in paths:
            text = told(before[path], self._stands(path, path in made))
            size = len(text.encode())
            if size > room:
                text = f"too large: a diff of {size} bytes, where {MOST_TEXT} are kept of a turn"
            else:
                room -= size
            if text:
                out[path] = text
        return out | ({MORE: f"and {more} more file{'s' * (more > 1)}"} if more > 0 else {})

    def _read(self, paths: Iterable[str]) -> None:
        """Remember what the files at these paths hold, as far as there is room."""
        for path in paths:
            entry = self._entries.get(path)
            if entry is None or entry.kind != "file" or entry.size > min(LARGEST, self._room):
                continue
            try:
                data = self._box.read_file(path, LARGEST)
            except OSError:  # something that runs in the background has changed it meanwhile
                continue
            self._contents[path] = data
            self._room -= len(data)

    def _stands(self, path: str, made: bool) -> Thing | None:
        """What stands at a path. ``made``: there was nothing before the episode."""
        entry = self._entries.get(path)
        if entry is None:
            return None if made else below(self._roots, path) or UNKNOWN
        return None if entry.kind == "gone" else Thing(entry, self._contents.get(path))


def _changed(old: Entries, new: Entries) -> list[str]:
    """The paths that differ, sorted, without those that have gone with their directory."""
    paths = [p for p in old.keys() | new.keys() if old.get(p) != new.get(p)]
    gone = {p for p in paths if (new[p].kind == "gone" if p in new else old[p].new)}
    return sorted(p for p in paths if p not in gone or p.rpartition("/")[0] not in gone)
