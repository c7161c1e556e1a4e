"""Finds the files of datasets on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from intercode.core.errors import UsageError
from intercode_sandbox.platforms.paths import cache_root

_OVERRIDE: ContextVar[Path | None] = ContextVar("data root", default=None)


def fetched_data_root() -> Path:
    """Return the directory of fetched files, which has the layout of the authors' repository."""
    return cache_root() / "data"


@contextmanager
def use_data_root(root: Path) -> Iterator[None]:
    """Search for data in ``root`` only, within this context and in this thread."""
    before = _OVERRIDE.set(root)
    try:
        yield
    finally:
        _OVERRIDE.reset(before)


def data_roots() -> list[Path]:
    """Return the directories that are searched for data: ``INTERCODE_DATA``, then that of fetched
    files; within ``use_data_root``, only its directory.

    Raises UsageError if ``INTERCODE_DATA`` is not a directory.
    """
    if (only := _OVERRIDE.get()) is not None:
        return [only.absolute()]
    given = os.environ.get("INTERCODE_DATA")
    if given and not Path(given).is_dir():
        raise UsageError(f"INTERCODE_DATA is {given!r}, which is not a directory")
    return [*([Path(given).absolute()] if given else []), fetched_data_root()]


def find_data_file(name: str, *paths: str, hint: str = "") -> Path:
    """Return the first of ``paths`` that exists, below the ``data`` of the authors' repository or
    below a data directory.

    Raises UsageError with ``hint``, which says how to get the file (default: with ``fetch``).
    """
    for root in data_roots():
        for folder in (root, root / "data"):
            for path in paths:
                if (folder / path).is_file():
                    return folder / path
    hint = hint or f"run `intercode list --fetch {name}`"
    searched = " and ".join(map(str, data_roots()))
    raise UsageError(
        f"no {name} data in {searched} (such as {paths[0]}): {hint}, or set "
        "INTERCODE_DATA to a checkout of the authors' repository"
    )
