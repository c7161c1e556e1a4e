"""Builds wheels for tests: a package of one module with entry points."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.sources import SOURCES


def wheel(folder: Path, name: str, files: Mapping[str, str], points: Mapping[str, str]) -> Path:
    """Build a wheel of version 1.0 in a folder. ``files``: path to text; ``points``: ``group:name``
    to reference."""
    info = f"{name}-1.0.dist-info"
    groups: dict[str, list[str]] = {}
    for key, reference in points.items():
        group, _, point = key.partition(":")
        groups.setdefault(group, []).append(f"{point} = {reference}")
    lines = [f"[intercode.{group}]\n" + "\n".join(rows) for group, rows in groups.items()]
    texts = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
        f"{info}/entry_points.txt": "\n".join(lines) + "\n",
    }
    rows = [_row(path, text) for path, text in texts.items()]
    texts[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"])
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in texts.items():
            archive.writestr(inside, text)
    return path


def _row(path: str, text: str) -> str:
    data = text.encode()
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(data)}\n"


def venv_with(folder: Path, *wheels: Path) -> Path:
    """Return the Python of a new environment with these wheels, this package and its
    dependencies."""
    pytest.importorskip("pip", reason="pip installs the wheels of this test")
    make = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(make, check=True, timeout=120)
    python = folder / "bin" / "python"
    install = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-compile",
        "--disable-pip-version-check",
        *map(str, wheels),
    ]
    subprocess.run(install, check=True, timeout=120)
    site = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    ours = [*SOURCES, sysconfig.get_path("purelib")]
    Path(site, "ours.pth").write_text("\n".join(ours) + "\n")
    return python
