"""Creates directories from the templates in this package.

A template has ``@name@`` where a word is filled in. Its file name ends in ``.txt``, so that tools
do not treat it as code of this package.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from intercode.core.errors import UsageError


def require_new_directory(directory: Path) -> None:
    """Raise UsageError unless ``directory`` is absent or empty."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory} exists and is not empty: choose another name")


def read_templates(package: str, folder: str) -> dict[str, str]:
    """Return the templates in a folder of a package and below, by the names of their files."""
    return dict(_walk_templates(resources.files(package).joinpath(folder)))


def write_templates(
    directory: Path, texts: Mapping[str, str], words: Mapping[str, str]
) -> list[str]:
    """Write templates with their words filled in, and return the names of the files."""
    for name, text in texts.items():
        target = directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        filled = re.sub(r"@(\w+)@", lambda found: words[found[1]], text)
        target.write_text(filled, encoding="utf-8")
    return sorted(texts)


def _walk_templates(folder: Traversable, parent: str = "") -> list[tuple[str, str]]:
    templates = []
    for entry in folder.iterdir():
        name = parent + entry.name.removesuffix(".txt")
        if entry.is_dir():
            templates += _walk_templates(entry, f"{name}/")
        else:
            templates.append((name, entry.read_text(encoding="utf-8")))
    return templates
