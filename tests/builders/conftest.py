"""Images that a test builds are forgotten after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from intercode.builders import made


@pytest.fixture(autouse=True)
def forgotten(tmp_path: Path) -> Iterator[None]:
    """Removes the notes and steps of what was built below the test's directory."""
    yield
    for record in made.records():
        if str(tmp_path) in record.spec:
            made.forget(record)
