"""How a change of one path is told."""

from __future__ import annotations

from intercode.core.types import FileEntry
from intercode.environments.base.diffs.lower_layers import LARGEST, Thing
from intercode.environments.base.diffs.unified import hunks

UNKNOWN = Thing(FileEntry("device", size=-1))
"""Something that is there, but cannot be seen from here."""


def told(before: Thing | None, after: Thing | None) -> str:
    """How one thing became another; None is nothing. Empty where they are the same.

    It is a line that says what happened, unless a content alone changed, and then the hunks of a
    unified diff where both are texts of at most LARGEST bytes.
    """
    if after is None:
        if before is None:
            return ""
        more = " and all that was in it" if before.entry.kind == "dir" else ""
        return f"deleted: {_name(before)}{more}"
    if after is UNKNOWN:
        return "as before the episode; what that was is not known here"
    if before is UNKNOWN:
        return "changed; what it was before is not known here"
    if before is not None and before.entry.kind != after.entry.kind:
        return f"{_name(before)}, now {_name(after)}"
    if before is not None and before.entry.target != after.entry.target:
        return f"{_name(before)}, now to {after.entry.target!r}"
    content = _content(before, after) if after.entry.kind == "file" else ""
    if before is None:
        head = "new file" if content else f"new {_name(after)}"
    else:
        old, new = before.entry.mode, after.entry.mode
        head = f"mode {old:o}, now {new:o}" if old != new else ""
    return "\n".join(line for line in (head, content) if line)


def _name(thing: Thing) -> str:
    entry = thing.entry
    if entry.kind == "file":
        return f"file of {_bytes(thing)}"
    return {"dir": "directory", "link": f"symbolic link to {entry.target!r}"}.get(
        entry.kind, entry.kind if thing is not UNKNOWN else "something not known here"
    )


def _content(before: Thing | None, after: Thing) -> str:
    """What a file holds now against what it held."""
    if before is not None and before.entry.digest == after.entry.digest:
        return ""
    size = _bytes(after) if before is None else f"{_bytes(after)}, {before.entry.size} before"
    texts: list[str] = []
    for thing in (before, after):
        if thing is None:
            texts.append("")
        elif thing.entry.size > LARGEST:
            return f"too large: {size}; up to {LARGEST} are compared"
        elif thing.data is None:
            return f"{size}; what it held was not kept"
        else:
            text = _text(thing.data)
            if text is None:
                return f"binary, {size}"
            texts.append(text)
    return hunks(*texts)


def _bytes(thing: Thing) -> str:
    return "1 byte" if thing.entry.size == 1 else f"{thing.entry.size} bytes"


def _text(data: bytes) -> str | None:
    """Bytes as text; None where they are none."""
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None
