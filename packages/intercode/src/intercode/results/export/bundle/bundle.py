"""Bundles: a run with its metadata, sealed by digests, and a statement that re-execution confirms
or refutes."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import intercode
from intercode.core.decoding import parse_json
from intercode.core.errors import DataError, UsageError
from intercode.core.trajectories import (
    IDENTITY_KEYS,
    RUN_FILE,
    TRAJECTORIES_FILE,
    read_run_metadata,
    runs_in,
    trajectory_from_row,
    without_version,
)
from intercode.core.types import Trajectory
from intercode.results.export.bundle.archive import read_archive, write_archive
from intercode.results.statistics import figures
from intercode.results.statistics.intervals import value_and_bounds
from intercode.results.statistics.metrics import count_failed, drop_retried_failures, is_solved
from intercode.results.statistics.samples import all_samples
from intercode_sandbox.platforms.files import file_digest
from intercode_sandbox.valid_text import has_surrogates

SCHEMA = "intercode-bundle-1"
MANIFEST = "manifest.json"
MEMBERS = {MANIFEST: 1 << 20, RUN_FILE: 1 << 24, TRAJECTORIES_FILE: 1 << 30}
"""The files of a bundle, and the largest size that is read of each."""


@dataclass(frozen=True)
class Bundle:
    """A bundle whose digests are correct. ``sha256`` is that of the archive. ``results`` and
    ``statement`` were compared with the episodes."""

    path: Path
    sha256: str
    metadata: Mapping[str, Any]
    results: Mapping[str, Any]
    statement: str
    episodes: tuple[Trajectory, ...]


def write_bundle(run: Path, out: Path) -> Bundle:
    """Seal the run in a directory into ``out``, a ``.tar.gz``.

    An incomplete last line is left out. Raises UsageError for a directory that is not a run or
    holds no episode, DataError for one that cannot be read.
    """
    if not out.name.endswith(".tar.gz"):
        raise UsageError(f"--out {out} must end in .tar.gz")
    if not (run / RUN_FILE).is_file() or not (run / TRAJECTORIES_FILE).is_file():
        raise UsageError(
            f"{run} is not a run directory: it needs {RUN_FILE} and {TRAJECTORIES_FILE}, "
            f"as `intercode eval` writes them{runs_in(run)}"
        )
    lines = (run / TRAJECTORIES_FILE).read_bytes()
    files = {
        RUN_FILE: (run / RUN_FILE).read_bytes(),
        TRAJECTORIES_FILE: lines[: lines.rfind(b"\n") + 1],
    }
    metadata = read_run_metadata(run)
    episodes = _episodes(files, metadata, run)
    manifest = {
        "schema": SCHEMA,
        "files": {
            name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
            for name, content in files.items()
        },
        "made_with": {"intercode": intercode.__version__, "python": platform.python_version()},
        **_manifest_claims(metadata, episodes),
    }
    files[MANIFEST] = _json_bytes(manifest)
    write_archive(out, files)
    return read_bundle(out)


def read_bundle(path: Path) -> Bundle:
    """Return a bundle after checking its form, every digest, and that its results follow from its
    episodes.

    Raises DataError for an invalid or modified bundle.
    """
    files = read_archive(path, MEMBERS)
    if absent := sorted(MEMBERS.keys() - files.keys()):
        raise DataError(f"{path} is not a bundle: it has no {', '.join(absent)}")
    manifest = parse_object(files[MANIFEST], f"{path}: {MANIFEST}")
    if manifest.get("schema") != SCHEMA:
        schema = manifest.get("schema")
        raise DataError(f"{path}: schema {schema!r}; this release reads {SCHEMA!r}")
    _check_digests(files, manifest, path)
    run = parse_object(files[RUN_FILE], f"{path}: {RUN_FILE}")
    metadata = without_version(run)
    episodes = _episodes(files, metadata, path)
    expected = _manifest_claims(metadata, episodes)
    for name, value in expected.items():
        if manifest.get(name) != value:
            raise DataError(
                f"{path} was tampered with: its {name} say {manifest.get(name)!r:.200}, "
                f"its episodes and metadata {value!r:.200}"
            )
    results, statement = expected["results"], expected["statement"]
    return Bundle(path, file_digest(path), metadata, results, statement, tuple(episodes))


def _json_bytes(value: Any) -> bytes:
    """Return a value as JSON in UTF-8, in ASCII if it holds a lone surrogate."""
    text = json.dumps(value, indent=1, ensure_ascii=False)
    if has_surrogates(text):
        text = json.dumps(value, indent=1)
    return text.encode() + b"\n"


def _manifest_claims(metadata: Mapping[str, Any], episodes: list[Trajectory]) -> dict[str, Any]:
    """Return the part of a manifest that anyone can compute from the files of the run."""
    return {
        "conditions": {k: metadata[k] for k in IDENTITY_KEYS if metadata.get(k) is not None},
        "results": summarize_results(episodes),
        "statement": results_statement(metadata, episodes),
    }


def summarize_results(episodes: list[Trajectory]) -> dict[str, Any]:
    """Return the figures that a bundle states: tasks, episodes, failures, success with its
    interval. All are over every episode; one that ended in an error of the infrastructure
    (``failed``) is not solved."""
    samples = all_samples(episodes)
    bounds = value_and_bounds(figures.success(episodes))
    success, low, high = (None if value is None else round(value, 6) for value in bounds)
    return {
        "tasks": len({t.task for t in samples}),
        "task_set": _task_set_digest(samples),
        "episodes": len(samples),
        "failed": count_failed(samples),
        "solved": sum(map(is_solved, samples)),
        "success": success,
        "low": low,
        "high": high,
    }


def results_statement(metadata: Mapping[str, Any], episodes: list[Trajectory]) -> str:
    """Return the statement to be verified, in one sentence."""
    results = summarize_results(episodes)
    agent = " with ".join(str(metadata[k]) for k in ("agent", "model") if metadata.get(k))
    where = (
        f"{metadata.get('dataset')} ({metadata.get('profile')} profile, {metadata.get('scoring')})"
    )
    reproduction = (
        "re-executing them gives every observation, reward and hash again"
        if metadata.get("determinism")
        else "re-executing them gives the same rewards, as far as they depend on the sandbox alone"
    )
    return (
        f"{agent or 'An agent'} solves {results['solved']} of {results['episodes']} episodes of "
        f"{results['tasks']} tasks of {where}; {reproduction}."
    )


def _check_digests(files: Mapping[str, bytes], manifest: Mapping[str, Any], path: Path) -> None:
    listed = manifest.get("files")
    if not isinstance(listed, dict) or listed.keys() != files.keys() - {MANIFEST}:
        raise DataError(f"{path} was tampered with: {MANIFEST} does not list its files")
    for name, recorded in listed.items():
        content = files[name]
        entry = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        if recorded != entry:
            raise DataError(f"{path} was tampered with: {name} is not what {MANIFEST} says")


def _episodes(
    files: Mapping[str, bytes], metadata: Mapping[str, Any], path: Path
) -> list[Trajectory]:
    """Return the episodes with the run's metadata, one per task and epoch."""
    out = []
    for number, line in enumerate(files[TRAJECTORIES_FILE].splitlines(), start=1):
        where = f"{path}: {TRAJECTORIES_FILE}, line {number}"
        row = parse_object(line, f"{path}: {TRAJECTORIES_FILE}", number)
        try:
            episode = trajectory_from_row(row)
            _check_scores(episode, row)
            _check_turns(episode, metadata)
        except (DataError, TypeError) as e:
            raise DataError(f"{where}: {e}") from e
        for key in IDENTITY_KEYS:
            if key in episode.run and episode.run[key] != metadata.get(key):
                raise DataError(f"{where}: its {key} is not that of {RUN_FILE}")
        out.append(episode.replace(run={**metadata, **episode.run, "source": "run"}))
    episodes = drop_retried_failures(out)
    if not episodes:
        raise UsageError(f"{path} holds no episode")
    return episodes


def _task_set_digest(episodes: list[Trajectory]) -> str:
    """Return a short digest of the tasks that were played: equal for results that may be
    compared."""
    names = "\n".join(sorted({t.task for t in episodes}))
    return hashlib.sha256(names.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def parse_object(content: bytes, where: str, line: int = 1) -> dict[str, Any]:
    """Return the object in a JSON text. Raises DataError for anything else."""
    value = parse_json(content, where, line)
    if not isinstance(value, dict):
        raise DataError(f"{where}: an object is expected, not {type(value).__name__}")
    return value


def _check_scores(episode: Trajectory, row: Mapping[str, Any]) -> None:
    """Raise DataError for a score above 1, by the name that it has in the row."""
    for number, step in enumerate(episode.steps):
        if step.score is not None and step.score.value > 1.0 + 1e-9:
            name = "score" if "score" in row["steps"][number] else "reward"
            raise DataError(f"'steps[{number}].{name}' is {step.score.value!r}, more than 1")


def _check_turns(episode: Trajectory, metadata: Mapping[str, Any]) -> None:
    """Raise DataError if the settings of the run do not allow so many turns or restarts. A branch
    counts the turns of the episode from which it branched off."""
    if episode.parent is not None:
        return
    attempts = pairwise((0, *episode.restarts, len(episode.steps)))
    turns, limit = max(end - begin for begin, end in attempts), metadata.get("max_turns")
    if limit is not None and turns > limit:
        raise DataError(f"{turns} turns are more than max_turns = {limit!r} of {RUN_FILE}")
    agent = metadata.get("agent_metadata")
    allowed = agent.get("max_restarts", 0) if isinstance(agent, Mapping) else 0
    if allowed is not None and len(episode.restarts) > allowed:
        raise DataError(
            f"{len(episode.restarts)} restarts are more than max_restarts = {allowed!r} of "
            f"{RUN_FILE}"
        )
