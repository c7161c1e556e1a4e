"""A box per test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from intercode.sandbox.contract import Sandbox
from support.boxes import open_box


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with open_box() as opened:
        yield opened
