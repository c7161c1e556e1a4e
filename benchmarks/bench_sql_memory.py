"""Measures the memory of a live SQL environment that has read or written, for each engine.

    python benchmarks/bench_sql_memory.py [--engines embedded,mysql]

The environments have Spider's tasks in turn (INTERCODE_DATA), and each has run its gold and one
statement. The memory is that of this process, its servers and their files in memory. Each figure is
from a process and servers of its own.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench_sql import separate_cache, spider

from intercode import make


def memory(engine: str, code: str, count: int) -> float:
    """Return the KiB per live environment after this statement, including the server."""
    dataset = spider(None)
    first = make("sql", dataset, engine=engine)
    play(first, 0, code)
    before = used()
    envs = [make("sql", dataset, engine=engine) for _ in range(count)]
    for index, env in enumerate(envs):
        play(env, index, code)
    after = used()
    for env in (*envs, first):
        env.close()
    return (after - before) / count


def play(env: Any, index: int, code: str) -> None:
    """Return an environment whose episode has run this statement."""
    env.reset(options={"task": index % len(env.dataset)})
    env.step(env.task.gold or "")
    env.step(code)


def used() -> float:
    """Return the KiB of this process, its servers (proportional set size) and their files in
    memory."""
    gc.collect()
    total = 0.0
    for stat in Path("/proc").glob("[0-9]*/cmdline"):
        line = stat.read_bytes() if stat.exists() else b""
        if stat.parent.name == str(os.getpid()) or b"mariadbd" in line or b"mysqld" in line:
            rollup = (stat.parent / "smaps_rollup").read_text()
            total += int(rollup.split("Pss:")[1].split()[0])
    home = os.environ.get("INTERCODE_SQL_RUNTIME")
    if home:
        done = subprocess.run(["du", "-sk", home], capture_output=True, text=True, check=False)
        total += int(done.stdout.split()[0]) if done.returncode == 0 else 0
    return total


def in_a_process(engine: str, code: str, count: int) -> float:
    """Run ``memory`` in a process with servers of its own."""
    with separate_cache() as home:
        argv = [sys.executable, __file__, "--engines", engine, "--statement", code]
        environment = {**os.environ, "INTERCODE_SQL_RUNTIME": str(home)}
        argv += ["--count", str(count)]
        output = subprocess.run(argv, env=environment, stdout=subprocess.PIPE, check=True).stdout
    return float(json.loads(output))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engines", default="embedded,mysql")
    parser.add_argument("--statement", help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.statement:
        print(json.dumps(memory(options.engines, options.statement, options.count)))
        return
    for engine in options.engines.split(","):
        for what, code, count in (
            ("read", "SELECT 1", 200),
            ("written", "CREATE TABLE mine (a int)", 50),
        ):
            each = in_a_process(engine, code, count)
            print(f"{engine:10}  {count:4} live, each has {what}: {each:9.0f} KiB each")


if __name__ == "__main__":
    main()
