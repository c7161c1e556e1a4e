"""Imports a user's own modules by their location, without a change of the search path.

A directory in ``sys.path`` is searched by every import of every package, so a file of data could
take the place of a module that is imported late. Here, a directory is searched for the module that
the user has named, and for what modules from that directory import. Nothing in it replaces a module
of the standard library or of an installed package.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType


class _UserModules(MetaPathFinder):
    """Finds modules that no other finder finds, in the directories of a user's modules.

    It is the first of the finders and asks the others, because they would take any directory for a
    package.
    """

    def __init__(self) -> None:
        self._directories: dict[str, tuple[str, ...]] = {}  # by the first name of a module
        self._named = threading.local()

    def register(self, module: str, directories: tuple[str, ...]) -> None:
        """Let a module import what is in these directories."""
        self._directories[module] = directories
        self._install()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module of the user is, or None for any other module."""
        if path is not None or fullname in sys.stdlib_module_names:
            return None  # a part of a package, which knows its directory; or a missing module
        directories = self._directories.get(fullname)
        if directories is None and fullname == getattr(self._named, "module", None):
            directories = (os.getcwd(),)
        directories = directories or self._directories.get(_importing_package())
        if directories is None:
            return None
        other = self._find_elsewhere(fullname, target)
        if other is not None and not _is_plain_directory(other):
            return other
        spec = PathFinder.find_spec(fullname, list(directories), target)
        if spec is None or (other is not None and spec.loader is None):
            return other
        self._directories[fullname] = directories
        return spec

    def _find_elsewhere(self, fullname: str, target: ModuleType | None) -> ModuleSpec | None:
        """Return what the other finders find."""
        finders = (finder for finder in sys.meta_path if finder is not self)
        found = (finder.find_spec(fullname, None, target) for finder in finders)
        return next((spec for spec in found if spec is not None), None)

    def import_named(self, name: str) -> ModuleType:
        """Import a module that the user has named, which may be in the working directory."""
        with self._searching_for(name):
            return importlib.import_module(name)

    def finds_named(self, name: str) -> bool:
        """Return whether ``import_named`` finds a module. Packages around it are imported."""
        with self._searching_for(name):
            try:
                return importlib.util.find_spec(name) is not None
            except (ImportError, ValueError):
                return False

    @contextmanager
    def _searching_for(self, name: str) -> Iterator[None]:
        """Search the working directory for a module, in this thread."""
        self._install()
        before = getattr(self._named, "module", None)
        self._named.module = name.partition(".")[0]
        try:
            yield
        finally:
            self._named.module = before

    def _install(self) -> None:
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)


def _is_plain_directory(spec: ModuleSpec) -> bool:
    """Return whether a module is a directory that belongs to no installed package."""
    parts = {part for path in spec.submodule_search_locations or () for part in Path(path).parts}
    return spec.loader is None and parts.isdisjoint({"site-packages", "dist-packages"})


_finder = _UserModules()
import_named, finds_named = _finder.import_named, _finder.finds_named


def let_import_neighbours(module: str, file: Path) -> None:
    """Let a module that was made from a file import what is beside the file, and what is in the
    working directory if the file is below it."""
    here, directory = Path.cwd(), file.absolute().parent
    above = here in directory.parents
    _finder.register(module, (str(directory), str(here)) if above else (str(directory),))


def unused_file(name: str) -> str:
    """Return the file of the working directory that the name of a loaded module could mean, but
    does not. Empty if there is none."""
    path, loaded = Path(*name.split(".")), getattr(sys.modules.get(name), "__file__", None)
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file() and not (loaded and file.samefile(loaded)):
            return str(file)
    return ""


def _importing_package() -> str:
    """Return the first name of the module whose code imports."""
    frame = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name != __name__ and name.partition(".")[0] not in ("importlib", "_frozen_importlib"):
            return name.partition(".")[0]
        frame = frame.f_back  # type: ignore[assignment]
    return ""
