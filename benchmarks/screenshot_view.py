"""Plays two small runs of the starter suite and takes the screenshots of docs/view.md.

    python benchmarks/screenshot_view.py docs

The pages are those of `intercode view` for the two runs, in headless Chromium: the runs in the
light theme, an episode in the dark theme, the comparison, and the episodes at 390 pixels, as a
telephone shows them. The runs are played by functions that know a part of the golds. It fails if a
page writes to the browser's console, asks for anything outside, or is wider than its window."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

import intercode
from intercode.datasets import load
from intercode.results.view import Library, ViewServer

TASKS = 24
PAGES: tuple[tuple[str, str, str, tuple[int, int]], ...] = (
    ("view-runs-light", "#/", "light", (1280, 240)),
    ("view-episode-dark", "#/episode/1/{failed}?run=1", "dark", (1280, 720)),
    ("view-comparison-light", "#/compare/0/1", "light", (1280, 480)),
    ("view-episodes-390", "#/list?run=1", "light", (390, 640)),
    ("view-comparison-390-dark", "#/compare/0/1", "dark", (390, 640)),
)
"""Name of the file, address in the page, theme, and size of the window in pixels."""
_TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


def knowing(name: str, every: int) -> Callable[[list[dict[str, str]]], str]:
    """Return a model that looks around first, and that does not know each ``every``-th gold."""
    golds = [(task.query, task.gold) for task in load("starter").tasks]

    def answer(messages: list[dict[str, str]]) -> str:
        said = "\n".join(message["content"] for message in messages)
        number, gold = next((n, g) for n, (query, g) in enumerate(golds) if query in said)
        turn = sum(message["role"] == "assistant" for message in messages)
        code = "ls -l" if turn == 0 else gold if number % every else "pwd"
        return f"```bash\n{code}\n```"

    answer.__name__ = name
    return answer


def play(directory: Path) -> int:
    """Play the runs, and return the position of an episode that the second did not solve."""
    for name, every in (("careful", 6), ("hasty", 3)):
        run = intercode.evaluate(
            "starter",
            "try-again",
            model=knowing(name, every),
            limit=TASKS,
            max_turns=3,
            out=directory / name,
            quiet=True,
        )
    return next(n for n, episode in enumerate(run.episodes) if not episode.success)


def take(browser: Any, url: str, scheme: str, size: tuple[int, int], target: Path) -> None:
    """Write the screenshot of one page."""
    width, height = size
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": height})
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda r: r.url.startswith("http://127.0.0.1") or faults.append(r.url))
    page.goto(url)
    page.wait_for_selector("main h1, main table")
    page.wait_for_load_state("networkidle")
    if page.evaluate(_TOO_WIDE):
        faults.append(f"wider than {width} pixels")
    page.screenshot(path=target)
    page.close()
    print(f"{target}: {target.stat().st_size} bytes")
    if faults:
        sys.exit(f"{target.name}: {'; '.join(faults)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, help="where the PNG files go")
    args = parser.parse_args()
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        failed = play(Path(folder))
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        with ViewServer(Library([Path(folder)])) as server:
            thread = threading.Thread(target=server.serve)
            thread.start()
            try:
                for name, place, scheme, size in PAGES:
                    url = server.url + place.format(failed=failed)
                    take(browser, url, scheme, size, args.directory / f"{name}.png")
            finally:
                server.stop()
                thread.join()
        browser.close()


if __name__ == "__main__":
    main()
