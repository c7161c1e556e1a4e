"""A box per test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from intercode.sandbox.supervisor.client import KeptSandbox
from support.boxes import open_box


@pytest.fixture
def box() -> Iterator[KeptSandbox]:
    with open_box() as opened:
        yield opened
