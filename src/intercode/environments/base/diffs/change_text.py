"""How a change of one path is told."""

from __future__ import annotations

from intercode.core.types import FileEntry
from intercode.environments.base.diffs.lower_layers import MAX_FILE_BYTES, PathState
from intercode.environments.base.diffs.unified import unified_hunks

UNKNOWN_STATE = PathState(FileEntry("device", size=-1))
"""Something that is there, but cannot be seen from here."""


def describe_change(before: PathState | None, after: PathState | None) -> str:
    """How one thing became another; None is nothing. Empty where they are the same.

    It is a line that says what happened, unless a content alone changed, and then the hunks of a
    unified diff where both are texts of at most LARGEST bytes.
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


def _describe_kind(thing: PathState) -> str:
    entry = thing.entry
    if entry.kind == "file":
        return f"file of {_size_text(thing)}"
    return {"dir": "directory", "link": f"symbolic link to {entry.target!r}"}.get(
        entry.kind, entry.kind if thing is not UNKNOWN_STATE else "something not known here"
    )


def _describe_content(before: PathState | None, after: PathState) -> str:
    """What a file holds now against what it held."""
    if before is not None and before.entry.digest == after.entry.digest:
        return ""
    size = (
        _size_text(after) if before is None else f"{_size_text(after)}, {before.entry.size} before"
    )
    texts: list[str] = []
    for thing in (before, after):
        if thing is None:
            texts.append("")
        elif thing.entry.size > MAX_FILE_BYTES:
            return f"too large: {size}; up to {MAX_FILE_BYTES} are compared"
        elif thing.data is None:
            return f"{size}; what it held was not kept"
        else:
            text = _decode_text(thing.data)
            if text is None:
                return f"binary, {size}"
            texts.append(text)
    return unified_hunks(*texts)


def _size_text(thing: PathState) -> str:
    return "1 byte" if thing.entry.size == 1 else f"{thing.entry.size} bytes"


def _decode_text(data: bytes) -> str | None:
    """Bytes as text; None where they are none."""
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None
