"""Registries of names whose objects are loaded on first use, with suggestions for typos."""

from __future__ import annotations

import difflib
import importlib
import sys
import threading
from collections.abc import Iterable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from intercode_sandbox import plugins, user_modules
from intercode_sandbox.errors import UnknownNameError, UsageError
from intercode_sandbox.platforms.files import file_digest
from intercode_sandbox.plugins import Plugin

MAX_NAMES_LISTED, NAMES_SHOWN = 40, 10
"""An error message lists all known names, or the first NAMES_SHOWN if there are more than
MAX_NAMES_LISTED."""
_file_import_lock = threading.RLock()


def unknown_name_error(kind: str, name: object, known: list[str]) -> UnknownNameError:
    """Return the error for a name that is not in ``known``, with a suggestion if there is one."""
    listed = sorted(known)
    if len(listed) > MAX_NAMES_LISTED:
        listed = [*listed[:NAMES_SHOWN], f"and {len(listed) - NAMES_SHOWN} more"]
    return UnknownNameError(
        f"unknown {kind} {name!r}; {suggest_name(name, known)}known: {', '.join(listed)}"
    )


def suggest_name(name: object, known: Iterable[str], cutoff: float = 0.5) -> str:
    """Return ``"did you mean 'NAME'? "`` for the most similar known name, or an empty string.

    ``cutoff``: the smallest similarity that counts, as in ``difflib.get_close_matches``.
    """
    matches = difflib.get_close_matches(str(name), list(known), n=1, cutoff=cutoff)
    return f"did you mean {matches[0]!r}? " if matches else ""


def load_object(reference: str) -> Any:
    """Return the object that a reference names.

    ``package.module:attribute`` is imported; the module may be in the working directory, unless an
    installed one has its name. ``path/to/file.py:attribute`` is loaded from a file that need not
    belong to a package. Raises UsageError that names the part that failed.
    """
    module_name, _, attribute = reference.rpartition(":")
    if not module_name or not attribute:
        raise UsageError(f"{reference!r} is not of the form package.module:name or file.py:name")
    module = load_module(module_name, reference)
    try:
        return getattr(module, attribute)
    except AttributeError as e:
        known = [name for name in dir(module) if not name.startswith("_")]
        error = unknown_name_error(f"name in {module_name}", attribute, known)
        error.args = (f"{error}{_unused_file_hint(module_name, attribute)}",)
        raise error from e


def _unused_file_hint(module_name: str, attribute: str) -> str:
    """Return how to load an attribute from a file of the working directory whose name an installed
    module has, or an empty string."""
    if module_name.endswith(".py") or not (file := user_modules.unused_file(module_name)):
        return ""
    return f"; {file} was not loaded, because an installed module has its name: {file}:{attribute}"


def load_module(name: str, reference: str = "") -> ModuleType:
    """Return a module by its name, or from ``path/to/file.py``, as ``load_object`` does.

    ``reference``: what the user wrote, for messages (default: the name). Raises UsageError if it
    cannot be loaded.
    """
    if name.endswith(".py"):
        return _import_file(Path(name))
    try:
        return user_modules.import_named(name)
    except (Exception, SystemExit) as e:
        of = f" of {reference!r}" if reference else ""
        reason = e if isinstance(e, ImportError) else f"{type(e).__name__}: {e}"
        raise UsageError(f"cannot import {name!r}{of}: {reason}") from e


def is_module(name: str) -> bool:
    """Return whether a name is that of a module that can be imported, which may be in the working
    directory. Packages around it are imported."""
    return user_modules.finds_named(name)


def is_file_reference(reference: str) -> bool:
    """Return whether a reference has the form ``path/to/file.py:attribute``."""
    return reference.rpartition(":")[0].endswith(".py")


def portable_reference(reference: str) -> str:
    """Return a reference in the form that results record: the same on every machine.

    For a file, this is ``FOLDER/FILE.py:ATTRIBUTE@DIGEST`` with the first digits of the file's
    SHA-256. Raises DataError for a file that cannot be read.
    """
    if not is_file_reference(reference):
        return reference
    path, _, attribute = reference.rpartition(":")
    file = Path(path).absolute()
    return f"{file.parent.name}/{file.name}:{attribute}@{file_digest(file)[:8]}"


def _import_file(path: Path) -> ModuleType:
    """Import a file as a module. It is executed again only if its content has changed."""
    name = f"intercode_file_{path.stem}_{file_digest(path)[:16]}"
    with _file_import_lock:
        return sys.modules[name] if name in sys.modules else _execute_file(path, name)


def _execute_file(path: Path, name: str) -> ModuleType:
    spec = spec_from_file_location(name, path)
    assert spec is not None  # the name ends in .py
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module
    user_modules.let_import_neighbours(name, path)
    try:
        # the loader would take stale bytecode for a file that is edited within a second
        exec(compile(path.read_bytes(), path, "exec"), vars(module))
    except (Exception, SystemExit) as e:
        del sys.modules[name]
        raise UsageError(f"{path} cannot be run: {type(e).__name__}: {e}") from e
    return module


class Registry:
    """A table of names and their ``module:attribute`` references, which are loaded on first use.

    ``kind``: the word for an entry in messages, such as ``dataset``. ``group``: the group of entry
    points with which packages add names (see plugins.py). ``owner``: the package whose entry points
    are names of this table. Built-in names take precedence, then those of the owner. An entry
    without a colon is the package that adds the name: ``load`` says that it must be installed, and
    no other package may add that name. ``hint`` ends the error for an unknown name.

    >>> from intercode_sandbox.registry import Registry
    >>> shapes = Registry("shape", {"square": "fractions:Fraction"})
    >>> shapes.load("square").__name__
    'Fraction'
    >>> shapes.load("squar")
    Traceback (most recent call last):
    intercode_sandbox.errors.UnknownNameError: unknown shape 'squar'; did you mean 'square'? ...
    """

    def __init__(
        self,
        kind: str,
        entries: dict[str, str],
        group: str = "",
        owner: str = "",
        hint: str = "",
    ) -> None:
        self.kind, self._group, self._owner, self._hint = kind, group, owner, hint
        self._entries = dict(entries)

    def __iter__(self) -> Iterator[str]:
        for name in self._entries:
            if self.is_built_in(name) or name in self._plugins():
                yield name
        yield from (name for name in sorted(self._plugins()) if name not in self._entries)

    def __contains__(self, name: str) -> bool:
        return name in self._entries or name in self._plugins()

    def is_built_in(self, name: str) -> bool:
        """Return whether a name is an entry of this table and not of a plugin."""
        return ":" in self._entries.get(name, "")

    def is_listed(self, name: str) -> bool:
        """Return whether a name is an entry of this table, also one that a package must add."""
        return name in self._entries

    def required_package(self, name: str) -> str:
        """Return the package that adds a name of this table, empty if none is needed."""
        entry = self._entries.get(name, "")
        return "" if ":" in entry else entry

    def _plugins(self) -> dict[str, Plugin]:
        """Return the plugins that are used, by name."""
        found = plugins.find_plugins(self._group) if self._group else ()
        # of equal names the first one, but that of the owner before those of others
        ordered = sorted(found, key=lambda p: p.package != self._owner)
        return {p.name: p for p in reversed(ordered) if self._may_add(p)}

    def _may_add(self, plugin: Plugin) -> bool:
        package = self._entries.get(plugin.name, plugin.package)
        return ":" not in package and plugin.package in (package, self._owner)

    def origin(self, name: str) -> str:
        """Return the package and version that add a name; empty for the table's own names."""
        plugin = None if self.is_built_in(name) else self._plugins().get(name)
        return "" if plugin is None or plugin.package == self._owner else plugin.origin

    def name_of(self, value: object) -> str:
        """Return the built-in name of a class or function, empty if it has none."""
        module, name = getattr(value, "__module__", ""), getattr(value, "__qualname__", "")
        references = {reference: name for name, reference in self._entries.items()}
        return references.get(f"{module}:{name}", "")

    def shadowed_plugins(self) -> list[Plugin]:
        """Return the plugins whose name is taken by a built-in name or by another package."""
        candidates = plugins.find_plugins(self._group) if self._group else ()
        active = self._plugins()
        return [p for p in candidates if active.get(p.name) is not p]

    def register(self, name: str, reference: str) -> None:
        """Add or replace an entry."""
        self._entries[name] = reference

    def load(self, name: str) -> Any:
        """Return the object that a name, or a reference (see ``load_object``), stands for.

        Raises UnknownNameError for an unknown name, and UsageError for a plugin that cannot be
        loaded and for a name whose package is not installed.
        """
        if self.is_built_in(name):
            return load_object(self._entries[name])
        if is_file_reference(name) or (":" in name and "/" not in name):
            return load_object(name)
        if (plugin := self._plugins().get(name)) is not None:
            return self._load_plugin(plugin)
        if package := self.required_package(name):
            raise UsageError(
                f"the {self.kind} {name!r} is a part of {package}, which is not installed: "
                f"pip install {package}"
            )
        error = unknown_name_error(self.kind, name, list(self))
        raise UnknownNameError(f"{error}{self._hint}")

    def load_named(self, name: str) -> Any:
        """Return the object that a name stands for. References are no names: use this for what a
        record says, which must not choose code that runs.

        Raises as ``load``.
        """
        if name not in self:
            raise unknown_name_error(self.kind, name, list(self))
        return self.load(name)

    def _load_plugin(self, plugin: Plugin) -> Any:
        """Return the object or module that a plugin refers to."""
        try:
            module, _, attribute = plugin.reference.partition(":")
            found: Any = importlib.import_module(module)
            return attrgetter(attribute)(found) if attribute else found
        except Exception as e:  # a plugin may raise anything
            raise UsageError(
                f"the {self.kind} {plugin.name!r} of {plugin.origin} cannot be loaded "
                f"({type(e).__name__}: {e}): fix or uninstall that package"
            ) from e
