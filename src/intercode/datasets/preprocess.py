"""What is done to rows before they become tasks: what they lack is filled in, and a hook of the
user's own makes of each row the one to use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from intercode.core.errors import DataError, UsageError
from intercode.core.registry import load_object
from intercode.core.types import EMPTY_MAPPING

Row = tuple[str, Path, Any]
"""A row, after the words for its place and the file it is of."""
PreprocessHook = Callable[[dict[str, Any]], Mapping[str, Any] | None]
"""From a row to the row to use, or to None for none."""


def load_hook(reference: str) -> PreprocessHook:
    """The function behind ``package.module:function`` or ``file.py:function``. Raises UsageError
    for what is not there or cannot be called."""
    found = load_object(reference)
    if not callable(found):
        raise UsageError(f"{reference} is no function of a row")
    return cast(PreprocessHook, found)


def prepare_rows(
    rows: Iterable[Row],
    preprocess: PreprocessHook | None = None,
    defaults: Mapping[str, Any] = EMPTY_MAPPING,
) -> Iterator[Row]:
    """Rows with ``defaults`` for the keys that they lack, each as ``preprocess`` returns it.

    Raises DataError with the row's place where the hook fails.
    """
    for where, path, row in rows:
        if isinstance(row, Mapping):
            row = {**defaults, **row}
            if preprocess is not None:
                try:
                    row = preprocess(row)
                except Exception as e:  # code of the user's own, which may fail in any way
                    name = getattr(preprocess, "__qualname__", repr(preprocess))
                    what = f"{type(e).__name__}: {e}"
                    raise DataError(f"{path}, {where}: the hook {name} failed: {what}") from e
        if row is not None:
            yield where, path, row
