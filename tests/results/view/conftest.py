"""Pages to test in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from intercode.results.view import Library, write_page
from support.browser import browser as browser
from support.browser import watched as watched
from support.view_runs import serving, write_run


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs of the same tasks: one solves every third task, the other every second."""
    write_run(tmp_path / "runs" / "first")
    write_run(tmp_path / "runs" / "second", solves=2, model="m-2", image_digest="sha256:bb")
    return tmp_path / "runs"


@pytest.fixture
def single(tmp_path: Path) -> Callable[[Path], str]:
    """Writes a directory of runs to one file and returns its address."""

    def make(directory: Path) -> str:
        write_page(Library([directory]), tmp_path / "page.html")
        return (tmp_path / "page.html").as_uri()

    return make


@pytest.fixture
def served(runs: Path) -> Iterator[str]:
    """The address of a served page."""
    with serving(Library([runs])) as address:
        yield address
