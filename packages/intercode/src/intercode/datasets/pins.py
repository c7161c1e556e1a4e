"""The files that a dataset consists of, pinned to a commit of a public repository."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from intercode.core.decoding import decode_as


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """One file: its path in the repository, its size in bytes, its SHA-256 as hex.

    For files that are too large for this project, only Git's own checksum is known
    (``git_blob_sha1`` as ``git hash-object`` prints it); it covers the size.
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
        """The URL under which each file is served by its path."""
        return f"https://raw.githubusercontent.com/{self.repository}/{self.commit}"


def load_pins() -> Mapping[str, Pin]:
    """Return every pinned dataset by name, from the packaged ``pins.json``."""
    text = resources.files("intercode.datasets").joinpath("pins.json").read_text("utf-8")
    pins: Mapping[str, Pin] = decode_as(Mapping[str, Pin], json.loads(text), "pins.json")
    return pins
