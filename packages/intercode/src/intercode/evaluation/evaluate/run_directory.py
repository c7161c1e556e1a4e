"""The directory of a run: its name, its files, and whether it contains another run."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from intercode.core import trajectories
from intercode.core.errors import UsageError
from intercode.evaluation.evaluate.run_metadata import RUN_IDENTITY
from intercode.results.short_text import shorten_distinct

_MAX_VALUE_LENGTH = 200  # characters of a setting in a message
_MAX_NAME_LENGTH = 120  # characters of a name: file systems allow 255 bytes

_README = """\
{title}

This directory is one evaluation run of intercode {version}, started {started}.

  run.json            the conditions of all results: settings, versions, hashes, prompts
  trajectories.jsonl  one line for each episode, written when it ended
  history.jsonl       when processes worked on the run, how that ended, and what it cost

Commands, to be run in the directory above this one:

Play what is missing or failed:    intercode eval --resume {out}
Print the results:                 intercode report {out}
Print one episode:                 intercode show {out} TASK
Show all episodes in a browser:    intercode view {out}
Execute all episodes again:        intercode replay {out}
Load the run in Python:            intercode.load_run({out!r}).to_pandas()
"""


def run_name(metadata: Mapping[str, Any]) -> str:
    """Return the name of a new run: ``<dataset>-<agent>-<model>-<date>``."""
    day = datetime.date.today().isoformat()
    dataset = Path(str(metadata["dataset"])).name
    return safe_file_name([dataset, str(metadata["agent"]), str(metadata["model"] or ""), day])


def safe_file_name(parts: list[str]) -> str:
    """Join texts to a name that is safe for a file."""
    words = [re.sub(r"[^\w.]+", "-", p).strip("-") for p in parts if p]
    return "-".join(filter(None, words))[-_MAX_NAME_LENGTH:].strip("-.")


def unused_directory(parent: Path, name: str, metadata: Mapping[str, Any] | None) -> Path:
    """Return ``parent/name``, or ``parent/name-2`` and so on if another run has it.

    Args:
        parent: The directory of runs, which need not exist.
        name: The name of the new directory.
        metadata: The settings of the run: a directory with a run of the same settings is returned
            as well. None: no directory that contains a run is returned.

    Raises:
        DataError: The metadata of a run that has the name cannot be read.
    """
    for number in itertools.count(1):
        path = parent / (name if number == 1 else f"{name}-{number}")
        old = read_run_metadata(path)
        if old is None or (metadata is not None and not differing_settings(old, metadata)):
            return path
    raise AssertionError("unreachable: the numbers do not end")


def require_same_run(out: Path, metadata: Mapping[str, Any]) -> None:
    """Raise UsageError if ``out`` contains a run with other settings, naming one that differs."""
    old = read_run_metadata(out)
    for key in [] if old is None else differing_settings(old, metadata):
        earlier, later = (old or {}).get(key), metadata.get(key)
        before, now = differing_values(earlier, later)
        way_out = "give another --out DIR, or the same settings to resume that run"
        if key == "sources":
            files = ", ".join(_changed_files(earlier or {}, later or {}))
            way_out = (
                f"{files} changed since. Give another --out DIR, or undo the change to resume it"
            )
        if key == "endpoint":
            way_out = (
                "another server may have another model under that name. Give another --out DIR, "
                "and `intercode report` both, or the address of before (--base-url) to resume "
                "that run"
            )
        raise UsageError(f"{out} contains a run with {key} {before}, not {now}: {way_out}")


def _changed_files(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Return the names of the files in which two records of sources differ."""
    texts = [new.get(k) or old[k] for k in {**old, **new} if old.get(k) != new.get(k)]
    return list(dict.fromkeys(re.split("[:@]", text)[0] for text in texts))


def differing_values(old: object, new: object) -> list[str]:
    """Return two values for a message, of tables the entries that differ."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = [k for k in {**old, **new} if old.get(k) != new.get(k) or (k in old) != (k in new)]
        old, new = {k: old[k] for k in keys if k in old}, {k: new[k] for k in keys if k in new}
    return shorten_distinct([repr(old), repr(new)], _MAX_VALUE_LENGTH)


def differing_settings(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return the settings in which two runs differ.

    For records of early releases, which lack ``generation``, the model options are compared.
    """
    keys = RUN_IDENTITY if "generation" in old else (*RUN_IDENTITY, "model_options")
    return trajectories.identity_differences(old, new, keys)


def read_run_metadata(out: Path) -> Mapping[str, Any] | None:
    """Return the metadata of the run in a directory: from run.json, or its first trajectory."""
    with trajectories.reading(out):
        if (out / trajectories.RUN_FILE).exists():
            return trajectories.read_run_metadata(out)
        file = out / trajectories.TRAJECTORIES_FILE
        first = next(trajectories.read_trajectories(file), None) if file.exists() else None
    return None if first is None else first.run


def create_run_directory(out: Path, metadata: Mapping[str, Any]) -> None:
    """Create a run's directory with run.json and README.txt, unless they exist."""
    if not (out / trajectories.RUN_FILE).exists():
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        metadata = {**metadata, "started": now}
        trajectories.write_run_metadata(out, metadata)
    if not (out / trajectories.README_FILE).exists():
        with trajectories.name_file_in_errors(out / trajectories.README_FILE):
            (out / trajectories.README_FILE).write_text(
                readme_text(out, metadata), encoding="utf-8"
            )


def readme_text(out: Path, metadata: Mapping[str, Any]) -> str:
    """Return the text of README.txt."""
    model = metadata.get("model")
    title = f"{metadata.get('dataset')}, played by {metadata.get('agent')}"
    return _README.format(
        title=f"{title} with {model}" if model else title,
        version=metadata.get("version"),
        started=metadata.get("started", "at an unknown time"),
        out=out.name or ".",
    )
