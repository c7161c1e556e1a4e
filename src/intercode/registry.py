"""Names for things that are loaded when they are first used, with the near name on a typo."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from intercode.errors import UnknownNameError, UsageError

MOST_NAMED, SOME_NAMED = 40, 10
"""Of more names than the first only so many are told in a message."""


def unknown(kind: str, name: str, known: list[str]) -> UnknownNameError:
    """The error for a name that is not among ``known``, with the nearest one if there is any."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    told = sorted(known)
    if len(told) > MOST_NAMED:
        told = [*told[:SOME_NAMED], f"and {len(told) - SOME_NAMED} more"]
    return UnknownNameError(f"unknown {kind} {name!r}; {hint}known: {', '.join(told)}")


def load_object(reference: str) -> Any:
    """Import ``package.module:attribute``; the working directory counts as importable.

    Raises UsageError with the part that failed.
    """
    module_name, _, attribute = reference.partition(":")
    if not module_name or not attribute:
        raise UsageError(f"{reference!r} is not of the form package.module:name")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ImportError as e:
        raise UsageError(f"cannot import {module_name!r} of {reference!r}: {e}") from e
    try:
        return getattr(module, attribute)
    except AttributeError as e:
        raise unknown(f"name in {module_name}", attribute, dir(module)) from e


class Registry:
    """A table of names to ``module:attribute`` references, loaded on first use."""

    def __init__(self, kind: str, entries: dict[str, str]) -> None:
        self.kind = kind
        self._entries = dict(entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def register(self, name: str, reference: str) -> None:
        """Add or replace an entry."""
        self._entries[name] = reference

    @contextmanager
    def including(self, name: str, reference: str) -> Iterator[None]:
        """Have an entry for a while."""
        self._entries[name] = reference
        try:
            yield
        finally:
            del self._entries[name]

    def load(self, name: str) -> Any:
        """The object behind a name, or behind a ``package.module:name`` reference.

        Raises UnknownNameError for a name that is not in the table.
        """
        if name in self._entries:
            return load_object(self._entries[name])
        if ":" in name and "/" not in name:
            return load_object(name)
        raise unknown(self.kind, name, list(self._entries))
