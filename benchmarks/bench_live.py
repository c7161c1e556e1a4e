"""Opens a thousand live sandboxes without sessions: how many a second, and the memory they take.

    python benchmarks/bench_live.py [--sandboxes 1000] [--threads 4] [--image host]

`bench_density.py` does the same with Bash environments, each with a shell and an episode. What one
run made the kernel keep is not counted by the next, so only the first shows the decrease of the
available memory.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor

from bench_density import machine, memory_rows, need_descriptors

from intercode.results.report import render
from intercode.results.tables import Table
from intercode_sandbox import SandboxSpec, images, open_sandbox


def main() -> None:
    """Open the sandboxes, print the figures, and close them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sandboxes", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--image", default="host")
    options = parser.parse_args()
    need_descriptors(options.sandboxes)
    spec = SandboxSpec(images.resolve(options.image))
    open_sandbox(spec).close()  # starts the launcher
    time.sleep(0.3)
    before, start = machine(), time.perf_counter()
    with ThreadPoolExecutor(options.threads) as threads:
        opened = list(threads.map(lambda _: open_sandbox(spec), range(options.sandboxes)))
    created = options.sandboxes / (time.perf_counter() - start)
    rows = (("created", created, "per s"), *memory_rows(before))
    for sandbox in opened:
        sandbox.close()
    title = f"{options.sandboxes} live sandboxes, {options.threads} threads"
    print(render([Table("live", title, ("what", "value", "unit"), rows)], "text"))


if __name__ == "__main__":
    main()
