"""Snapshots on disk: a directory with ``snapshot.json`` and ``files``, the upper layer of the box.

A shell is given its variables and functions again; a Python interpreter runs its actions again, and
the files of then are put in place of theirs. Whoever loads a snapshot trusts where it comes from as
far as what it does in a box: nothing of it is run outside.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError, UsageError
from intercode.core.paths import sandbox_uid
from intercode.core.types import ExecResult, to_jsonable
from intercode.environments.base.snapshots.snapshot import Snapshot
from intercode.sandbox import SandboxSpec, open_sandbox
from intercode.sandbox.supervisor.client import SupervisedSandbox
from intercode.sessions.bash.shell_state import SessionState
from intercode.sessions.python.state import Action, PythonState

SNAPSHOT_VERSION = 1
METADATA_FILE, FILES_DIRECTORY = "snapshot.json", "files"
MATCHING_KEYS = ("environment", "dataset_hash", "profile", "image_digest")
"""What must be equal where a snapshot is written and where it is loaded."""


@dataclass(frozen=True)
class StoredFiles:
    """See ``KeptFiles``."""

    spec: SandboxSpec
    kind: str
    path: Path

    def open(self) -> SupervisedSandbox:
        return open_sandbox(self.spec, self.kind, self.path)

    def open_last(self) -> SupervisedSandbox:
        return self.open()

    def apply_to(self, box: SupervisedSandbox) -> None:
        """Give another box these files in place of its own."""
        box.replace_files(self.path)

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True)
class StoredSnapshot:
    """What a loaded snapshot holds until an environment goes on from it."""

    path: Path
    state: SessionState | PythonState

    def files(self, spec: SandboxSpec, kind: str) -> StoredFiles:
        """The files, for boxes of that kind."""
        return StoredFiles(spec, kind, self.path / FILES_DIRECTORY)


def write_snapshot(
    directory: Path,
    snapshot: Snapshot,
    metadata: Mapping[str, Any],
    sandbox: SupervisedSandbox,
    state: SessionState | PythonState,
) -> None:
    """Write a snapshot whose files are those of ``box``. Raises UsageError where the directory
    holds something already, or the files cannot be kept there."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise UsageError(f"{directory} is not empty: name another directory")
        _write_files(directory / FILES_DIRECTORY, sandbox)
    except OSError as e:
        raise UsageError(f"the snapshot cannot be written to {directory}: {e}") from e
    kind = "python" if isinstance(state, PythonState) else "shell"
    told = {
        "v": SNAPSHOT_VERSION, **{name: metadata.get(name) for name in MATCHING_KEYS}, "task": snapshot.task.id,
        "drawn_from": snapshot.task_seed, "turns": snapshot.turns, "last": to_jsonable(snapshot.last_result),
        "transcript": snapshot.transcript, "random_state": snapshot.random_state,
        "potential": snapshot.previous_score, "left_behind": snapshot.omitted_processes,
        "kind": kind, "state": to_jsonable(state),
    }  # fmt: skip
    (directory / METADATA_FILE).write_text(json.dumps(told, indent=1) + "\n", encoding="ascii")


def _write_files(target: Path, box: SupervisedSandbox) -> None:
    """The own files of a box as one directory tree, whiteouts included."""
    target.mkdir(mode=0o755)
    box.write_upper(target)
    if os.geteuid() == 0:  # or the keeper could not read what only its owner may
        for above, directories, files in os.walk(target):
            for name in (*directories, *files, "."):
                os.chown(Path(above, name), sandbox_uid(), sandbox_uid(), follow_symlinks=False)


def read_snapshot(
    directory: Path, metadata: Mapping[str, Any]
) -> tuple[dict[str, Any], StoredSnapshot]:
    """What a directory holds: the facts of the snapshot, and what to go on from. Raises DataError
    for one that holds no snapshot, UsageError for one of another environment, naming how."""
    path = directory / METADATA_FILE
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if told["v"] != SNAPSHOT_VERSION:
            raise DataError(f"{path}: version {told['v']!r}; this release reads {SNAPSHOT_VERSION}")
        for name in MATCHING_KEYS:
            if told[name] != metadata.get(name):
                raise UsageError(
                    f"{directory} is of another {name}: {told[name]!r}, not {metadata.get(name)!r}"
                )
        last = told["last"]
        told["last"] = None if last is None else ExecResult(**last)
        return told, StoredSnapshot(directory, _session_state(told["kind"], told["state"]))
    except OSError as e:
        raise DataError(f"{directory} holds no snapshot: {e.strerror}") from e
    except (ValueError, KeyError, TypeError) as e:
        if isinstance(e, UsageError):
            raise
        raise DataError(f"{path} is no snapshot: {type(e).__name__} {e}") from e


def _session_state(kind: str, told: Mapping[str, Any]) -> SessionState | PythonState:
    if kind == "shell":
        return SessionState(**told)
    return PythonState(told["cwd"], tuple(Action(**action) for action in told["actions"]))
