"""Checks the built site: links and anchors, files from elsewhere, two clicks, and a telephone.

    python tools/docs_check.py [--no-browser]

It fails for a link or anchor of a page that does not exist; for a script, style, font or picture
that another server would have to send; and for a page that is more than two clicks away from the
start page.
In headless Chromium it fails for a page that is wider than 390 pixels, raises an error or asks for
anything outside; for a start page that is not dark for a reader who prefers that; and for a search
that finds nothing.
"""

from __future__ import annotations

import argparse
import functools
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

SITE = Path(__file__).parents[1] / "build/site"
CLICKS = 2
WIDTH = 390
_TOO_WIDE = "document.documentElement.scrollWidth > window.innerWidth"
_LIGHTNESS = """() => {
  const context = document.createElement("canvas").getContext("2d");
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, 1, 1);
  const [red, green, blue] = context.getImageData(0, 0, 1, 1).data;
  return (red + green + blue) / 765;
}"""
_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


@dataclass
class Page(HTMLParser):
    """The links, anchors and loaded files of a page."""

    links: set[str] = field(default_factory=set)
    anchors: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        elif tag in _LOADED and values.get("rel") not in ("canonical", "prev", "next"):
            self.files |= {values[_LOADED[tag]]} if _LOADED[tag] in values else set()


def read_pages() -> dict[str, Page]:
    """Return every page of the site by its path."""
    pages = {}
    for path in sorted(SITE.rglob("*.html")):
        page = Page()
        page.feed(path.read_text("utf-8"))
        pages[path.relative_to(SITE).as_posix()] = page
    return pages


def check_links(pages: dict[str, Page]) -> Iterator[str]:
    """Yield a message for each dead link, and for each file that another server sends."""
    for name, page in pages.items():
        for link in sorted(page.links | page.files):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.files:
                    yield f"{name}: loads {link}"
                continue
            target, anchor = urldefrag(urljoin("/" + name, link))
            target = unquote(target).lstrip("/") or "index.html"
            if not (SITE / target).is_file():
                yield f"{name}: {link} does not exist"
            elif anchor and target in pages and unquote(anchor) not in pages[target].anchors:
                yield f"{name}: {link} has no such anchor"


def check_clicks(pages: dict[str, Page]) -> Iterator[str]:
    """Yield a message for each page that the start page does not reach in two clicks."""
    reached = {"index.html"}
    for _ in range(CLICKS):
        reached |= {
            unquote(urldefrag(urljoin("/" + name, link))[0]).lstrip("/")
            for name in reached & pages.keys()
            for link in pages[name].links
            if not urlsplit(link).scheme
        }
    yield from (
        f"{name}: more than {CLICKS} clicks" for name in pages if name not in reached | {"404.html"}
    )


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def serve() -> Iterator[str]:
    """Serve the site on this machine, and yield its address."""
    handler = functools.partial(_QuietHandler, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def check_in_browser(pages: dict[str, Page]) -> Iterator[str]:
    """Yield what a browser finds wrong."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("google-chrome")
    with serve() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": WIDTH, "height": 844})
        faults: list[str] = []
        tab.on("pageerror", lambda error: faults.append(str(error)))
        tab.on(
            "request",
            lambda request: (
                request.url.startswith((address, "data:", "blob:"))
                or faults.append(f"asks for {request.url}")
            ),
        )
        for name in pages:
            tab.goto(address + name, wait_until="load")
            if tab.evaluate(_TOO_WIDE):
                faults.append(f"is wider than {WIDTH} pixels")
            yield from (f"{name}: {fault}" for fault in faults)
            faults.clear()
        tab.close()
        yield from _check_dark(browser, address)
        yield from _check_search(browser, address)
        browser.close()


def _check_dark(browser, address: str) -> Iterator[str]:  # type: ignore[no-untyped-def]
    """Yield a message if the start page is not dark for a reader who prefers that."""
    tab = browser.new_page(color_scheme="dark", viewport={"width": WIDTH, "height": 844})
    tab.goto(address + "index.html")
    if (lightness := tab.evaluate(_LIGHTNESS)) > 0.3:
        yield f"index.html is not dark: the lightness of its background is {lightness:.2f}"
    tab.close()


def _check_search(browser, address: str) -> Iterator[str]:  # type: ignore[no-untyped-def]
    """Yield a message if the search finds nothing for a word of the glossary."""
    tab = browser.new_page(viewport={"width": 1280, "height": 844})
    tab.goto(address + "index.html")
    tab.keyboard.press("Control+k")
    tab.keyboard.type("seccomp")
    try:
        tab.get_by_text("Threat model").last.wait_for(timeout=10_000)
    except Exception as e:
        yield f"the search finds nothing for seccomp: {e}"
    tab.close()


def main() -> None:
    """Check the site."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-browser", action="store_true")
    options = parser.parse_args()
    pages = read_pages()
    if not pages:
        sys.exit(f"{SITE} has no pages; run tools/docs_build.py first")
    faults = [*check_links(pages), *check_clicks(pages)]
    if not options.no_browser:
        faults += check_in_browser(pages)
    links = sum(len(page.links) for page in pages.values())
    print("\n".join(faults) or f"{len(pages)} pages and {links} links are sound")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
