"""A sandbox per test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from intercode.sandbox.contract import Sandbox
from support.sandboxes import open_test_sandbox


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with open_test_sandbox() as opened:
        yield opened
