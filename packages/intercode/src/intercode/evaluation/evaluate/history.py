"""The history of a run, in history.jsonl: when processes worked on it and what they used.

Each process appends two JSON lines. The first has ``began`` and the settings that may differ from
process to process. The second has ``ended``, ``how`` it ended, the seconds, the usage (``spent``),
and what the limits on usage count for lost answers (``lost``), if any were. It is missing if the
process was killed. Its usage is then taken from the episodes that it finished; that of unfinished
episodes is lost.
"""

from __future__ import annotations

import datetime
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from intercode.core import trajectories
from intercode.core.trajectories import HISTORY_FILE
from intercode.core.types import Usage, to_jsonable
from intercode.evaluation.evaluate.run_state import total_usage, usage_from_json
from intercode_sandbox.clock import SYSTEM_CLOCK


class RunHistory:
    """The history of one run, for the process that works on it.

    ``earlier_usage`` is the usage of all earlier processes; its ``seconds`` are those they worked.
    ``earlier_lost`` is what their limits counted for lost answers.
    """

    def __init__(self, out: Path) -> None:
        self.file = out / HISTORY_FILE
        self._log = out / trajectories.TRAJECTORIES_FILE
        self._started = SYSTEM_CLOCK.now()
        rows = list(trajectories.read_history(self.file))
        self._missing_end = (
            _missing_end(rows[-1], self._log) if rows and "began" in rows[-1] else None
        )
        ends = [r for r in (*rows, self._missing_end or {}) if "ended" in r]
        spent, lost = (
            sum((usage_from_json(r.get(name) or {}) for r in ends), Usage())
            for name in ("spent", "lost")
        )
        self.earlier_lost = lost
        if not rows:
            spent = _usage_since(self._log, 0)
        self.earlier_usage = replace(spent, seconds=sum(r.get("seconds") or 0.0 for r in ends))

    def begin(self, **settings: Any) -> None:
        """Record that work begins. If the last process was killed, first record its end."""
        self._started = SYSTEM_CLOCK.now()
        if self._missing_end is not None:
            self._append(self._missing_end)
        self._append({"began": _now(), "bytes": _file_size(self._log), **settings})

    def end(self, how: str, spent: Usage, lost: Usage = Usage()) -> None:  # noqa: B008  (frozen)
        """Record how the work ended: ``finished``, ``interrupted``, or why it stopped."""
        seconds = round(SYSTEM_CLOCK.now() - self._started, 3)
        row = {"ended": _now(), "how": how, "seconds": seconds, "spent": to_jsonable(spent)}
        self._append(row | ({"lost": to_jsonable(lost)} if lost.requests else {}))

    def _append(self, row: dict[str, Any]) -> None:
        data = json.dumps(row).encode() + b"\n"
        with trajectories.name_file_in_errors(self.file), self.file.open("a+b") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                data = (
                    b"" if file.read() == b"\n" else b"\n"
                ) + data  # the line before is incomplete
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


def _missing_end(began_row: dict[str, Any], log: Path) -> dict[str, Any]:
    """Return the missing second line of a process that was killed."""
    began = datetime.datetime.fromisoformat(began_row["began"])
    written = (
        log.stat().st_mtime if _file_size(log) > began_row.get("bytes", 0) else began.timestamp()
    )
    last = max(began, datetime.datetime.fromtimestamp(written, datetime.UTC))
    return {
        "ended": last.isoformat(timespec="milliseconds"),
        "how": "killed",
        "seconds": round((last - began).total_seconds(), 3),
        "spent": to_jsonable(_usage_since(log, began_row.get("bytes", 0))),
    }


def _usage_since(log: Path, start: int) -> Usage:
    """Return the usage of the episodes after a byte of a trajectory file."""
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
