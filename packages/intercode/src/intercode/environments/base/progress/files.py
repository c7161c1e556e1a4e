"""How far the files of an agent are from those of a gold, compared with the initial ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import NamedTuple

from intercode.core.types import FileEntry, State
from intercode.environments.base.progress.sequences import text_similarity

CONTENT, MODE = 0.8, 0.2
"""The distance of two files whose contents, or whose permissions, have nothing in common."""
EXTRA = 0.5
"""The distance of a path that the gold does not make or change, in changed paths of the gold."""
_LEAST = 0.05
_UNKNOWN = FileEntry("device", size=-1, new=False)
"""A path that existed, of which no more is known."""
_ARCHIVE = re.compile(r"\.(?:tar|tgz|t?gz|bz2|xz|zst|zip|7z|cpio|z)\b", re.IGNORECASE)


class FileState(NamedTuple):
    """What is at a path. ``text``: its content, None if it is not known."""

    entry: FileEntry
    text: str | None = None


def same_entry(a: FileEntry, b: FileEntry) -> bool:
    """Return whether two changes of one path are equal. Times and owners do not count. What is
    unread is never equal."""
    if a.is_unread or b.is_unread:
        return False
    if a.kind == "link":
        return a.target == b.target
    return (a.mode, a.size, a.digest) == (b.mode, b.size, b.digest)


def distance(a: FileState | None, b: FileState | None) -> float:
    """Return how far two states of a path are from each other, from 0 to 1. None: nothing is
    there."""
    if a is None or b is None:
        return float(a is not b)
    x, y = a.entry, b.entry
    if x.size < 0 or y.size < 0:
        return 0.0 if x == y else CONTENT
    if x.kind != y.kind:
        return 1.0
    if x.kind == "link":
        return float(x.target != y.target)
    total = CONTENT * _content_distance(a, b)
    if x.mode != y.mode:
        total += MODE * max((x.mode ^ y.mode).bit_count() / 12, _LEAST)
    return total


def _content_distance(a: FileState, b: FileState) -> float:
    is_unread = a.entry.is_unread or b.entry.is_unread
    if not is_unread and (a.entry.size, a.entry.digest) == (b.entry.size, b.entry.digest):
        return 0.0
    if a.text is not None and b.text is not None:
        return max(1.0 - text_similarity(a.text, b.text), _LEAST / 5)
    return 0.5 if a.entry.size and b.entry.size else 1.0


@dataclass(frozen=True)
class FileProgress:
    """The files of an agent against those of a gold and those before the first action."""

    agent: State
    gold: State

    @cached_property
    def _initial(self) -> Mapping[str, FileState]:
        texts = {**self.agent.initial_texts, **self.gold.initial_texts}
        entries = {**self.agent.initial_files, **self.gold.initial_files}
        return {path: FileState(entry, texts.get(path)) for path, entry in entries.items()}

    @cached_property
    def paths(self) -> list[str]:
        """The paths that the gold changes."""
        return [p for p in self._all_paths if distance(self._before(p), self._in(self.gold, p))]

    @cached_property
    def _all_paths(self) -> list[str]:
        return sorted({*self.agent.files, *self.gold.files, *self._initial})

    @cached_property
    def share(self) -> float:
        """The share of the gold's changes that the agent has made, less what it did beside them.

        At most 1, and negative if the files are farther from the gold's than the initial ones.
        Changes of the agent alone count as shares of one change if the gold changes nothing.
        """
        total = sum(self._path_progress(path) for path in self.paths)
        return (total - sum(self._extras.values())) / max(len(self.paths), 1)

    @cached_property
    def destroyed(self) -> list[str]:
        """The paths whose content the agent removed, and the gold keeps."""
        return sorted(p for p in self._all_paths if self._is_destroyed(p))

    def _before(self, path: str) -> FileState | None:
        """Return what was at a path before the first action."""
        if path in self._initial:
            known = self._initial[path]
            return None if known.entry.kind == "gone" else known
        changed = self.agent.files.get(path) or self.gold.files[path]
        return None if changed.new else FileState(_UNKNOWN)

    def _in(self, state: State, path: str) -> FileState | None:
        """Return what is at a path in a state."""
        entry = state.files.get(path)
        if entry is not None:
            return None if entry.kind == "gone" else FileState(entry, state.texts.get(path))
        prepared = self.gold.initial_files.get(path)
        if prepared is not None and prepared.new:  # the setup made it, and it would be listed
            return None
        return self._before(path)

    def _path_progress(self, path: str) -> float:
        """Return how much of one change of the gold the agent made, from -1 to 1."""
        if self._is_destroyed(path):
            return -1.0
        before, gold = self._before(path), self._in(self.gold, path)
        now = self._in(self.agent, path)
        ratio = distance(now, gold) / distance(before, gold)
        least = 0.0 if now is None and self._is_elsewhere(before) else -1.0
        return max(1.0 - ratio, least)

    def _is_elsewhere(self, before: FileState | None) -> bool:
        """Return whether the agent has what was at a path at another one."""
        return before is not None and before.entry.digest in self._digests_of_agent

    @cached_property
    def _extras(self) -> Mapping[str, float]:
        """How far paths that the gold leaves alone are from what they were."""
        paths, copies = set(self.paths), _digests(e for e in self.gold.files.values() if e.size)
        extras = {}
        for path in self._all_paths:
            before, now = self._before(path), self._in(self.agent, path)
            far = distance(before, now)
            if path in paths or not far:
                continue
            is_copy = before is None and now is not None and now.entry.digest in copies
            extras[path] = 0.0 if is_copy else max(far, EXTRA) if before else EXTRA
        return extras

    def _is_destroyed(self, path: str) -> bool:
        before, now = self._before(path), self._in(self.agent, path)
        if before is None or before.entry.kind == "dir" or before == now:
            return False
        if self._in(self.gold, path) is None:
            return now is None and self._lost(before.entry)
        if now is None or before.entry.kind != now.entry.kind:
            is_moved = now is None and path in self.paths and self._is_elsewhere(before)
            return not is_moved and distance(now, self._in(self.gold, path)) > 0
        return self._lost_content(path, before, now)

    def _lost_content(self, path: str, before: FileState, now: FileState) -> bool:
        """Return whether a file that the gold leaves alone has lost half of its content."""
        if path in self.paths or before.entry.kind != "file":
            return False
        return _content_distance(before, now) >= 0.5

    def _lost(self, entry: FileEntry) -> bool:
        """Return whether the gold keeps a removed file under another name or in an archive, and
        the agent has not made that."""
        if entry.kind != "file" or not entry.size:
            return False
        if entry.digest and entry.digest in self._made_by_gold.values():
            return entry.digest not in self._digests_of_agent
        archives = [p for p in self._made_by_gold if _ARCHIVE.search(PurePosixPath(p).name)]
        return bool(archives) and all(p not in self.agent.files for p in archives)

    @cached_property
    def _made_by_gold(self) -> Mapping[str, str]:
        """The new files of the gold, with their digests."""
        files = self.gold.files.items()
        return {path: entry.digest for path, entry in files if entry.new and entry.kind == "file"}

    @cached_property
    def _digests_of_agent(self) -> frozenset[str]:
        return _digests(self.agent.files.values())


def _digests(entries: Iterable[FileEntry]) -> frozenset[str]:
    """Return the digests of the contents that are known."""
    return frozenset(e.digest for e in entries if e.digest and not e.is_unread)
