"""Fixtures that the tests of several folders share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from intercode_sandbox.contract import BaseSandbox
from support.browser import Watched, opened
from support.sandboxes import open_test_sandbox


@pytest.fixture
def sandbox() -> Iterator[BaseSandbox]:
    """A sandbox of the test's own."""
    with open_test_sandbox() as opened:
        yield opened


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser that all tests of a module share."""
    yield from opened()


@pytest.fixture
def watched(browser: Any) -> Iterator[Watched]:
    """A page of the browser, which keeps what the console says."""
    watched = Watched(browser)
    yield watched
    watched.page.close()
