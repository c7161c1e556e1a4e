"""The page with all its data in one HTML file, compressed in pieces that are opened when needed."""

from __future__ import annotations

import base64
import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from intercode import __version__
from intercode.core.errors import UsageError
from intercode.results.view.library import Library
from intercode.results.view.page import CONNECT_NONE, browser_json, page_head, page_tail

CHUNK_CHARACTERS = 1 << 20
"""Characters of JSON after which a piece is closed. What is looked at costs opening one piece."""


def write_page(library: Library, path: Path) -> int:
    """Write everything that the library holds as one HTML file; its size in bytes.

    The file appears in one move. Raises UsageError where it cannot be written.
    """
    passing = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with passing.open("w", encoding="utf-8") as out:
            _write_document(library, out)
        passing.replace(path)
    except OSError as e:
        raise UsageError(f"cannot write {path}: {e.strerror}") from e
    finally:
        passing.unlink(missing_ok=True)
    return path.stat().st_size


def _write_document(library: Library, out: TextIO) -> None:
    index = library.index()
    out.write(page_head({"mode": "file", "version": __version__}, CONNECT_NONE))
    places: list[dict[str, int]] = [{} for _ in index["runs"]]
    number = -1
    for number, piece in enumerate(_episode_chunks(library)):
        for run, at, _ in piece:
            places[run][str(at)] = number
        texts = ", ".join(f'"{run}/{at}": {text}' for run, at, text in piece)
        out.write(_data_element(f"piece-{number}", f"{{{texts}}}"))
    told = {**index, "places": places, "pieces": number + 1}
    out.write(_data_element("index", browser_json(told)))
    out.write(page_tail())


def _episode_chunks(library: Library) -> Iterator[list[tuple[int, int, str]]]:
    """Every episode as JSON, with its run and position, in pieces."""
    piece: list[tuple[int, int, str]] = []
    size = 0
    for run, at, episode in library.episodes():
        text = browser_json(episode)
        piece.append((run, at, text))
        size += len(text)
        if size >= CHUNK_CHARACTERS:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _data_element(name: str, text: str) -> str:
    """A text as gzip in base64, which holds nothing that could end its element."""
    packed = base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()
    return f'<script type="text/plain" id="{name}">{packed}</script>\n'
