"""New directories from the templates in this package: ``@name@`` stands for a word, ``.txt`` behind
a name keeps tools from taking a template for a file of ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from intercode.core.errors import UsageError


def require_new_directory(home: Path) -> None:
    """Raise UsageError where there is something at ``home`` already."""
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise UsageError(f"{home} is there already, and not empty: choose another name")


def read_templates(package: str, folder: str) -> dict[str, str]:
    """The templates in a package's folder and below, by the names that the files are to have."""
    return dict(_walk_templates(resources.files(package).joinpath(folder)))


def write_templates(home: Path, texts: Mapping[str, str], words: Mapping[str, str]) -> list[str]:
    """Write the files with their words, and return their names, relative to ``home``."""
    for name, text in texts.items():
        target = home / name
        target.parent.mkdir(parents=True, exist_ok=True)
        filled = re.sub(r"@(\w+)@", lambda found: words[found[1]], text)
        target.write_text(filled, encoding="utf-8")
    return sorted(texts)


def _walk_templates(folder: Traversable, above: str = "") -> list[tuple[str, str]]:
    found = []
    for entry in folder.iterdir():
        name = above + entry.name.removesuffix(".txt")
        if entry.is_dir():
            found += _walk_templates(entry, f"{name}/")
        else:
            found.append((name, entry.read_text(encoding="utf-8")))
    return found
