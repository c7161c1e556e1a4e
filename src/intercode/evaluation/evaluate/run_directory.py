"""Where a run lies: its directory's name, and whether a directory holds another run."""

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

README_FILE = "README.txt"
_MAX_NAME_LENGTH = 120  # characters of a name: file systems allow 255 bytes

_README = """\
{title}

This directory is one evaluation run of intercode {version}, begun {started}.

  run.json            what every result here was obtained with: settings, versions, hashes, prompts
  trajectories.jsonl  one line an episode, written as it ended
  history.jsonl       one line for each time that somebody worked on it: how it ended, what it spent

From the directory above this one:

Play what is missing or ended in an error:
                                   intercode eval --resume {out}
The figures:                       intercode report {out}
One episode, turn by turn:         intercode show {out} TASK
All of them in a browser:          intercode view {out}
Is it the same again?              intercode replay {out}
In Python:                         intercode.load_run({out!r}).to_pandas()
"""


def run_name(facts: Mapping[str, Any]) -> str:
    """``<dataset>-<agent>-<model>-<date>``, fit for a file's name."""
    day = datetime.date.today().isoformat()
    dataset = Path(str(facts["dataset"])).name
    return safe_file_name([dataset, str(facts["agent"]), str(facts["model"] or ""), day])


def safe_file_name(parts: list[str]) -> str:
    """Texts as one name for a file."""
    words = [re.sub(r"[^\w.]+", "-", p).strip("-") for p in parts if p]
    return "-".join(filter(None, words))[-_MAX_NAME_LENGTH:].strip("-.")


def unused_directory(parent: Path, name: str, facts: Mapping[str, Any]) -> Path:
    """``parent/name``, or ``name-2`` and so on where another run has it."""
    for number in itertools.count(1):
        path = parent / (name if number == 1 else f"{name}-{number}")
        old = read_run_metadata(path)
        if old is None or not differing_settings(old, facts):
            return path
    raise AssertionError("unreachable: the numbers do not end")


def require_same_run(out: Path, facts: Mapping[str, Any]) -> None:
    """Raise UsageError where ``out`` holds a run with other settings, naming the first."""
    old = read_run_metadata(out)
    for key in [] if old is None else differing_settings(old, facts):
        before, now = _differing_entries((old or {}).get(key), facts.get(key))
        raise UsageError(
            f"{out} holds a run with {key} {short_repr(before)}, not {short_repr(now)}: "
            "give another --out, or the same settings to finish that run"
        )


def _differing_entries(old: object, new: object) -> tuple[object, object]:
    """Of two tables what differs in them; anything else whole."""
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return old, new
    apart = [k for k in {**old, **new} if old.get(k) != new.get(k) or (k in old) != (k in new)]
    return {k: old[k] for k in apart if k in old}, {k: new[k] for k in apart if k in new}


def differing_settings(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The settings in which two runs differ. Records of earlier releases do not tell what was
    generated how: there the model's options are compared."""
    keys = RUN_IDENTITY if "generation" in old else (*RUN_IDENTITY, "model_options")
    return trajectories.identity_differences(old, new, keys)


def read_run_metadata(out: Path) -> Mapping[str, Any] | None:
    """The facts of the run in a directory: its run.json's, else its first trajectory's."""
    if (out / trajectories.RUN_FILE).exists():
        return trajectories.read_run_metadata(out)
    file = out / trajectories.TRAJECTORIES_FILE
    first = next(trajectories.read_trajectories(file), None) if file.exists() else None
    return None if first is None else first.run


def create_run_directory(out: Path, facts: Mapping[str, Any]) -> None:
    """Make a run's directory with its run.json and README.txt, unless they are there."""
    if not (out / trajectories.RUN_FILE).exists():
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        facts = {**facts, "started": now}
        trajectories.write_run_metadata(out, facts)
    if not (out / README_FILE).exists():
        (out / README_FILE).write_text(readme_text(out, facts), encoding="utf-8")


def readme_text(out: Path, facts: Mapping[str, Any]) -> str:
    """What a run's directory says of itself to whoever finds it."""
    model = facts.get("model")
    title = f"{facts.get('dataset')}, played by {facts.get('agent')}"
    return _README.format(
        title=f"{title} with {model}" if model else title,
        version=facts.get("version"),
        started=facts.get("started", "at a time that is not recorded"),
        out=out.name or ".",
    )


def short_repr(value: object) -> str:
    """A setting in a message: long ones are cut."""
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
