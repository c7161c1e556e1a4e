"""The table of all items, and how they are run."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from frozen import commands, episodes, exports, frameworks, messages, replays, results, sandboxes
from frozen.runs import RUNS, item_run
from frozen.session import Item, Session

CHECKED = ("bash", "sql", "python", "ctf", "code")


def all_items() -> dict[str, Callable[[Session], Item]]:
    """Return names and work, the slowest items first."""
    return {
        **dict(replays.log_items()),
        **{f"run-{name}": partial(item_run, name=name) for name in RUNS},
        **{f"check-{name}": partial(commands.check, name=name) for name in CHECKED},
        **messages.ITEMS,
        **frameworks.ITEMS,
        **sandboxes.ITEMS,
        **replays.ITEMS,
        **results.ITEMS,
        **exports.ITEMS,
        **commands.ITEMS,
        **episodes.ITEMS,
    }


def choose(prefixes: Sequence[str]) -> list[str]:
    """Return the names of items that begin with one of the prefixes; all without prefixes."""
    names = list(all_items())
    for prefix in prefixes:
        if not any(name.startswith(prefix) for name in names):
            sys.exit(f"no item begins with {prefix!r}; `python tests/frozen list` prints the names")
    return [name for name in names if not prefixes or name.startswith(tuple(prefixes))]


def produce(names: Sequence[str], jobs: int) -> dict[str, Item]:
    """Run items, ``jobs`` at a time, in a fresh work directory."""
    known = all_items()
    with work_directory() as work:
        session = Session(work)

        def produce_one(name: str) -> tuple[str, Item]:
            began = time.monotonic()
            try:
                item = known[name](session)
            except Exception as e:  # an item that fails is a difference; the others go on
                item = Item({"broken": f"{type(e).__name__}: {session.text(str(e))}"})
            item.seconds = time.monotonic() - began
            summary = f"  {name}: {len(item.exact)} values, {item.seconds:.0f} s"
            print(summary, file=sys.stderr, flush=True)
            return name, item

        with ThreadPoolExecutor(jobs) as pool:
            return dict(pool.map(produce_one, names))


@contextmanager
def work_directory() -> Iterator[Path]:
    """Make a temporary directory, which stays if the variable ``FROZEN_KEEP`` is set."""
    work = Path(tempfile.mkdtemp(prefix="frozen-"))
    try:
        yield work
    finally:
        if "FROZEN_KEEP" in os.environ:
            print(f"work directory: {work}", file=sys.stderr)
        else:
            shutil.rmtree(work, ignore_errors=True)
