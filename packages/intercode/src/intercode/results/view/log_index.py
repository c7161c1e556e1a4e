"""Indexes one log on disk as it grows; its episodes are read when they are shown."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from intercode.core import logs, trajectories
from intercode.core.errors import DataError, UsageError
from intercode.core.types import Trajectory
from intercode.results.view.rows import EpisodeEntry, index_episode

_STEP = 1 << 20  # bytes


class LogIndex(ABC):
    """The episodes of a run. ``problems`` describes what could not be read, one sentence each;
    ``revision`` grows with every change of what is indexed; ``pending`` are the bytes that are
    still to be indexed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: list[EpisodeEntry] = []
        self.metadata: dict[str, Any] = {}
        self.problems: list[str] = []
        self.revision = self.pending = 0

    @abstractmethod
    def refresh(self, most: int | None = None) -> int:
        """Index what was written since the last call, or about ``most`` bytes of it. Return the
        number of bytes."""

    def episode(self, at: int) -> Trajectory:
        """Return the episode at a position, after indexing the log up to there. Raises UsageError
        if there is none."""
        while self.pending and at >= len(self.entries):
            self.refresh(_STEP)
        if not 0 <= at < len(self.entries):
            raise UsageError(f"{self.path} has no episode {at}: it has {len(self.entries)}")
        return self._read(at)

    @abstractmethod
    def _read(self, at: int) -> Trajectory: ...


def open_log(path: Path) -> LogIndex:
    """Return the index of a path that ``logs.find_logs`` found; nothing is read yet."""
    return JsonlIndex(path) if path.is_dir() or path.suffix == ".jsonl" else AuthorsLogIndex(path)


class JsonlIndex(LogIndex):
    """A run directory, or a file with one episode per line, of which only the offsets are kept in
    memory.

    A line that cannot be read is reported as a problem. An incomplete last line is left for the
    next refresh.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._file = path / trajectories.TRAJECTORIES_FILE if path.is_dir() else path
        self._run_file = path / trajectories.RUN_FILE
        self._file_identity: tuple[int, int] | None = None
        self._reset()

    def _reset(self) -> None:
        self.revision += bool(self.entries)
        self.entries, self.metadata, self.problems = [], {}, []
        self._offsets: list[tuple[int, int]] = []
        self._end = self._lines = 0

    def refresh(self, most: int | None = None) -> int:
        """Index the new lines, or all lines if the file was replaced."""
        self.pending = 0
        if not self._file.exists():
            self._reset()
            self._read_metadata()
            return 0
        now = self._file.stat()
        if self._file_identity != (now.st_dev, now.st_ino) or now.st_size < self._end:
            self._reset()
            self._file_identity = (now.st_dev, now.st_ino)
        self._read_metadata()
        start = self._end
        with self._file.open("rb") as file:
            file.seek(start)
            for raw in file:
                if not raw.endswith(b"\n"):
                    break
                if most is not None and self._end - start >= most:
                    self.pending = now.st_size - self._end
                    break
                self._lines += 1
                self._add(raw)
                self._end += len(raw)
        return self._end - start

    def _read(self, at: int) -> Trajectory:
        start, length = self._offsets[at]
        with self._file.open("rb") as file:
            file.seek(start)
            return self._parse(file.read(length))

    def _add(self, raw: bytes) -> None:
        if not raw.strip():
            return
        self.revision += 1
        try:
            trajectory = self._parse(raw)
        except DataError as e:
            self.problems.append(f"line {self._lines} cannot be read: {e}")
            return
        self.metadata = self.metadata or dict(trajectory.run)
        self.entries.append(index_episode(len(self._offsets), trajectory))
        self._offsets.append((self._end, len(raw)))

    def _parse(self, raw: bytes) -> Trajectory:
        try:
            row = json.loads(raw)
        except ValueError as e:
            raise DataError(f"invalid JSON ({e})") from e
        trajectory = trajectories.trajectory_from_row(row)
        return trajectory.replace(run={**self.metadata, **trajectory.run})

    def _read_metadata(self) -> None:
        if not self.path.is_dir() or not self._run_file.is_file():
            return
        try:
            self.metadata = trajectories.read_run_metadata(self.path)
        except DataError as e:
            if str(e) not in self.problems:
                self.problems.append(str(e))


class AuthorsLogIndex(LogIndex):
    """A log in the authors' format, kept in memory, and read again when the file has changed."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._episodes: list[Trajectory] = []
        self._file_version: tuple[int, int] | None = None

    def refresh(self, most: int | None = None) -> int:  # noqa: ARG002  (a document is read whole)
        """Read the file if it has changed."""
        now = self.path.stat()
        if self._file_version == (now.st_mtime_ns, now.st_size):
            return 0
        self._file_version = (now.st_mtime_ns, now.st_size)
        self.revision += 1
        try:
            self._episodes, self.problems = logs.load_log(self.path), []
        except DataError as e:
            self._episodes, self.problems = [], [str(e)]
        self.entries = [index_episode(at, t) for at, t in enumerate(self._episodes)]
        first = self._episodes[0].run if self._episodes else {}
        same = {k for k, v in first.items() if all(t.run.get(k) == v for t in self._episodes)}
        self.metadata = {k: v for k, v in first.items() if k in same}
        return now.st_size

    def _read(self, at: int) -> Trajectory:
        return self._episodes[at]
