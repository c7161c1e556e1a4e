"""Tools of the benchmarks: rounds of contenders that take turns, records that add up, CPU time."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

_GROUPS = Path("/sys/fs/cgroup/cpuacct")
_TICKS = os.sysconf("SC_CLK_TCK")


def commit() -> str:
    """Return the commit of this program, with a mark if files differ from it."""
    words = ["git", "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty"]
    here = Path(__file__).parent
    done = subprocess.run(words, cwd=here, capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Record:
    """Results in a file of JSON lines that later runs continue: those of this commit, and with
    equal ``settings``. ``results`` are lists of JSON values."""

    def __init__(self, path: Path, *settings: Any) -> None:
        self._path, self._key = path, [commit(), *settings]
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
        size = len(self._key)
        self.results: list[list[Any]] = [line[size:] for line in lines if line[:size] == self._key]

    @property
    def commit(self) -> str:
        return str(self._key[0])

    def add(self, *result: Any) -> None:
        """Append a result to the file and to ``results``."""
        self.results.append([*result])
        with self._path.open("a") as file:
            file.write(json.dumps([*self._key, *result]) + "\n")


def search_path(checkout: Path) -> str:
    """Return the PYTHONPATH with which the packages of a checkout are imported."""
    return os.pathsep.join(map(str, [checkout / "src", *sorted(checkout.glob("packages/*/src"))]))


def sandbox_module(name: str = "") -> ModuleType:
    """Return the package of sandboxes, or a module of it, in the tree that is measured: commits
    have it under two names. The second is looked for last: this checkout may be installed."""
    package = "intercode.sandbox" if find_spec("intercode.sandbox") else "intercode_sandbox"
    return import_module(f"{package}.{name}" if name else package)


def cache_root() -> Path:
    """Return the cache of the tree that is measured."""
    root: Path = _paths_module().cache_root()
    return root


def _paths_module() -> ModuleType:
    """Return the module of directories, which older commits have under other names."""
    for name in ("platforms.paths", "host.paths"):
        with suppress(ImportError):
            return sandbox_module(name)
    return import_module("intercode.core.paths")


@dataclass(frozen=True)
class Contender:
    """An operation to time. ``work`` is timed; ``after`` is not. It runs in every ``every``-th
    round, ``in_a_row`` times, and the median is over all of these."""

    work: Callable[[], object]
    after: Callable[[], object] = int
    every: int = 1
    in_a_row: int = 1


def take_turns(contenders: Mapping[str, Contender], rounds: int) -> dict[str, float]:
    """Return the median milliseconds of each contender, over rounds in which all take turns, so
    that other load on the machine affects all of them."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(-1, rounds):  # the first round is not counted: it loads modules and data
        for name, contender in contenders.items():
            if number > 0 and number % contender.every:
                continue
            for _ in range(contender.in_a_row):
                start = time.perf_counter()
                contender.work()
                took = (time.perf_counter() - start) * 1000
                contender.after()
                if number >= 0:
                    times[name].append(took)
    return {name: statistics.median(taken) for name, taken in times.items()}


class Processor:
    """Measures the processor time, user and system, that this process and its children use from now
    on.

    It uses a control group of its own if possible (version 1 of cpuacct, as root). Otherwise it
    measures the whole machine, which is meaningful on an idle machine only. ``exact`` says which.
    """

    def __init__(self) -> None:
        self._group: Path | None = None
        with suppress(OSError):
            line = next(
                x
                for x in Path("/proc/self/cgroup").read_text().splitlines()
                if x.split(":")[1] == "cpuacct"
            )
            group = _GROUPS / line.split(":")[2].lstrip("/") / f"intercode-bench-{os.getpid()}"
            group.mkdir()
            (group / "cgroup.procs").write_text("0")
            self._group = group
        self.exact = self._group is not None

    def used(self) -> float:
        """Return the seconds so far."""
        if self._group is not None:
            return int((self._group / "cpuacct.usage").read_text()) / 1e9
        return whole_machine()

    def close(self) -> None:
        """Leave the group with all its processes, and remove it."""
        if self._group is None:
            return
        inside, outside = self._group / "cgroup.procs", self._group.parent / "cgroup.procs"
        for _ in range(100):  # a process that is ending can still be in the group
            for pid in inside.read_text().split():
                with suppress(OSError):  # the process has ended
                    outside.write_text(pid)
            try:
                self._group.rmdir()
                return
            except OSError:
                time.sleep(0.05)


def whole_machine() -> float:
    """Return the seconds of processor time that this machine has used since it was started."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, soft = map(int, fields[:7])
    return (user + nice + system + irq + soft) / _TICKS
