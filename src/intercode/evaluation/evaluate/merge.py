"""One run out of several: the parts that machines have played of the same settings."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from intercode.core import trajectories
from intercode.core.errors import UsageError
from intercode.core.registry import unknown
from intercode.core.types import Trajectory, Usage, plain
from intercode.evaluation.evaluate.history import History
from intercode.evaluation.evaluate.run_directory import differing, make_directory, recorded, shown
from intercode.evaluation.evaluate.run_state import Key, key_of

Duplicates = Literal["refuse", "first", "epochs"]
"""What is done with two different results for one task and epoch: refused; the one of the directory
that is named first is taken; the later ones become further epochs of the task."""

_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Merged:
    """What was merged. ``same``: episodes that lay in several directories; ``settled``: those that
    an error kept from a result in one and that have one in another; ``decided``: different results
    for one task and epoch, of which ``duplicates`` disposed."""

    out: Path
    episodes: int
    same: int
    settled: int
    decided: int


def merge(directories: Sequence[Path], out: Path, duplicates: Duplicates = "refuse") -> Merged:
    """Write the run that ``directories`` are parts of to ``out``; they stay as they are.

    A torn last line of a part is passed over. Branches are taken with the episode that they branch
    off from. The result can be resumed, widened and reported as any run. Raises UsageError for
    parts with different settings (which it names), different results for one task and epoch, a part
    that somebody works on, and an ``out`` that holds a run already; DataError for a broken file.
    """
    if duplicates not in get_args(Duplicates):
        raise unknown("way with duplicates", duplicates, list(get_args(Duplicates)))
    if (out / trajectories.TRAJECTORIES_FILE).exists():
        raise UsageError(f"{out} holds a run already: give another --out")
    with ExitStack() as held:
        for directory in directories:
            held.enter_context(_still(directory))
        facts = _common(directories)
        merged = _Merge(duplicates)
        for directory in directories:
            merged.take(directory)
        spent = sum((History(d).before for d in directories), Usage())
    episodes = list(merged.chosen.values())
    out.mkdir(parents=True, exist_ok=True)
    passing = out / f".{trajectories.TRAJECTORIES_FILE}.{os.getpid()}"
    try:
        _write(passing, [*episodes, *merged.branches()])
        make_directory(out, {**facts, "merged_from": [d.name for d in directories]})
        passing.replace(out / trajectories.TRAJECTORIES_FILE)
    finally:
        passing.unlink(missing_ok=True)
    history = History(out)
    history.begin(version=facts.get("version"), parts=len(directories))
    history.end("merged", spent)
    return Merged(out, len(episodes), merged.same, merged.settled, merged.decided)


class _Merge:
    """Chooses one episode for each task and epoch."""

    def __init__(self, duplicates: Duplicates) -> None:
        self._duplicates = duplicates
        self._from: dict[Key, Path] = {}
        self._branches: dict[str, Trajectory] = {}
        self.chosen: dict[Key, Trajectory] = {}
        self.same = self.settled = self.decided = 0

    def take(self, directory: Path) -> None:
        """Add the episodes of one part. Raises UsageError for results that contradict others."""
        file = directory / trajectories.TRAJECTORIES_FILE
        clashes: list[Key] = []
        for episode in trajectories.read(file) if file.exists() else ():
            if episode.parent is not None:
                self._branches.setdefault(episode.id or repr(plain(episode)), episode)
            elif self._add(episode, directory) is None:
                clashes.append(key_of(episode))
        if clashes:
            self._refuse(clashes, directory)

    def branches(self) -> list[Trajectory]:
        """The branches of all parts, each once."""
        return list(self._branches.values())

    def _add(self, new: Trajectory, directory: Path) -> bool | None:
        """Choose between an episode and one of the same key; None where that cannot be."""
        key = key_of(new)
        old = self.chosen.get(key)
        if old is None:
            self._put(key, new, directory)
            return True
        if plain(old.replace(run={})) == plain(new.replace(run={})):
            self.same += 1
            return False
        if not trajectories.is_finished(old):
            self._put(key, new, directory)
            self.settled += trajectories.is_finished(new)
            return True
        if not trajectories.is_finished(new):
            self.settled += 1
            return False
        if self._from[key] == directory:  # the same directory holds both: the later one counts
            self._put(key, new, directory)
            return True
        if self._duplicates == "refuse":
            return None
        self.decided += 1
        if self._duplicates == "epochs":
            while key in self.chosen:
                key = key._replace(epoch=key.epoch + 1)
            self._put(key, new.replace(epoch=key.epoch), directory)
        return True

    def _put(self, key: Key, episode: Trajectory, directory: Path) -> None:
        self.chosen[key], self._from[key] = episode, directory

    def _refuse(self, clashes: Sequence[Key], directory: Path) -> None:
        some = ", ".join(f"{k.task} (epoch {k.epoch})" for k in clashes[:_MOST_NAMED])
        more = f" and {len(clashes) - _MOST_NAMED} more" if len(clashes) > _MOST_NAMED else ""
        other = self._from[clashes[0]]
        raise UsageError(
            f"{directory} and {other} hold different results for {some}{more}: --duplicates first "
            f"takes those of the directory named first, --duplicates epochs makes the later ones "
            "further epochs"
        )


def _common(directories: Sequence[Path]) -> dict[str, Any]:
    """The facts that all parts have in common. Raises UsageError naming what differs."""
    if not directories:
        raise UsageError("there is nothing to merge: name the directories of runs")
    found: list[Mapping[str, Any]] = []
    for directory in directories:
        facts = recorded(directory) if directory.is_dir() else None
        if facts is None:
            raise UsageError(f"{directory} is no run's directory: it has no run.json")
        found.append(facts)
    first = found[0]
    for directory, facts in zip(directories[1:], found[1:], strict=True):
        differ = differing(first, facts)
        if differ:
            what = "; ".join(f"{k} {shown(first.get(k))} and {shown(facts.get(k))}" for k in differ)
            raise UsageError(f"{directories[0]} and {directory} differ in {what}: no one run")
    started = [str(facts.get("started", "")) for facts in found]
    common = dict(found[started.index(min(started))])
    configs = [dict(facts.get("config") or {}) for facts in found]
    if all(configs):
        common["config"] = {**configs[0], **_extent(configs)}
    return common


def _extent(configs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The tasks and epochs that all parts were asked for together."""
    some = all(config.get("tasks") for config in configs)
    tasks = dict.fromkeys(str(t) for config in configs for t in config["tasks"]) if some else {}
    limits = [config.get("limit") for config in configs]
    return {
        "tasks": list(tasks),
        "limit": None if some or None in limits else max(filter(None, limits)),
        "epochs": max(config.get("epochs", 1) for config in configs),
    }


def _write(path: Path, episodes: Iterable[Trajectory]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for episode in episodes:
            row = {"v": trajectories.VERSION, **plain(episode)}
            file.write(json.dumps(row, allow_nan=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _still(directory: Path) -> Iterator[None]:
    """Raise UsageError where a process works on a run; keep others from beginning to."""
    lock = directory / ".lock"
    if sys.platform == "win32" or not lock.exists():
        yield
        return
    import fcntl

    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError as e:
            raise UsageError(f"a process is working in {directory}: wait until it ends") from e
        yield
