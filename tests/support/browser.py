"""The machine's Chromium without a window, for tests of pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from support import requirements

NAMES = ("chromium", "chromium-browser", "google-chrome")


def program() -> str | None:
    """Return the path of an installed Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def opened() -> Iterator[Any]:
    """Open a browser, and close it afterwards. The test is skipped if there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="needs the extra test (playwright)")
    requirements.require("browser")
    flags = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=flags)
        yield browser
        browser.close()


class Watched:
    """A page that records errors and network requests.

    ``requests`` holds addresses other than the page's own; ``said`` holds the console messages and
    every uncaught error.
    """

    def __init__(self, browser: Any, **options: Any) -> None:
        options = {"viewport": {"width": 1280, "height": 800}, **options}
        self.page = browser.new_page(**options)
        self.said: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", lambda dialog: (self.said.append("dialog"), dialog.dismiss()))

    def open(self, url: str, location: str = "") -> Any:
        """Open an address and a place in its page; wait until it shows something."""
        self.page.goto(url + location)
        self.page.wait_for_selector("main h1, main p.empty:not(:has-text('Reading …'))")
        return self.page

    def press(self, *keys: str) -> None:
        """Press keys, one after another."""
        for key in keys:
            self.page.keyboard.press(key)


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
