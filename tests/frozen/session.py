"""Runs commands of the version under test and collects what they produce."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from frozen.normalise import clean_json, clean_text, compact, figures
from frozen.renames import Vocabulary

SHARED = Path(os.environ.get("FROZEN_SHARED", Path(__file__).resolve().parents[3] / "shared"))
"""The directory of data and logs that are not in the repository."""
LOGS = SHARED / "recorded"
COMMAND_LIMIT = 1500.0
"""Seconds that a command may take."""


@dataclass
class Item:
    """What an item produced. ``soft``: labels in ``exact`` that must not be compared."""

    exact: dict[str, Any] = field(default_factory=dict)
    wording: dict[str, str] = field(default_factory=dict)
    soft: set[str] = field(default_factory=set)
    seconds: float = 0.0

    def add_fields(self, label: str, values: Any) -> None:
        """Add each entry of an object or list as an exact value of its own."""
        entries = values.items() if isinstance(values, dict) else enumerate(values)
        for key, value in entries:
            self.exact[f"{label} {key}"] = compact(value)


class Session:
    """Runs commands of the version under test in a work directory of its own."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.ids: dict[str, str] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        caches = ("INTERCODE_CACHE", "INTERCODE_CONFIG")
        inherited = {
            k: v for k, v in os.environ.items() if k in caches or not k.startswith("INTERCODE_")
        }
        (work / "state").mkdir(parents=True, exist_ok=True)
        self._environment = {
            **inherited,
            "INTERCODE_DATA": str(SHARED / "data"),
            "XDG_STATE_HOME": str(work / "state"),
            "INTERCODE_SQL_TRANSLATIONS": "",
            "COLUMNS": "100",
            "LINES": "40",
            "NO_COLOR": "1",
            "LC_ALL": "C.UTF-8",
            "PYTHONHASHSEED": "0",
            "TERM": "dumb",
        }
        self.vocabulary = Vocabulary(self.call)

    def execute(
        self, words: Sequence[str], stdin: str = "", environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in the work directory. ``environment``: further variables."""
        try:
            return subprocess.run(
                words,
                cwd=self.work,
                env={**self._environment, **(environment or {})},
                input=stdin,
                capture_output=True,
                timeout=COMMAND_LIMIT,
                encoding="utf-8",
                errors="backslashreplace",
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(list(words), 124, "", "timed out")

    def call(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run ``intercode`` with these words as they are."""
        return self.execute([sys.executable, "-m", "intercode", *words], stdin)

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run ``intercode`` with words in old names, which the version's own names replace."""
        named = self.vocabulary.command(words)
        return self.call(*map(self.vocabulary.translate, named), stdin=stdin)

    def run_for(self, item: Item, label: str, *words: str, stdin: str = "") -> str:
        """Run ``intercode``, add its exit status and messages to the item, return its output."""
        done = self.run(*words, stdin=stdin)
        self.add_status(item, label, done)
        return done.stdout

    def print_for(self, item: Item, label: str, *words: str, stdin: str = "") -> str:
        """Like ``run_for``; adds the printed text as wording and its figures as exact values."""
        text = self.text(self.run_for(item, label, *words, stdin=stdin))
        item.exact[f"{label} figures"] = figures(text)
        item.wording[label] = text
        return text

    def add_status(self, item: Item, label: str, done: subprocess.CompletedProcess[str]) -> None:
        """Add an exit status as an exact value and the messages as wording."""
        item.exact[f"{label}: exit status"] = done.returncode
        if "Traceback" in done.stderr:
            item.exact[f"{label}: ends in a traceback"] = True
        if done.stderr:
            item.wording[f"{label}: stderr"] = self.text(done.stderr)

    def text(self, text: str) -> str:
        """Return a text without paths, times, versions and random identifiers."""
        return clean_text(text, self.work, self.ids)

    def json(self, value: Any) -> Any:
        """Return JSON in new names, with its texts as ``text`` returns them."""
        return clean_json(value, clean=self.text)

    def label_episodes(self, trajectories: Path, name: str) -> None:
        """Assign labels to the random identifiers of a run's episodes."""
        for line in trajectories.read_text("utf-8").splitlines():
            row = json.loads(line)
            if row.get("id"):
                self.ids[row["id"]] = f"<{name}:{row['task']}:{row.get('epoch', 0)}>"

    def once(self, name: str, work: Callable[[], None]) -> None:
        """Do work that several items need; the first caller does it while others wait."""
        with self._lock:
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            mark = self.work / f".{name}.done"
            if not mark.exists():
                work()
                mark.touch()
