"""What each turn of an episode changed in its files, as text for whoever reads the record.

Nobody who plays is told it. A file is read where its digest is another one than after the turn
before; what was there before the episode is read from the image and the layers on this machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from intercode.core.types import FileEntry
from intercode.environments.base.diffs.change_text import UNKNOWN_STATE, describe_change
from intercode.environments.base.diffs.lower_layers import MAX_FILE_BYTES, PathState, read_lower
from intercode.sandbox.contract import Sandbox

MAX_PATHS, MAX_DIFF_BYTES = 20, 64 << 10
"""Paths that are told of one turn, and bytes of diff."""
OMITTED_PATHS_KEY = "..."
"""The name under which it is said how many paths there are besides; no path is called so."""
Entries = Mapping[str, FileEntry]
_MAX_CACHED_BYTES = 16 << 20  # bytes of contents that are remembered


class FileDiffs:
    """The files of a box as they were when this was made, and after every ``turn``.

    Raises InfrastructureError, here and later, when the box has failed.
    """

    def __init__(self, box: Sandbox) -> None:
        self._sandbox = box
        self._roots = box.base_trees
        self._contents: dict[str, bytes] = {}
        self._cache_bytes_left = _MAX_CACHED_BYTES
        self._entries = box.changes()
        self._cache_contents(self._entries)

    def next_turn(self) -> dict[str, str]:
        """What has changed since the last time, by path; see ``told``."""
        old, new = self._entries, self._sandbox.changes()
        changed = _changed_paths(old, new)
        paths, more = changed[:MAX_PATHS], len(changed) - MAX_PATHS
        made = {p for p in paths if any(e.new for e in (old.get(p), new.get(p)) if e)}
        before = {path: self._path_state(path, path in made) for path in paths}
        self._entries = new
        for path in [p for p in self._contents if old.get(p) != new.get(p)]:
            self._cache_bytes_left += len(self._contents.pop(path, b""))
        self._cache_contents(paths)
        out: dict[str, str] = {}
        room = MAX_DIFF_BYTES
        for path in paths:
            text = describe_change(before[path], self._path_state(path, path in made))
            size = len(text.encode())
            if size > room:
                text = (
                    f"too large: a diff of {size} bytes, where {MAX_DIFF_BYTES} are kept of a turn"
                )
            else:
                room -= size
            if text:
                out[path] = text
        return out | (
            {OMITTED_PATHS_KEY: f"and {more} more file{'s' * (more > 1)}"} if more > 0 else {}
        )

    def _cache_contents(self, paths: Iterable[str]) -> None:
        """Remember what the files at these paths hold, as far as there is room."""
        for path in paths:
            entry = self._entries.get(path)
            if (
                entry is None
                or entry.kind != "file"
                or entry.size > min(MAX_FILE_BYTES, self._cache_bytes_left)
            ):
                continue
            try:
                data = self._sandbox.read_file(path, MAX_FILE_BYTES)
            except OSError:  # something that runs in the background has changed it meanwhile
                continue
            self._contents[path] = data
            self._cache_bytes_left -= len(data)

    def _path_state(self, path: str, made: bool) -> PathState | None:
        """What stands at a path. ``made``: there was nothing before the episode."""
        entry = self._entries.get(path)
        if entry is None:
            return None if made else read_lower(self._roots, path) or UNKNOWN_STATE
        return None if entry.kind == "gone" else PathState(entry, self._contents.get(path))


def _changed_paths(old: Entries, new: Entries) -> list[str]:
    """The paths that differ, sorted, without those that have gone with their directory."""
    paths = [p for p in old.keys() | new.keys() if old.get(p) != new.get(p)]
    gone = {p for p in paths if (new[p].kind == "gone" if p in new else old[p].new)}
    return sorted(p for p in paths if p not in gone or p.rpartition("/")[0] not in gone)
