"""Images that a test builds are forgotten after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from intercode.sandbox.images.build import built_images


@pytest.fixture(autouse=True)
def forgotten(tmp_path: Path) -> Iterator[None]:
    """Removes the notes and steps of what was built below the test's directory."""
    yield
    for record in built_images.built_images():
        if str(tmp_path) in record.spec:
            built_images.delete_built_image(record)
