"""Resolves symbolic links in paths of a tree, inside the tree and never outside it."""

from __future__ import annotations

from collections.abc import Callable

from intercode_sandbox.errors import DataError

_MAX_SYMLINKS = 40
"""Limit on symbolic links in one path, as in Linux."""


def resolve_links(
    path: str, link_target: Callable[[str], str | None], origin: str, last: bool = True
) -> str:
    """Return a path relative to the root with links, ``.`` and ``..`` resolved.

    ``link_target`` returns the target of a link, None for any other path. ``last``: resolve a link
    in the last part, too. Raises DataError for a loop; the message begins with ``origin``.
    """
    todo, done, links = path.split("/")[::-1], list[str](), 0
    while todo:
        part = todo.pop()
        if part in ("", "."):
            continue
        if part == "..":
            done = done[:-1]
            continue
        target = link_target("/".join([*done, part])) if todo or last else None
        if target is None:
            done.append(part)
            continue
        links += 1
        if links > _MAX_SYMLINKS:
            raise DataError(f"{origin}: too many levels of symbolic links in {path!r}")
        done = [] if target.startswith("/") else done
        todo += target.split("/")[::-1]
    return "/".join(done)
