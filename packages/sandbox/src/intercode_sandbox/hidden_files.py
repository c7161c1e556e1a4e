"""Records which files of this machine the image ``host`` must not show, because they hold golds.

That image shows /usr and the installation of the running interpreter. Whoever reads tasks from a
file or an installed package hides it here. ``Image.hidden`` has the paths that were hidden when the
image was resolved.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

_hidden: set[Path] = set()
_packages: set[Path] = set()
_PACKAGE_DIRECTORIES = ("site-packages", "dist-packages")
_PROGRAM_DIRECTORIES = (
    "bin",
    "etc",
    "games",
    "include",
    "lib",
    "lib32",
    "lib64",
    "libexec",
    "libx32",
    "local",
    "man",
    "sbin",
    "share",
    "src",
)


@cache
def _shown_trees() -> tuple[Path, ...]:
    return Path("/usr"), Path(sys.base_prefix).resolve()


@cache
def hide_from_host_image(path: Path) -> None:
    """Hide a directory, or a file with everything beside it. Only the file itself is hidden where
    programs lie beside it, as in /usr/share and site-packages."""
    path = path.resolve()
    if not any(path.is_relative_to(tree) for tree in _shown_trees()):
        return
    folder = path if path.is_dir() else path.parent
    while (folder / "__init__.py").is_file() and (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    _hidden.add(path if _is_shared(folder) and not path.is_dir() else folder)


def hide_package(directory: Path) -> None:
    """Hide the directory of an installed package from every sandbox, because it holds golds."""
    _packages.add(directory.resolve())


def hidden_packages() -> tuple[Path, ...]:
    """Return the hidden packages, sorted."""
    return tuple(sorted(_packages))


def _is_shared(folder: Path) -> bool:
    """Return whether programs that tasks may need lie in a directory."""
    prefixes = (*_shown_trees(), Path("/usr/local"))
    is_program_directory = folder.name in _PROGRAM_DIRECTORIES and folder.parent in prefixes
    return folder in prefixes or is_program_directory or folder.name in _PACKAGE_DIRECTORIES


def hidden_paths() -> tuple[Path, ...]:
    """Return the hidden paths, sorted."""
    return tuple(sorted(_hidden))
