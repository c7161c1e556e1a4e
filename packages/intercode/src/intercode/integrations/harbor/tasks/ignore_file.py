"""Reads .harborignore files, which leave files out of the tests and the solution of a task."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

from intercode.core.errors import UsageError
from intercode.datasets.files import read_text, require_inside
from intercode_sandbox.lines import split_lines

_NAME = ".harborignore"
_PARTS = ("tests", "solution")
_STEPS = "steps"

Exclusion = Callable[[Path], bool]


def read_exclusion(folder: Path) -> Exclusion:
    """Return a function that says of a path in a task's directory whether it is left out.

    A file has rules as in .gitignore, for its directory and everything below it. A link is left out
    if its target is. Raises UsageError if there is such a file, and ``pathspec`` is not installed,
    and for a directory of that name.
    """
    given, folder = folder, folder.resolve()
    tops = [top for part in _PARTS for top in (folder / part, *folder.glob(f"{_STEPS}/*/{part}"))]
    if not any(next(top.rglob(_NAME), None) for top in tops):
        return lambda _: False
    try:
        from pathspec import GitIgnoreSpec
    except ImportError as e:
        raise UsageError(
            f"{folder} has a {_NAME}, which needs pathspec: pip install 'intercode-gym[harbor]'"
        ) from e

    @cache
    def rules(directory: Path) -> GitIgnoreSpec:
        file = directory / _NAME
        require_inside(file, folder, str(file))
        if os.path.lexists(file) and not file.is_file():
            raise UsageError(f"{file} is not a regular file, so its rules cannot be read")
        return GitIgnoreSpec.from_lines(split_lines(read_text(file)) if file.is_file() else [])

    def is_listed(path: Path) -> bool:
        parts = path.relative_to(folder).parts if path.is_relative_to(folder) else ()
        top = 3 if parts[:1] == (_STEPS,) else 1  # parts of the directory of tests or a solution
        if len(parts) <= top or parts[top - 1] not in _PARTS:
            return False
        return parts[-1] == _NAME or any(
            is_excluded(parts[:end], top, is_directory=end < len(parts) or path.is_dir())
            for end in range(top + 1, len(parts) + 1)
        )

    def is_excluded(parts: tuple[str, ...], top: int, *, is_directory: bool) -> bool:
        """Return what the last rule that matches says; those of deeper directories are later."""
        excluded = False
        for start in range(top, len(parts)):
            name = "/".join(parts[start:]) + "/" * is_directory
            found = rules(folder.joinpath(*parts[:start])).check_file(name).include
            excluded = excluded if found is None else found
        return excluded

    def excludes(path: Path) -> bool:
        path = folder / os.path.relpath(path, given)
        return is_listed(path) or is_listed(path.resolve())

    return excludes
