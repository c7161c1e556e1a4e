"""A sandbox that the tests of several folders take."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from intercode_sandbox.contract import BaseSandbox
from support.sandboxes import open_test_sandbox


@pytest.fixture
def sandbox() -> Iterator[BaseSandbox]:
    """A sandbox of the test's own."""
    with open_test_sandbox() as opened:
        yield opened
