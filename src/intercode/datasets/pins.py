"""Which files of a public repository a dataset is made of: commit, sizes and checksums."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """One file: its path in the repository, its size in bytes, its SHA-256 as hex.

    Of a file that was too large to be kept here only git's own checksum is known (``git_blob_sha1``
    as ``git hash-object`` prints it), which its size is a part of.
    """

    path: str
    size: int | None = None
    sha256: str = ""
    git_blob_sha1: str = ""


@dataclass(frozen=True, slots=True)
class Pin:
    """The files of a dataset at one commit of a public GitHub repository."""

    repository: str
    commit: str
    files: tuple[PinnedFile, ...]

    @property
    def base_url(self) -> str:
        """Where the files are served, each under its path."""
        return f"https://raw.githubusercontent.com/{self.repository}/{self.commit}"


def load_pins() -> Mapping[str, Pin]:
    """Every pinned dataset by name, from the packaged ``pins.json``."""
    text = resources.files("intercode.datasets").joinpath("pins.json").read_text("utf-8")
    return {
        name: Pin(
            repository=entry["repository"],
            commit=entry["commit"],
            files=tuple(PinnedFile(**row) for row in entry["files"]),
        )
        for name, entry in json.loads(text).items()
    }
