"""Proves a dataset: every gold runs and scores 1, twice alike, and doing nothing does not."""

from __future__ import annotations

import hashlib
import queue
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from intercode import datasets
from intercode.envs import make
from intercode.envs.base import InterCodeEnv
from intercode.errors import GoldError, InfrastructureError, UsageError
from intercode.runner.findings import KINDS, CheckReport, Finding, read_signs
from intercode.types import SUCCESS, Dataset, Network, Profile, Score, Task

_APART = 1.1
"""Seconds between the two runs of a gold at least: what prints the time gives itself away."""


def check(
    dataset: str | Dataset,
    *,
    profile: Profile = "standard",
    image: str | None = None,
    network: Network = "none",
    parallel: int = 2,
    timeout: float = 10.0,
) -> CheckReport:
    """Play every gold of a dataset twice, and nothing once, and report what is wrong.

    ``timeout`` is what a gold may take, in seconds, like any action. Raises UnknownNameError and
    UsageError for a dataset or image that is not there; the box failing is a finding.
    """
    chosen = datasets.load(dataset) if isinstance(dataset, str) else dataset
    if parallel < 1:
        raise UsageError(f"parallel is {parallel}; it must be at least 1")
    settings = {"profile": profile, "image": image, "network": network, "timeout": timeout}
    rows = {i: _Row(task) for i, task in enumerate(chosen.tasks)}
    golds = {i: row for i, row in rows.items() if row.task.gold is not None}
    with _pool(chosen, settings, parallel) as over:
        facts = over(lambda env, _: env.facts(), [0])[0]
        over(lambda env, i: _guarded(env, i, golds[i], _first), golds)
        time.sleep(_APART if golds else 0.0)
        over(lambda env, i: _guarded(env, i, golds[i], _second), golds)
    found = list(_static(chosen))
    found += [f for row in rows.values() for f in row.found]
    order = {task.id: n for n, task in reversed(list(enumerate(chosen.tasks)))}
    found.sort(key=lambda f: order[f.task])
    return CheckReport(
        chosen.name,
        len(chosen),
        tuple(f for f in found if f.kind in KINDS),
        tuple(f for f in found if f.kind not in KINDS),
        facts,
        {row.task.id: row.first.print for row in golds.values() if row.first is not None},
    )


def against(report: CheckReport, prints: Mapping[str, str], name: str) -> CheckReport:
    """The report, with a fault for each gold that did something else in an earlier check."""
    changed = tuple(
        Finding(task, "volatile", f"differs from what it did in {name}")
        for task, seen in report.prints.items()
        if prints.get(task, seen) != seen
    )
    return replace(report, faults=report.faults + changed)


# ------------------------------------------------------------------ one task
@dataclass(slots=True)
class _Play:
    """What one run of a gold did, as an agent's action; ``at``: seconds since the epoch."""

    output: str
    status: int | None
    timed_out: bool
    changes: tuple[str, ...]
    at: float

    @property
    def print(self) -> str:
        text = repr((self.output, self.status, self.changes))
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


class _Row:
    """A task, what was found on it, and what its gold did at first."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.found: list[Finding] = []
        self.first: _Play | None = None
        self.start: Score | None = None

    def add(self, kind: str, detail: str) -> None:
        """One more finding."""
        self.found.append(Finding(self.task.id, kind, detail))


def _guarded(
    env: InterCodeEnv, i: int, row: _Row, work: Callable[[InterCodeEnv, int, _Row], None]
) -> None:
    """One pass over one task; a box that fails gets a second chance."""
    kept = list(row.found)
    for chance in (1, 2):
        try:
            work(env, i, row)
            break
        except GoldError as e:
            row.add("time-out", str(e))
            break
        except InfrastructureError as e:
            row.found = list(kept)
            if chance == 2:
                row.add("box-failed", f"{type(e).__name__}: {e}")


def _play(env: InterCodeEnv, code: str) -> _Play:
    at = time.time()
    output, _, _, _, info = env.step(code)
    return _Play(output, info["exit_code"], info["timed_out"], tuple(info["changes"]), at)


def _first(env: InterCodeEnv, i: int, row: _Row) -> None:
    """The gold runs, scores 1, and prints no error."""
    env.reset(options={"task": i})
    row.first = None
    play = _play(env, row.task.golds[0])
    if play.timed_out:
        row.add("time-out", f"not done after {env.timeout:g} s")
        return
    row.first = play
    if play.status is None or play.status > 1:
        row.add("fails", f"exit status {play.status}")
    elif play.status == 1:
        row.add("status-1", "exit status 1")
    row.found += read_signs(row.task.id, play.output)
    _must_be_1(row, "gold-below-1", env.score(), "the gold")


def _second(env: InterCodeEnv, i: int, row: _Row) -> None:
    """Doing nothing scores less; the gold does the same again; every further gold scores 1."""
    if row.first is None:
        return
    env.reset(options={"task": i})
    start = env.score()
    if start.success:
        row.add("noop-scores-1", f"reward {start.value:g} right after reset")
    play = _play(env, row.task.golds[0])
    if _difference(row.first, play) and int(row.first.at // 3600) != int(play.at // 3600):
        row.first = _replay(env, i, row)  # files got new dates with the hour: compare within it
    if difference := _difference(row.first, play):
        row.add("volatile", difference)
    _must_be_1(row, "gold-below-1", env.score(), "the gold")
    for n, gold in enumerate(row.task.golds[1:], 1):
        env.reset(options={"task": i})
        play = _play(env, gold)
        row.found += [
            Finding(f.task, f.kind, f"further gold {n}: {f.detail}")
            for f in read_signs(row.task.id, play.output)
        ]
        _must_be_1(row, "also-below-1", env.score(), f"further gold {n}")
    env.reset(options={"task": i})
    again = env.score()
    if (again.value, again.details) != (start.value, start.details) and not row.found:
        row.add("reset-differs", f"nothing done scored {start.value:g}, then {again.value:g}")


def _replay(env: InterCodeEnv, i: int, row: _Row) -> _Play:
    """The gold once more, at another second than the last time."""
    time.sleep(_APART)
    env.reset(options={"task": i})
    return _play(env, row.task.golds[0])


def _must_be_1(row: _Row, kind: str, score: Score, what: str) -> None:
    if score.value < SUCCESS and all(f.kind != kind for f in row.found):
        parts = ", ".join(f"{k} {v:.3g}" for k, v in score.parts.items())
        row.add(kind, f"{what} scored {score.value:.3f} ({parts})")


def _difference(a: _Play, b: _Play) -> str:
    """What differs between two runs, in words; empty where nothing does."""
    pairs = (("output", a.output, b.output), ("exit status", a.status, b.status))
    words = [what for what, x, y in pairs if x != y]
    if a.changes != b.changes:
        words.append("changed files")
    return f"{', '.join(words)} differed between two runs" if words else ""


# ------------------------------------------------------------- the whole
def _static(dataset: Dataset) -> Iterator[Finding]:
    """What shows without running anything."""
    seen: dict[tuple[object, ...], int] = {}
    for n, task in enumerate(dataset.tasks):
        keys: list[tuple[object, ...]] = [("duplicate-id", task.id)]
        if task.query.strip():
            keys.append(("duplicate-query", task.files, " ".join(task.query.split()).lower()))
        else:
            yield Finding(task.id, "empty-query", "the query is empty")
        if task.gold is None:
            yield Finding(task.id, "no-gold", "there is no gold to play")
        else:
            keys.append(("duplicate-gold", task.files, task.setup, task.gold.strip()))
        for key in keys:
            first = seen.setdefault(key, n)
            if first != n:
                yield Finding(task.id, str(key[0]), f"as {dataset.tasks[first].id}, task {first}")


@contextmanager
def _pool(
    dataset: Dataset, settings: Mapping[str, Any], parallel: int
) -> Iterator[Callable[..., list[Any]]]:
    """A function that runs work(env, i) for many i, each thread on an environment of its own."""
    envs: list[InterCodeEnv] = [
        make(dataset.environment, dataset, **settings) for _ in range(parallel)
    ]
    free: queue.SimpleQueue[InterCodeEnv] = queue.SimpleQueue()
    for env in envs:
        free.put(env)

    def one(work: Callable[[InterCodeEnv, int], Any], i: int) -> Any:
        env = free.get()
        try:
            return work(env, i)
        finally:
            free.put(env)

    try:
        with ThreadPoolExecutor(parallel) as threads:
            yield lambda work, ids: list(threads.map(lambda i: one(work, i), ids))
    finally:
        for env in envs:
            env.close()
