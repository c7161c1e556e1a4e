"""Prepares rows before they become tasks: fills in defaults and calls the user's function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from intercode.core.errors import DataError, UsageError
from intercode.core.types import EMPTY_MAPPING
from intercode_sandbox.registry import load_object

Row = tuple[str, Path, Any]
"""A row's location for messages (such as ``line 3``), its file, and its content."""
PreprocessHook = Callable[[dict[str, Any]], Mapping[str, Any] | None]
"""Takes a row and returns the row to use, or None to leave it out."""


def load_hook(reference: str) -> PreprocessHook:
    """Return the function that ``package.module:function`` or ``file.py:function`` names.

    Raises UsageError if there is no such function.
    """
    hook = load_object(reference)
    if not callable(hook):
        raise UsageError(f"{reference} is not a function")
    return cast(PreprocessHook, hook)


def prepare_rows(
    rows: Iterable[Row],
    preprocess: PreprocessHook | None,
    defaults: Mapping[str, Any] = EMPTY_MAPPING,
) -> Iterator[Row]:
    """Yield each row, after adding ``defaults`` for missing keys and calling ``preprocess``.

    Rows for which ``preprocess`` returns None are left out. Raises DataError with the row's
    location if it fails.
    """
    for where, path, row in rows:
        if isinstance(row, Mapping):
            row = {**defaults, **row}
            if preprocess is not None:
                try:
                    row = preprocess(row)
                except Exception as e:  # the user's code may raise anything
                    name = getattr(preprocess, "__qualname__", repr(preprocess))
                    what = f"{type(e).__name__}: {e}"
                    raise DataError(f"{path}, {where}: the hook {name} failed: {what}") from e
        if row is not None:
            yield where, path, row
