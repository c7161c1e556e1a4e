"""Where a dataset's files lie on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from intercode.core.errors import UsageError
from intercode.datasets.fetch import default_dest

_ONLY: ContextVar[Path | None] = ContextVar("_ONLY", default=None)


@contextmanager
def looking_in(root: Path) -> Iterator[None]:
    """Look for data in one directory alone, for a while and in this thread."""
    before = _ONLY.set(root)
    try:
        yield
    finally:
        _ONLY.reset(before)


def roots() -> list[Path]:
    """Where data are looked for: ``INTERCODE_DATA`` first, then where ``fetch`` puts them; or
    where ``looking_in`` says.

    Raises UsageError where ``INTERCODE_DATA`` is no directory.
    """
    if (only := _ONLY.get()) is not None:
        return [only.absolute()]
    given = os.environ.get("INTERCODE_DATA")
    if given and not Path(given).is_dir():
        raise UsageError(f"INTERCODE_DATA is {given!r}, which is no directory")
    return [*([Path(given).absolute()] if given else []), default_dest()]


def find(name: str, *paths: str, how: str = "") -> Path:
    """The first of some files that is there, each below the authors' repository's ``data``, or
    below a data directory alone. ``how``: how to get them, if not by ``fetch``.

    Raises UsageError that says so.
    """
    for root in roots():
        for place in (root, root / "data"):
            for path in paths:
                if (place / path).is_file():
                    return place / path
    how = how or f"run `intercode data fetch {name}`"
    raise UsageError(
        f"no {name} data in {' and '.join(map(str, roots()))} (such as {paths[0]}): {how}, or set "
        "INTERCODE_DATA to a checkout of the authors' repository"
    )
