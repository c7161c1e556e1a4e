"""Makes a Jupyter notebook of each tutorial in docs/tutorials.

    python tools/notebooks.py [DIRECTORY]

A page is the only source: its text becomes cells in Markdown, its Python and its commands become
cells of code. A block whose first line is ``# NAME.py`` is written to that file. Output that the
page shows is left out, because a cell prints its own. Links to other pages become plain text. The
notebooks are written to the directory, by default build/notebooks.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.md"))
_BLOCK = re.compile(
    r"^```(?P<language>\w+)\n(?P<body>.*?)^```$(?:\n+```\n.*?^```$)?", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"\[([^]]+)\]\((?!\w+://)[^)]*\)")
_NEEDED = re.compile(r"It needs\s`pip install ([\w-]+)`")
_DEFAULT = "intercode-lab"
_SETUP = """\
# On a hosted notebook this installs the package; elsewhere it is there already.
import importlib.util

if importlib.util.find_spec("{module}") is None:
    %pip install -q {package}

from intercode_sandbox import describe_choice
from intercode_sandbox.tiers.protections import threat_model_of

tier = describe_choice().split()[0]
print(f"sandboxes: {{describe_choice()}}")
print(f"protects against: {{threat_model_of(tier)}}")"""
_ADVICE = """\
This takes the strongest sandbox that the machine allows, and says what it protects against.
If it fails, the error names the least change that helps. On a hosted notebook that is usually
`INTERCODE_SANDBOX=landlock`, which protects against accidents and not against an attacker."""


def setup(page: str) -> str:
    """Return the first cell of code: it installs what the page says, or else everything."""
    found = _NEEDED.search(page)
    package = found[1] if found else _DEFAULT
    return _SETUP.format(package=package, module=package.replace("-", "_"))


def notebook(page: str) -> dict[str, Any]:
    """Return the notebook of a page, in version 4.5 of the format."""
    cells, end = [], 0
    for block in _BLOCK.finditer(page):
        cells += [
            _text(page[end : block.start()]),
            _code(_as_cell(block["language"], block["body"])),
        ]
        end = block.end()
    cells.append(_text(page[end:]))
    title, *rest = [cell for cell in cells if cell["source"]]
    cells = [title, _code(setup(page)), _text(_ADVICE), *rest]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": [{"id": f"cell-{n}", **cell} for n, cell in enumerate(cells)],
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _as_cell(language: str, body: str) -> str:
    """Return the code of a cell for a block of a page. Raises ValueError for another language."""
    if found := re.match(r"# ([\w.-]+)\n", body):
        return f"%%writefile {found[1]}\n{body}"
    if language == "python":
        return body
    if language == "console":
        return "%%bash -e\n" + "".join(f"{command}\n" for command in _commands(body))
    raise ValueError(f"a tutorial has Python and commands (console), but not {language}")


def _commands(body: str) -> Iterator[str]:
    """Yield the commands of a block, without what they print."""
    for line in body.splitlines():
        if line.startswith("$ "):
            yield line.removeprefix("$ ")


def _text(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": _LINK.sub(r"\1", source).strip()}


def _code(source: str) -> dict[str, Any]:
    empty: dict[str, Any] = {"execution_count": None, "outputs": []}
    return {"cell_type": "code", "metadata": {}, "source": source.rstrip(), **empty}


def write(folder: Path) -> list[Path]:
    """Write the notebook of each tutorial to a directory, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for page in TUTORIALS:
        path = folder / f"{page.stem}.ipynb"
        path.write_text(json.dumps(notebook(page.read_text("utf-8")), indent=1) + "\n", "utf-8")
        paths.append(path)
    return paths


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/notebooks"
    print(*write(target), sep="\n")
