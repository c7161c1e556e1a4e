"""Writes the page with all its data to one HTML file. The data are compressed in chunks that the
page opens when needed."""

from __future__ import annotations

import base64
import gzip
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from intercode import __version__
from intercode.core.errors import UsageError
from intercode.results.view.library import Library
from intercode.results.view.page import CONNECT_NONE, browser_json, page_head, page_tail

CHUNK_CHARACTERS = 1 << 20
"""Characters of JSON after which a chunk is closed. Showing an episode costs opening one chunk."""


def write_page(library: Library, path: Path) -> int:
    """Write everything in the library to one HTML file, and return its size in bytes.

    The file is replaced atomically. Raises UsageError if it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8") as out:
            _write_document(library, out)
        temporary.replace(path)
    except OSError as e:
        raise UsageError(f"cannot write {path}: {e.strerror}") from e
    finally:
        with suppress(OSError):
            temporary.unlink()
    return path.stat().st_size


def _write_document(library: Library, out: TextIO) -> None:
    index = library.index()
    out.write(page_head({"mode": "file", "version": __version__}, CONNECT_NONE))
    chunk_of: list[dict[str, int]] = [{} for _ in index["runs"]]
    number = -1
    for number, chunk in enumerate(_episode_chunks(library)):
        for run, at, _ in chunk:
            chunk_of[run][str(at)] = number
        texts = ", ".join(f'"{run}/{at}": {text}' for run, at, text in chunk)
        out.write(_data_element(f"chunk-{number}", f"{{{texts}}}"))
    data = {**index, "chunk_of": chunk_of, "chunks": number + 1, "tests": library.success_tests()}
    out.write(_data_element("index", browser_json(data)))
    out.write(page_tail())


def _episode_chunks(library: Library) -> Iterator[list[tuple[int, int, str]]]:
    """Yield every episode as JSON, with its run and position, in chunks."""
    chunk: list[tuple[int, int, str]] = []
    size = 0
    for run, at, episode in library.episodes():
        text = browser_json(episode)
        chunk.append((run, at, text))
        size += len(text)
        if size >= CHUNK_CHARACTERS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _data_element(name: str, text: str) -> str:
    """Return a script element with a text as gzip in base64, which contains nothing that could
    close the element."""
    packed = base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()
    return f'<script type="text/plain" id="{name}">{packed}</script>\n'
