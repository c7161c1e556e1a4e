"""When a run was worked on, how that ended and what it spent: history.jsonl of its directory.

One JSON object a line, appended: ``began`` with the settings that may change from one time to the
next, then ``ended`` with ``how``, the seconds it took and what it spent. Where the second is
missing the process was killed: what it spent is taken from the episodes that it finished; what
those in flight had spent is lost.
"""

from __future__ import annotations

import datetime
import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from intercode.core import trajectories
from intercode.core.types import Usage, to_jsonable
from intercode.evaluation.evaluate.run_state import total_usage, usage_from_json

HISTORY_FILE = "history.jsonl"


class RunHistory:
    """The history of one run. Used by the one process that works on the run.

    ``before``: what all earlier times have spent, its ``seconds`` being those of the work.
    """

    def __init__(self, out: Path) -> None:
        self.file = out / HISTORY_FILE
        self._log = out / trajectories.TRAJECTORIES_FILE
        self._started = time.monotonic()
        rows = list(_read_rows(self.file))
        self._missing_end = (
            _missing_end(rows[-1], self._log) if rows and "began" in rows[-1] else None
        )
        ends = [r for r in (*rows, self._missing_end or {}) if "ended" in r]
        spent = sum((usage_from_json(r.get("spent") or {}) for r in ends), Usage())
        if not rows:
            spent = _usage_since(self._log, 0)
        self.earlier_usage = replace(spent, seconds=sum(r.get("seconds") or 0.0 for r in ends))

    def begin(self, **settings: Any) -> None:
        """Note that work begins, and of a time that was killed what is known of its end."""
        self._started = time.monotonic()
        if self._missing_end is not None:
            self._append(self._missing_end)
        self._append({"began": _now(), "bytes": _file_size(self._log), **settings})

    def end(self, how: str, spent: Usage) -> None:
        """Note how it ended: ``finished``, ``interrupted``, or why it stopped."""
        seconds = round(time.monotonic() - self._started, 3)
        self._append({"ended": _now(), "how": how, "seconds": seconds, "spent": to_jsonable(spent)})

    def _append(self, row: dict[str, Any]) -> None:
        data = json.dumps(row).encode() + b"\n"
        with self.file.open("a+b") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                data = (b"" if file.read() == b"\n" else b"\n") + data  # a torn line before it
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


def _missing_end(begun: dict[str, Any], log: Path) -> dict[str, Any]:
    """The end of a time of work whose end nobody noted, by the episodes that it finished."""
    began = datetime.datetime.fromisoformat(begun["began"])
    wrote = log.stat().st_mtime if _file_size(log) > begun.get("bytes", 0) else began.timestamp()
    last = max(began, datetime.datetime.fromtimestamp(wrote, datetime.UTC))
    return {
        "ended": last.isoformat(timespec="milliseconds"), "how": "killed",
        "seconds": round((last - began).total_seconds(), 3),
        "spent": to_jsonable(_usage_since(log, begun.get("bytes", 0))),
    }  # fmt: skip


def _read_rows(file: Path) -> Iterator[dict[str, Any]]:
    """The lines of a history; torn ones are passed over."""
    for line in file.read_bytes().splitlines() if file.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row


def _usage_since(log: Path, start: int) -> Usage:
    """What the episodes behind that byte of a trajectory file spent."""
    if not log.exists():
        return Usage()
    with log.open("rb") as file:
        file.seek(start)
        lines = [line for line in file if line.endswith(b"\n") and line.strip()]
    episodes = (trajectories.trajectory_from_row(json.loads(line)) for line in lines)
    return sum((total_usage(t) for t in episodes), Usage())


def _file_size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
