"""Describes what each turn of an episode changed in the files of its sandbox, for records.

The agent does not see these texts. A file is read again only if its digest differs from that after
the turn before. Its content before the episode comes from the image and the layers on this machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from intercode.core.types import TRUNCATED_CHANGES, FileEntry
from intercode.environments.base.diffs.lower_layers import MAX_FILE_BYTES, PathState, read_lower
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.valid_text import decode_text

MAX_PATHS, MAX_DIFF_BYTES = 20, 64 << 10
"""Greatest number of paths, and of bytes of diff, that are described for one turn."""
OMITTED_PATHS_KEY = "..."
"""The key that says how many further paths changed. No path has this name."""
CONTEXT_LINES = 3
"""Unchanged lines that are shown before and after each change."""
UNKNOWN_STATE = PathState(FileEntry("device", size=-1))
"""A path that exists, but whose state cannot be read from here."""
Entries = Mapping[str, FileEntry]
_MAX_CACHED_BYTES = 16 << 20
_MAX_MATCHED_LINES = 1000
"""Lines that are matched with each other, which takes time in the square of their number. Between
the common beginning and end of two longer texts, every line counts as removed or added."""


class TurnDiffs:
    """What each turn of an episode changed, if that is recorded."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._workspace: object = None
        self._files: FileDiffs | None = None

    def watch(self, workspace: Any) -> None:
        """Begin to compare the files of a workspace, unless that is done. The workspace is another
        one if an episode has begun or was restored."""
        if self._enabled and workspace is not self._workspace:
            self._workspace, self._files = workspace, FileDiffs(workspace.sandbox)

    def next_turn(self, workspace: object) -> dict[str, str]:
        """Return how the turn changed each path of a workspace; empty if none is watched."""
        if self._files is None or workspace is not self._workspace:
            return {}
        return self._files.next_turn()


class FileDiffs:
    """Compares the files of a sandbox with those after the turn before.

    The methods raise InfrastructureError if the sandbox has failed.
    """

    def __init__(self, sandbox: BaseSandbox) -> None:
        self._sandbox = sandbox
        self._roots = sandbox.base_trees
        self._contents: dict[str, bytes] = {}
        self._cache_bytes_left = _MAX_CACHED_BYTES
        self._entries = sandbox.changes()
        self._cache_contents(self._entries)

    def next_turn(self) -> dict[str, str]:
        """Return what changed since the last call, by path. See ``describe_change``."""
        old, new = self._entries, self._sandbox.changes()
        if TRUNCATED_CHANGES in old or TRUNCATED_CHANGES in new:
            self._entries = new
            return {OMITTED_PATHS_KEY: TRUNCATED_CHANGES}
        changed = _changed_paths(old, new)
        paths, omitted = changed[:MAX_PATHS], len(changed) - MAX_PATHS
        created = {p for p in paths if any(e.new for e in (old.get(p), new.get(p)) if e)}
        before = {path: self._path_state(path, path in created) for path in paths}
        self._entries = new
        for path in [p for p in self._contents if old.get(p) != new.get(p)]:
            self._cache_bytes_left += len(self._contents.pop(path, b""))
        self._cache_contents(paths)
        diffs: dict[str, str] = {}
        bytes_left = MAX_DIFF_BYTES
        for path in paths:
            text = describe_change(before[path], self._path_state(path, path in created))
            size = len(text.encode())
            if size > bytes_left:
                limit = f"{MAX_DIFF_BYTES} are kept of a turn"
                text = f"too large: a diff of {size} bytes, where {limit}"
            else:
                bytes_left -= size
            if text:
                diffs[path] = text
        if omitted > 0:
            diffs[OMITTED_PATHS_KEY] = f"and {omitted} more file{'s' * (omitted > 1)}"
        return diffs

    def _cache_contents(self, paths: Iterable[str]) -> None:
        """Read the files at these paths, as far as the cache has room."""
        for path in paths:
            entry = self._entries.get(path)
            if entry is None or entry.kind != "file":
                continue
            if entry.size > min(MAX_FILE_BYTES, self._cache_bytes_left):
                continue
            try:
                data = self._sandbox.read(path, MAX_FILE_BYTES)
            except OSError:  # a background process has changed it since
                continue
            self._contents[path] = data
            self._cache_bytes_left -= len(data)

    def _path_state(self, path: str, created: bool) -> PathState | None:
        """Return the state of a path. ``created``: it did not exist before the episode."""
        entry = self._entries.get(path)
        if entry is None:
            return None if created else read_lower(self._roots, path) or UNKNOWN_STATE
        return None if entry.kind == "gone" else PathState(entry, self._contents.get(path))


def _changed_paths(old: Entries, new: Entries) -> list[str]:
    """Return the paths that differ, sorted. Omits paths that were deleted with their directory."""
    paths = [p for p in old.keys() | new.keys() if old.get(p) != new.get(p)]
    gone = {p for p in paths if (new[p].kind == "gone" if p in new else old[p].new)}
    return sorted(p for p in paths if p not in gone or p.rpartition("/")[0] not in gone)


# ------------------------------------------------------------------- descriptions
def describe_change(before: PathState | None, after: PathState | None) -> str:
    """Return how the state of a path changed. None is a path that does not exist.

    The text is one line that says what happened. If only the content changed, and both contents are
    texts of at most MAX_FILE_BYTES, it is the hunks of a unified diff. It is empty if nothing
    changed.
    """
    if after is None:
        if before is None:
            return ""
        more = " and all that was in it" if before.entry.kind == "dir" else ""
        return f"deleted: {_describe_kind(before)}{more}"
    if after is UNKNOWN_STATE:
        return "as before the episode; what that was is not known here"
    if before is UNKNOWN_STATE:
        return "changed; what it was before is not known here"
    if before is not None and before.entry.kind != after.entry.kind:
        return f"{_describe_kind(before)}, now {_describe_kind(after)}"
    if before is not None and before.entry.target != after.entry.target:
        return f"{_describe_kind(before)}, now to {after.entry.target!r}"
    content = _describe_content(before, after) if after.entry.kind == "file" else ""
    if before is None:
        head = "new file" if content else f"new {_describe_kind(after)}"
    else:
        old, new = before.entry.mode, after.entry.mode
        head = f"mode {old:o}, now {new:o}" if old != new else ""
    return "\n".join(line for line in (head, content) if line)


def _describe_kind(state: PathState) -> str:
    entry = state.entry
    if entry.kind == "file":
        return f"file of {_size_text(state)}"
    return {"dir": "directory", "link": f"symbolic link to {entry.target!r}"}.get(
        entry.kind, entry.kind if state is not UNKNOWN_STATE else "something not known here"
    )


def _describe_content(before: PathState | None, after: PathState) -> str:
    """Return how the content of a file changed."""
    if before is not None and before.entry.digest == after.entry.digest:
        return ""
    size = _size_text(after)
    if before is not None:
        size = f"{size}, {before.entry.size} before"
    texts: list[str] = []
    for state in (before, after):
        if state is None:
            texts.append("")
        elif state.entry.size > MAX_FILE_BYTES:
            return f"too large: {size}; up to {MAX_FILE_BYTES} are compared"
        elif state.data is None:
            return f"{size}; what it held was not kept"
        else:
            text = decode_text(state.data)
            if text is None:
                return f"binary, {size}"
            texts.append(text)
    return unified_hunks(*texts)


def _size_text(state: PathState) -> str:
    return "1 byte" if state.entry.size == 1 else f"{state.entry.size} bytes"


# ------------------------------------------------------------------ unified diffs
def unified_hunks(before: str, after: str) -> str:
    """Return the hunks of a unified diff, without the ``---`` and ``+++`` lines.

    Takes bounded time. Returns an empty string for equal texts.
    """
    if before == after:
        return ""
    matcher = _LineMatcher(_split_lines(before), _split_lines(after))
    lines: list[str] = []
    for group in matcher.get_grouped_opcodes(CONTEXT_LINES):
        first, last = group[0], group[-1]
        lines.append(f"@@ -{_hunk_range(first[1], last[2])} +{_hunk_range(first[3], last[4])} @@")
        for kind, a, b, c, d in group:
            if kind == "equal":
                lines += _prefix_lines(" ", matcher.old[a:b])
            else:
                lines += _prefix_lines("-", matcher.old[a:b])
                lines += _prefix_lines("+", matcher.new[c:d])
    return "\n".join(lines)


class _LineMatcher(SequenceMatcher[str]):
    """Matches lines like difflib, but only between the common beginning and end of both texts."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        super().__init__()
        self.old, self.new = old, new

    def get_opcodes(self) -> list[tuple[str, int, int, int, int]]:  # type: ignore[override]
        old, new = self.old, self.new
        least = min(len(old), len(new))
        head = next((i for i in range(least) if old[i] != new[i]), least)
        rest = least - head
        tail = next((i for i in range(rest) if old[-1 - i] != new[-1 - i]), rest)
        a, b = old[head : len(old) - tail], new[head : len(new) - tail]
        if max(len(a), len(b)) > _MAX_MATCHED_LINES:
            inner = [("replace", 0, len(a), 0, len(b))]
        else:
            inner = [(*code,) for code in SequenceMatcher(None, a, b).get_opcodes()]
        return [
            ("equal", 0, head, 0, head),
            *((kind, i + head, j + head, k + head, n + head) for kind, i, j, k, n in inner),
            ("equal", head + len(a), len(old), head + len(b), len(new)),
        ]


def _split_lines(text: str) -> list[str]:
    """Return the lines with their newlines. No other character ends a line."""
    *lines, rest = text.split("\n")
    return [f"{line}\n" for line in lines] + ([rest] if rest else [])


def _hunk_range(start: int, stop: int) -> str:
    """Return a range of lines as the header of a hunk writes it.

    Lines count from 1. An empty range has the number of the line before it.
    """
    count = stop - start
    return f"{start + 1}" if count == 1 else f"{start + (count > 0)},{count}"


def _prefix_lines(prefix: str, lines: Sequence[str]) -> list[str]:
    out: list[str] = []
    for line in lines:
        out.append(prefix + line.removesuffix("\n"))
        if not line.endswith("\n"):
            out.append("\\ No newline at end of file")
    return out
