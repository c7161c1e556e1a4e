"""Times the viewer with a large run, served and as one file, in headless Chromium.

    python benchmarks/bench_view.py [--episodes 10000] [--turns 6] [--output 1500] [--keep DIR]

The episodes are generated: ``--turns`` turns with ``--output`` characters each. ``open`` is until
the command prints its address; the page then has the first rows while the rest is indexed. ``first
list`` is from the navigation to visible rows, ``filter`` from a choice to the filtered rows in the
page, and ``search`` the same for one more letter in the search field; ``episode`` from Enter to its
turns."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from intercode.cli.view import STEP
from intercode.core import trajectories
from intercode.core.types import Score, Step, Trajectory
from intercode.results.report import render
from intercode.results.tables import Table
from intercode.results.view import Library, ViewServer, write_page

RUN = {"environment": "bash", "dataset": "made-up", "agent": "react", "model": "none"}
ROW = ".space .row"
CHANGED = """before => new Promise(done => {
    const same = () => document.querySelector("h1")?.innerText === before;
    const look = () => same() ? setTimeout(look, 1) : done();
    look();
})"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--output", type=int, default=1500, help="characters of an observation")
    parser.add_argument("--keep", type=Path, help="put the files here and leave them")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        target = args.keep or Path(passing)
        rows = measure(target, args.episodes, args.turns, args.output)
    columns = ("step", "served, s", "one file, s")
    title = f"The viewer with {args.episodes:,} episodes"
    digits = tuple((name, 2) for name in columns[1:])
    print(render([Table("view", title, columns, tuple(rows), (), digits)], "text"))


def measure(target: Path, episodes: int, turns: int, output: int) -> list[tuple[Any, ...]]:
    """Return the rows of the table."""
    write(target / "run", episodes, turns, output)
    size = (target / "run" / trajectories.TRAJECTORIES_FILE).stat().st_size
    began = time.perf_counter()
    library = Library([target / "run"], STEP)
    opened = time.perf_counter() - began
    while library.state()["pending"]:
        library.refresh()
    indexed = time.perf_counter() - began
    began = time.perf_counter()
    library.refresh()
    again = time.perf_counter() - began
    began = time.perf_counter()
    packed = write_page(library, target / "page.html")
    written = time.perf_counter() - began
    with ViewServer(library) as server:
        thread = threading.Thread(target=server.serve)
        thread.start()
        try:
            served = browse(server.url)
        finally:
            server.stop()
            thread.join()
    alone = browse((target / "page.html").as_uri())
    return [
        ("open", round(opened, 2), None),
        (f"index {size / 1e6:.0f} MB", round(indexed, 2), None),
        ("index again, nothing new", round(again, 3), None),
        (f"write the file ({packed / 1e6:.1f} MB)", None, round(written, 2)),
        *((name, round(served[name], 3), round(alone[name], 3)) for name in served),
    ]


def browse(url: str) -> dict[str, float]:
    """Return the seconds of each operation, measured in the page."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto("about:blank")
        found = dict(timed(page, url))
        browser.close()
    return found


def timed(page: Any, url: str) -> Iterator[tuple[str, float]]:
    """Return the seconds of each operation, measured from outside the page."""
    began = time.perf_counter()
    page.goto(url)
    page.wait_for_selector(ROW)
    yield "first list", time.perf_counter() - began
    for name, act in (
        ("filter", lambda: page.get_by_label("Hardness").select_option("hard")),
        ("search", lambda: page.locator("#search").press_sequentially("7")),
        ("sort", lambda: page.get_by_role("button", name="Time").click()),
    ):
        before = page.locator("h1").inner_text() if name != "sort" else None
        began = time.perf_counter()
        act()
        if before is None:
            page.wait_for_selector("[aria-sort=descending]")
        else:
            page.evaluate(CHANGED, before)
        yield name, time.perf_counter() - began
    page.locator(ROW).first.focus()
    began = time.perf_counter()
    page.keyboard.press("Enter")
    page.wait_for_selector(".turn")
    yield "episode", time.perf_counter() - began


def write(directory: Path, episodes: int, turns: int, output: int) -> None:
    """Write a generated run with a fixed seed."""
    draw = random.Random(0)
    words = ["alpha", "beta", "gamma", "delta", "/srv/data", "42", "error:", "total"]
    trajectories.write_run_metadata(directory, RUN)
    with (directory / trajectories.TRAJECTORIES_FILE).open("w", encoding="utf-8") as file:
        for n in range(episodes):
            steps = tuple(
                Step(
                    f"grep -c '{draw.choice(words)}' /srv/{draw.randrange(999)}.txt | sort",
                    " ".join(draw.choices(words, k=output // 6)),
                    score=Score(draw.choice([0.0, 0.5, 0.67, 1.0])),
                    thought="I look at what is there before I change it.",
                )
                for _ in range(turns)
            )
            episode = Trajectory(
                f"made-up/{n}",
                n,
                f"Count the {draw.choice(words)} of file {n}.",
                steps,
                end="submitted",
                hardness=draw.choice(["easy", "medium", "hard"]),
                seconds=draw.random() * 60,
                run=RUN,
                id=f"e{n}",
            )
            file.write(json.dumps(trajectories.trajectory_to_row(episode)) + "\n")


if __name__ == "__main__":
    main()
