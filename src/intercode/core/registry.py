"""Names for things that are loaded when they are first used, with the near name on a typo."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from intercode.core import plugins
from intercode.core.errors import UnknownNameError, UsageError
from intercode.core.plugins import Plugin

MAX_NAMES_LISTED, NAMES_SHOWN = 40, 10
"""Of more names than the first only so many are told in a message."""
OWN_DISTRIBUTION = "intercode-gym"
"""Where our own names come from."""
_file_import_lock = threading.RLock()  # held while a file is made a module


def unknown_name_error(kind: str, name: str, known: list[str]) -> UnknownNameError:
    """The error for a name that is not among ``known``, with the nearest one if there is any."""
    told = sorted(known)
    if len(told) > MAX_NAMES_LISTED:
        told = [*told[:NAMES_SHOWN], f"and {len(told) - NAMES_SHOWN} more"]
    return UnknownNameError(
        f"unknown {kind} {name!r}; {suggest_name(name, known)}known: {', '.join(told)}"
    )


def suggest_name(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """Words that ask for the nearest of the known names, with a blank behind; empty where none is.

    ``cutoff``: how alike it has to be, as in ``difflib.get_close_matches``."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"did you mean {found[0]!r}? " if found else ""


def load_object(reference: str) -> Any:
    """Import ``package.module:attribute``, where the working directory counts as importable, or
    take ``path/to/file.py:attribute`` from a file that is in no package.

    Raises UsageError with the part that failed.
    """
    module_name, _, attribute = reference.rpartition(":")
    if not module_name or not attribute:
        raise UsageError(f"{reference!r} is not of the form package.module:name or file.py:name")
    if is_file_reference(reference):
        module = _import_file(Path(module_name))
    else:
        module = _import_module(module_name, reference)
    try:
        return getattr(module, attribute)
    except AttributeError as e:
        known = [name for name in dir(module) if not name.startswith("_")]
        raise unknown_name_error(f"name in {module_name}", attribute, known) from e


def is_file_reference(reference: str) -> bool:
    """Whether a reference is one into a file, ``path/to/file.py:attribute``."""
    return reference.rpartition(":")[0].endswith(".py")


def portable_reference(reference: str) -> str:
    """A reference as a result names it: for one into a file its folder, the file, the name and the
    start of the file's SHA-256, which are the same wherever it lies. Raises UsageError for a file
    that cannot be read."""
    if not is_file_reference(reference):
        return reference
    path, _, attribute = reference.rpartition(":")
    file = Path(path).absolute()
    return f"{file.parent.name}/{file.name}:{attribute}@{_file_digest(file)[:8]}"


def _file_digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as e:
        raise UsageError(f"cannot read {path}: {e.strerror}") from e


def _import_module(name: str, reference: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ImportError as e:
        raise UsageError(f"cannot import {name!r} of {reference!r}: {e}") from e


def _import_file(path: Path) -> ModuleType:
    """A file as a module, run once for each content of it, and by one thread."""
    name = f"intercode_file_{path.stem}_{_file_digest(path)[:16]}"
    with _file_import_lock:
        return sys.modules[name] if name in sys.modules else _execute_file(path, name)


def _execute_file(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # the name ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # a dataclass in it asks for its module
    try:
        spec.loader.exec_module(module)
    except Exception as e:
        del sys.modules[name]
        raise UsageError(f"{path} cannot be run: {type(e).__name__}: {e}") from e
    return module


class Registry:
    """A table of names to ``module:attribute`` references, loaded on first use.

    ``group``: the entry points of other packages that add names (see plugins.py). They are looked
    for when a name is not among ours, and ours go first.
    """

    def __init__(self, kind: str, entries: dict[str, str], group: str = "") -> None:
        self.kind, self._group = kind, group
        self._entries = dict(entries)

    def __iter__(self) -> Iterator[str]:
        yield from self._entries
        yield from (name for name in sorted(self._plugins()) if name not in self._entries)

    def __contains__(self, name: str) -> bool:
        return name in self._entries or name in self._plugins()

    def _plugins(self) -> dict[str, Plugin]:
        found = plugins.find_plugins(self._group) if self._group else ()
        return {p.name: p for p in reversed(found)}  # the first of those with one name counts

    def origin(self, name: str) -> str:
        """The package that gives a name, with its version where that is not this one."""
        plugin = None if name in self._entries else self._plugins().get(name)
        return plugin.origin if plugin else OWN_DISTRIBUTION

    def shadowed_plugins(self) -> list[Plugin]:
        """Plugins whose name is taken: by one of ours, or by another package's."""
        found = plugins.find_plugins(self._group) if self._group else ()
        heard = {name: p for name, p in self._plugins().items() if name not in self._entries}
        return [p for p in found if heard.get(p.name) is not p]

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
        """The object behind a name, or behind a reference as ``load_object`` takes.

        Raises UnknownNameError for a name that is not in the table, UsageError for a plugin that
        is broken.
        """
        if name in self._entries:
            return load_object(self._entries[name])
        if is_file_reference(name) or (":" in name and "/" not in name):
            return load_object(name)
        if (plugin := self._plugins().get(name)) is not None:
            return self._load_plugin(plugin)
        raise unknown_name_error(self.kind, name, list(self))

    def _load_plugin(self, plugin: Plugin) -> Any:
        """What a plugin names: an object, or a whole module."""
        try:
            if ":" in plugin.reference:
                return load_object(plugin.reference)
            return importlib.import_module(plugin.reference)
        except Exception as e:  # code of others, which may fail in any way
            raise UsageError(
                f"the {self.kind} {plugin.name!r} of {plugin.origin} cannot be loaded "
                f"({type(e).__name__}: {e}): mend or uninstall that package"
            ) from e
