"""Plays a dataset with threads, each with an environment and an agent of its own."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from intercode import trajectories
from intercode.config import EvalConfig
from intercode.errors import UsageError
from intercode.models import Model
from intercode.runner.episode import Player
from intercode.runner.plan import Plan, begin, make_plan
from intercode.runner.progress import Progress
from intercode.types import Trajectory

_Event = Trajectory | BaseException | None
"""What a worker reports: an episode, what the whole run fails with, or None at its end."""


def evaluate(config: EvalConfig, *, model: Model | None = None, quiet: bool = False) -> Path:
    """Play what is still to be played and return the run's directory.

    Every episode is on disk as soon as it ends; the same configuration and ``out`` go on where an
    earlier call stopped. ``model`` takes the place of the one that the configuration names.
    Raises UsageError for what cannot be (an ``out`` that holds another run, say),
    ModelRefusedError and SandboxUnavailableError at once when they happen.
    """
    return run_plan(make_plan(config, model), quiet=quiet)


def run_plan(plan: Plan, *, quiet: bool = False) -> Path:
    """As ``evaluate``, for a plan made before."""
    begin(plan)
    with _alone(plan.out):
        pending = plan.pending()
        progress = Progress(len(plan.chosen), plan.done())
        with _Workers(plan, pending) as workers:
            for trajectory in workers:
                if not quiet:
                    progress.add(trajectory)
        if not quiet and pending:
            progress.finish()
    return plan.out


class _Workers:
    """The threads of a run. Iterating gives episodes as they end, written already."""

    def __init__(self, plan: Plan, pending: list[int]) -> None:
        self._plan = plan
        self._over = threading.Event()
        self._tasks: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        for index in pending:
            self._tasks.put(index)
        self._count = min(plan.config.parallel, len(pending))
        # daemons: Ctrl-C must not wait for what an endpoint takes minutes to answer
        self._threads = [
            threading.Thread(target=self._work, name=f"episode-{n}", daemon=True)
            for n in range(self._count)
        ]

    def __enter__(self) -> _Workers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def __iter__(self) -> Iterator[Trajectory]:
        running = self._count
        while running:
            event = self._events.get()
            if event is None:
                running -= 1
            elif isinstance(event, BaseException):
                raise event
            else:
                yield event

    def _work(self) -> None:
        player = Player(self._plan, self._over.wait)
        try:
            while not self._over.is_set():
                try:
                    index = self._tasks.get_nowait()
                except queue.Empty:
                    break
                trajectory = player.play(index)
                if trajectory is None or self._over.is_set():
                    break
                trajectories.append(self._plan.file, trajectory)
                self._events.put(trajectory)
        except BaseException as e:  # handed to the thread that reads the events
            self._events.put(e)
        finally:
            player.close()
            self._events.put(None)


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Refuse a directory that another process is writing to. Raises UsageError."""
    with (out / ".lock").open("ab") as file:
        if sys.platform != "win32":
            _lock(file, out)
        yield


def _lock(file: Any, out: Path) -> None:
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # closing the file gives it back
    except BlockingIOError as e:
        raise UsageError(f"another process is working in {out}: wait, or give another --out") from e
