"""A copy of the workspace without ``intercode/paper``, its entry points and its tests."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from support.sources import write_metadata

ROOT = Path(__file__).parents[2]
COPIED = (
    "packages",
    "tests",
    "docs",
    "benchmarks",
    "examples",
    "README.md",
    "conftest.py",
    "pyproject.toml",
)
DELETED = ("packages/intercode/src/intercode/paper", "tests/paper")
_ENTRY_POINT = re.compile(r"(?m)^.*\bintercode\.paper\b.*\n")


def copy_without_paper(folder: Path) -> dict[str, str]:
    """Copy what the tests of the product need into ``folder``, without the authors' package.

    Returns the environment in which Python imports the copy in place of what is installed.
    """

    def left_out(path: str, names: list[str]) -> list[str]:
        inside = Path(path).relative_to(ROOT)
        return [n for n in names if n == "__pycache__" or str(inside / n) in DELETED]

    for path in map(ROOT.joinpath, COPIED):
        if path.is_dir():
            shutil.copytree(path, folder / path.name, ignore=left_out)
        else:
            shutil.copy2(path, folder)
    metadata = write_metadata(folder / "metadata")
    for path in (*metadata.glob("*/entry_points.txt"), *folder.glob("packages/*/pyproject.toml")):
        path.write_text(_ENTRY_POINT.sub("", path.read_text("utf-8")), "utf-8")
    searched = [metadata, *folder.glob("packages/*/src")]
    left_out_names = re.compile("PYTEST_.*|INTERCODE_REQUIRE")  # the copy lacks what it deletes
    kept = {k: v for k, v in os.environ.items() if not left_out_names.fullmatch(k)}
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(map(str, searched)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
