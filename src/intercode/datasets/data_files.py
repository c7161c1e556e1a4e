"""Where a dataset's files lie on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from intercode.core.errors import UsageError
from intercode.core.paths import cache_root

_OVERRIDE: ContextVar[Path | None] = ContextVar("_ONLY", default=None)


def fetched_data_root() -> Path:
    """Where fetched files are kept, laid out as in the authors' repository."""
    return cache_root() / "data"


@contextmanager
def use_data_root(root: Path) -> Iterator[None]:
    """Look for data in one directory alone, for a while and in this thread."""
    before = _OVERRIDE.set(root)
    try:
        yield
    finally:
        _OVERRIDE.reset(before)


def data_roots() -> list[Path]:
    """Where data are looked for: ``INTERCODE_DATA`` first, then where ``fetch`` puts them; or
    where ``looking_in`` says.

    Raises UsageError where ``INTERCODE_DATA`` is no directory.
    """
    if (only := _OVERRIDE.get()) is not None:
        return [only.absolute()]
    given = os.environ.get("INTERCODE_DATA")
    if given and not Path(given).is_dir():
        raise UsageError(f"INTERCODE_DATA is {given!r}, which is no directory")
    return [*([Path(given).absolute()] if given else []), fetched_data_root()]


def find_data_file(name: str, *paths: str, hint: str = "") -> Path:
    """The first of some files that is there, each below the authors' repository's ``data``, or
    below a data directory alone. ``how``: how to get them, if not by ``fetch``.

    Raises UsageError that says so.
    """
    for root in data_roots():
        for place in (root, root / "data"):
            for path in paths:
                if (place / path).is_file():
                    return place / path
    hint = hint or f"run `intercode data fetch {name}`"
    raise UsageError(
        f"no {name} data in {' and '.join(map(str, data_roots()))} (such as {paths[0]}): {hint}, or set "
        "INTERCODE_DATA to a checkout of the authors' repository"
    )
