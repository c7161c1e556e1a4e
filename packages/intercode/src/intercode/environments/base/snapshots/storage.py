"""Writes snapshots to disk and reads them: a directory with ``snapshot.json`` and ``files``.

``files`` is the upper layer of the sandbox. A restored shell gets its variables and functions back.
A restored Python interpreter runs its actions again, and then gets the files of the snapshot.

A snapshot holds code that runs in a sandbox. Nothing in it runs outside a sandbox.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np

from intercode.core.decoding import bounded, decode_as
from intercode.core.errors import DataError, UsageError
from intercode.core.trajectories import SCHEMA_VERSION, without_version
from intercode.core.types import ExecResult, to_jsonable
from intercode.datasets.files import read_json, require_inside
from intercode.environments.base.snapshots.snapshot import EnvironmentSnapshot
from intercode.sessions.base import SessionState
from intercode.sessions.python.session import PythonState
from intercode_sandbox import BaseSnapshot, SandboxSpec, open_sandbox
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.images.archives.upper_layer_writer import unpack_upper_layer
from intercode_sandbox.overlay_format import find_forged_mark, write_layer
from intercode_sandbox.platforms.paths import sandbox_uid

METADATA_FILE, FILES_DIRECTORY = "snapshot.json", "files"
MATCHING_KEYS = ("environment", "dataset_hash", "profile", "image_digest")
"""Metadata that the writing and the loading environment must have in common."""


@dataclass(frozen=True)
class StoredFiles:
    """The files of a stored snapshot. See ``BaseSnapshot``."""

    spec: SandboxSpec
    backend: str
    path: Path

    def open(self) -> BaseSandbox:
        spec = replace(self.spec, users=False)  # saved files have lost their owners
        return open_sandbox(spec, self.backend, self.path)

    @property
    def source(self) -> Path:
        """The directory with the files."""
        return self.path

    def open_last(self) -> BaseSandbox:
        return self.open()

    def close(self) -> None:
        """Do nothing: the directory belongs to the caller."""


@dataclass(frozen=True)
class SavedWorkspace:
    """The files and the session of a workspace, and what its sandbox was."""

    spec: SandboxSpec
    files: BaseSnapshot
    state: SessionState | PythonState


@dataclass(frozen=True)
class StoredSnapshot:
    """The content of a loaded snapshot until an environment restores it."""

    path: Path
    state: SessionState | PythonState

    def workspace(self, spec: SandboxSpec, backend: str) -> SavedWorkspace:
        """Return the workspace, for a sandbox of this specification and back end."""
        files = StoredFiles(spec, backend, self.path / FILES_DIRECTORY)
        return SavedWorkspace(spec, files, self.state)


def write_snapshot(
    directory: Path,
    snapshot: EnvironmentSnapshot,
    metadata: Mapping[str, Any],
    sandbox: BaseSandbox,
    state: SessionState | PythonState,
) -> None:
    """Write a snapshot whose files are those of ``sandbox``.

    Raises UsageError if the directory is not empty or cannot hold the files.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise UsageError(f"{directory} is not empty: name another directory")
        _write_files(directory / FILES_DIRECTORY, sandbox)
    except OSError as e:
        raise UsageError(f"the snapshot cannot be written to {directory}: {e}") from e
    values = {
        "v": SCHEMA_VERSION,
        **{name: metadata.get(name) for name in MATCHING_KEYS},
        "task": snapshot.task.id,
        "task_seed": snapshot.task_seed,
        "turns": snapshot.turns,
        "last_result": to_jsonable(snapshot.last_result),
        "transcript": snapshot.transcript,
        "random_state": snapshot.random_state,
        "previous_score": snapshot.previous_score,
        "omitted": snapshot.omitted,
        "step_rewards": to_jsonable(snapshot.step_rewards),
        "kind": "python" if isinstance(state, PythonState) else "shell",
        "state": to_jsonable(state),
    }
    (directory / METADATA_FILE).write_text(json.dumps(values, indent=1) + "\n", encoding="ascii")


def _write_files(target: Path, sandbox: BaseSandbox) -> None:
    """Write the upper layer of a sandbox, with its whiteouts, as a directory tree."""
    target.mkdir(mode=0o755)
    sandbox.save(target)
    if os.geteuid() == 0:  # the supervisor runs as this user, and has to read every file
        for parent, directories, files in os.walk(target):
            for name in (*directories, *files, "."):
                os.chown(Path(parent, name), sandbox_uid(), sandbox_uid(), follow_symlinks=False)


def read_snapshot(
    directory: Path, metadata: Mapping[str, Any]
) -> tuple[StoredValues, StoredSnapshot]:
    """Read a snapshot, as the values of its ``snapshot.json`` and what to restore it from.

    Raises DataError for a directory without a snapshot, for one whose parts are links that lead
    out of it, for files that no sandbox writes, and for a field with a wrong value. Raises
    UsageError if ``metadata``, that of the loading environment, differs in one of MATCHING_KEYS.
    """
    path = directory / METADATA_FILE
    files = directory / FILES_DIRECTORY
    for part in (path, files):
        require_inside(part, directory, str(part))
    for exists, what in ((path.is_file(), path), (files.is_dir(), files)):
        if not exists:
            raise DataError(f"{directory} holds no snapshot: there is no {what}")
    _check_files(files)
    values = read_json(path)
    if not isinstance(values, dict):
        raise DataError(f"{path} is no snapshot: it holds {type(values).__name__}, not an object")
    try:
        row = without_version(values)
        stored: StoredValues = decode_as(StoredValues, row)
        _check_random_state(stored.random_state)
    except DataError as e:
        raise DataError(f"{path}: {e}") from e
    for name in MATCHING_KEYS:
        if row[name] != metadata.get(name):
            raise UsageError(
                f"{directory} was taken with another {name}: "
                f"{row[name]!r}, not {metadata.get(name)!r}"
            )
    return stored, StoredSnapshot(directory, _session_state(stored, path))


def _check_files(files: Path) -> None:
    """Raise DataError for marks and devices in the files that no sandbox writes there."""
    try:
        found = find_forged_mark(files)
    except OSError as e:
        raise DataError(f"{files} cannot be read: {e}") from e
    if found:
        raise DataError(
            f"{files}/{found}, which no snapshot of a sandbox has: use snapshots of a source that "
            "you trust"
        )


_STATES = {"shell": SessionState, "python": PythonState}


@dataclass(frozen=True)
class StoredValues:
    """The content of ``snapshot.json``, of which the first four are MATCHING_KEYS."""

    other_keys: ClassVar[bool] = True
    environment: Any
    dataset_hash: Any
    profile: Any
    image_digest: Any
    task: str
    task_seed: Annotated[int, bounded(0)] | None
    turns: Annotated[int, bounded(0)]
    last_result: ExecResult | None
    transcript: tuple[str, ...]
    random_state: Mapping[str, Any]
    previous_score: float
    omitted: tuple[str, ...]
    kind: Literal["shell", "python"]
    state: Mapping[str, Any]
    step_rewards: tuple[Mapping[str, float], ...]


def _session_state(values: StoredValues, path: Path) -> SessionState | PythonState:
    state: SessionState | PythonState
    state = decode_as(_STATES[values.kind], values.state, f"{path}: state")
    if not state.cwd.startswith("/") or "\0" in state.cwd:
        raise DataError(f"{path}: 'state.cwd' has to be an absolute path, not {state.cwd!r}")
    return state


def _check_random_state(state: Mapping[str, Any]) -> None:
    """Raise DataError unless a generator of random numbers can continue from ``state``."""
    try:
        np.random.PCG64().state = cast(Any, dict(state))
    except (TypeError, ValueError, KeyError, OverflowError) as e:
        raise DataError(f"'random_state' is not one of PCG64: {type(e).__name__} {e}") from e


def pack_snapshot(directory: Path) -> dict[str, bytes]:
    """Return the content of a directory that ``write_snapshot`` wrote."""
    layer = BytesIO()
    write_layer(layer, directory / FILES_DIRECTORY)
    return {
        METADATA_FILE: (directory / METADATA_FILE).read_bytes(),
        FILES_DIRECTORY: layer.getvalue(),
    }


def unpack_snapshot(packed: dict[str, bytes], directory: Path) -> None:
    """Write what ``pack_snapshot`` returned to an empty directory. Raises DataError."""
    files = directory / FILES_DIRECTORY
    files.mkdir(mode=0o755)
    unpack_upper_layer(BytesIO(packed[FILES_DIRECTORY]), files, "the snapshot of a pickle")
    (directory / METADATA_FILE).write_bytes(packed[METADATA_FILE])
