"""A sandbox that the tests of several folders take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from intercode_sandbox.contract import BaseSandbox


@pytest.fixture
def sandbox() -> Iterator[BaseSandbox]:
    """A sandbox of the test's own."""
    from support.sandboxes import open_test_sandbox  # absent where the system has no sandboxes

    with open_test_sandbox() as opened:
        yield opened
