"""Deletes the images that a test builds."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from intercode_sandbox.images.build import built_images

collect_ignore = [] if find_spec("intercode") else ["test_layers.py"]  # layers of tasks


@pytest.fixture(autouse=True)
def forgotten(tmp_path: Path) -> Iterator[None]:
    """Deletes the records and steps of images that were built in the test's directory."""
    yield
    for record in built_images.built_images():
        if str(tmp_path) in record.spec:
            built_images.delete_built_image(record)
