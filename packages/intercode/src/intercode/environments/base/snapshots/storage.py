"""Writes snapshots to disk and reads them: a directory with ``snapshot.json`` and ``files``.

``files`` is the upper layer of the sandbox. A restored shell gets its variables and functions back.
A restored Python interpreter runs its actions again, and then gets the files of the snapshot.

A snapshot holds code that runs in a sandbox. Nothing in it runs outside a sandbox.
"""

from __future__ import annotations

import json
import os
import sys
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

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
) -> tuple[dict[str, Any], StoredSnapshot]:
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
        values = without_version(values)
        for name in (*MATCHING_KEYS, *_FIELDS):
            if name not in values:
                raise DataError(f"there is no field {name!r}")
        for name in MATCHING_KEYS:
            if values[name] != metadata.get(name):
                raise UsageError(
                    f"{directory} was taken with another {name}: "
                    f"{values[name]!r}, not {metadata.get(name)!r}"
                )
        values |= {name: build_value(values[name], kind, name) for name, kind in _FIELDS.items()}
        state = _session_state(values)
        _check_random_state(values["random_state"])
    except DataError as e:
        raise DataError(f"{path}: {e}") from e
    return values, StoredSnapshot(directory, state)


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


_FIELDS: Mapping[str, Any] = {
    "task": str,
    "task_seed": int | None,
    "turns": int,
    "last_result": ExecResult | None,
    "transcript": tuple[str, ...],
    "random_state": Mapping[str, Any],
    "previous_score": float,
    "omitted": tuple[str, ...],
    "kind": str,
    "state": Mapping[str, Any],
    "step_rewards": tuple[Mapping[str, float], ...],
}
"""The fields of ``snapshot.json`` besides MATCHING_KEYS, and their types."""
_STATES = {"shell": SessionState, "python": PythonState}


def _session_state(values: Mapping[str, Any]) -> SessionState | PythonState:
    for name in ("turns", "task_seed"):
        if (values[name] or 0) < 0:
            raise DataError(f"{name!r} has to be 0 or more, not {values[name]}")
    if values["kind"] not in _STATES:
        raise DataError(f"'kind' has to be {' or '.join(_STATES)}, not {values['kind']!r}")
    state: SessionState | PythonState = build_value(
        values["state"], _STATES[values["kind"]], "state"
    )
    if not state.cwd.startswith("/") or "\0" in state.cwd:
        raise DataError(f"'state.cwd' has to be an absolute path, not {state.cwd!r}")
    return state


def _check_random_state(state: Mapping[str, Any]) -> None:
    """Raise DataError unless a generator of random numbers can continue from ``state``."""
    try:
        np.random.PCG64().state = cast(Any, dict(state))
    except (TypeError, ValueError, KeyError, OverflowError) as e:
        raise DataError(f"'random_state' is not one of PCG64: {type(e).__name__} {e}") from e


# ---------------------------------------- decoded JSON that somebody else may have written
def build_value(value: Any, kind: Any, where: str) -> Any:
    """Return ``value`` as the type ``kind``: a plain type, a union, a tuple of any length, a
    mapping, or a dataclass of these. Raises DataError that names ``where`` the value is."""
    origin = get_origin(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        rest = [option for option in get_args(kind) if option is not types.NoneType]
        return None if value is None else build_value(value, rest[0], where)
    if origin is tuple and isinstance(value, list):
        inner = get_args(kind)[0]
        return tuple(build_value(v, inner, f"{where}[{n}]") for n, v in enumerate(value))
    if is_dataclass(kind) and isinstance(value, Mapping):
        return _build_dataclass(value, kind, where)
    if origin is Mapping and isinstance(value, Mapping):
        inner = get_args(kind)[1]
        return {k: build_value(v, inner, f"{where}.{k}") for k, v in value.items()}
    if kind is float:
        if type(value) in (int, float) and abs(value) <= sys.float_info.max:  # also not a NaN
            return float(value)
    elif type(value) is kind:
        return value
    name = "list" if origin is tuple else "object" if origin is Mapping else None
    name = name or ("object" if is_dataclass(kind) else kind.__name__)
    raise DataError(f"{where!r} has to be a value of type {name}, not {str(value)[:100]!r}")


def _build_dataclass(value: Mapping[str, Any], kind: Any, where: str) -> Any:
    hints = get_type_hints(kind)
    if unknown := value.keys() - hints.keys():
        raise DataError(f"{where!r} has the unknown key {sorted(map(str, unknown))[0]!r}")
    built = {}
    for field in fields(kind):
        if field.name in value:
            built[field.name] = build_value(
                value[field.name], hints[field.name], f"{where}.{field.name}"
            )
        elif field.default is MISSING and field.default_factory is MISSING:
            raise DataError(f"{where!r} has no key {field.name!r}")
    return kind(**built)


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
