"""The arguments of ``intercode eval``, and the settings that they and a file give."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from intercode.cli.parser import (
    add_agent_options,
    add_environment_options,
    add_policy_options,
    add_record_diffs,
    dollars,
    path,
    pop_key_value_options,
    pop_policy_options,
    positive_int,
    positive_seconds,
)
from intercode.core import trajectories
from intercode.core.config import read_task_list, read_toml
from intercode.core.errors import UsageError

_ABSENT: Any = argparse.SUPPRESS


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "dataset", nargs="?", default=_ABSENT, metavar="DATASET",
        help="name[:subset], such as starter or nl2bash:fs_1, or a .json/.jsonl/.csv file",
    )  # fmt: skip
    parser.add_argument(
        "--config", type=path, metavar="FILE.toml",
        help="read settings from a file, under the names of these options (base_url = ...); the "
        "command line overrides them; a table [grid] of lists makes it an experiment of many runs",
    )  # fmt: skip
    parser.add_argument(
        "--resume", type=path, metavar="DIR",
        help="play what is missing in that run, with the settings that it was started with",
    )  # fmt: skip
    add_agent_options(parser, "agent and model")
    _add_extent(parser)
    _add_limits(parser)
    _add_reproducibility(parser)
    add_environment_options(parser)
    add_policy_options(parser)


def _add_extent(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("tasks, parallelism and output")
    group.add_argument(
        "--max-turns", type=positive_int, default=_ABSENT, metavar="N",
        help="actions an episode may take (default: the agent's own, mostly 10)",
    )  # fmt: skip
    group.add_argument(
        "--parallel", type=positive_int, default=_ABSENT, metavar="N",
        help="episodes at the same time (default 4); results do not depend on it",
    )  # fmt: skip
    group.add_argument(
        "--runner", default=_ABSENT, metavar="local|ray",
        help="where environments run: on this machine, or on a Ray cluster (docs/ray.md)",
    )  # fmt: skip
    group.add_argument(
        "--address", default=_ABSENT, metavar="HOST:PORT",
        help="head of the Ray cluster (default: the one this machine is part of; local: start one)",
    )  # fmt: skip
    group.add_argument(
        "--limit", type=positive_int, default=_ABSENT, metavar="N", help="only the first N tasks"
    )
    group.add_argument(
        "--tasks", default=_ABSENT, metavar="ID,ID,...|FILE",
        help="only these, by id or by position from 0; or a file that names one on each line",
    )  # fmt: skip
    group.add_argument(
        "--epochs", type=positive_int, default=_ABSENT, metavar="K",
        help="play each task K times (default 1), for pass@k and for narrower intervals",
    )  # fmt: skip
    group.add_argument(
        "--seed", type=int, default=_ABSENT, metavar="N",
        help="seed of the episodes: task i in epoch e gets N + i + e * (tasks in the dataset)",
    )  # fmt: skip
    group.add_argument(
        "--shuffle", action="store_true", default=_ABSENT,
        help="play in an order that the seed determines; results do not depend on it",
    )  # fmt: skip
    group.add_argument(
        "--out", type=path, default=_ABSENT, metavar="DIR",
        help="directory of the run (default: runs/<dataset>-<agent>-<model>-<date>)",
    )  # fmt: skip
    add_record_diffs(group)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "limits", "An episode that reaches its limit ends and is scored. When the run reaches its "
        "limit it stops; the same command with a higher limit resumes it.",
    )  # fmt: skip
    for suffix, what in (("-per-episode", "an episode"), ("", "the run")):
        group.add_argument(
            f"--max-tokens{suffix}", type=positive_int, default=_ABSENT, metavar="N",
            help=f"tokens that {what} may use, prompts and answers together",
        )  # fmt: skip
        group.add_argument(
            f"--max-cost{suffix}", type=dollars, default=_ABSENT, metavar="USD",
            help=f"US dollars that {what} may spend",
        )  # fmt: skip
        group.add_argument(
            f"--max-seconds{suffix}", type=positive_seconds, default=_ABSENT, metavar="S",
            help=f"seconds that {what} may take",
        )  # fmt: skip
    group.add_argument(
        "--fail-on-error", default=_ABSENT, metavar="N|N%",
        help="stop when more episodes than this ended in an error, such as 5 or 10%%",
    )  # fmt: skip
    group.add_argument(
        "--dry-run", action="store_true",
        help="open and check everything, print upper bounds of the cost, and play nothing",
    )  # fmt: skip


def _add_reproducibility(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reproducibility")
    group.add_argument(
        "--deterministic", action="store_true", default=_ABSENT,
        help="fixed clock, seeded randomness, hashes of every step: see `intercode replay`",
    )  # fmt: skip
    group.add_argument(
        "--clock", default=_ABSENT, metavar="TIME",
        help="deterministic, with the clock at '2026-01-01 00:00' (UTC), shifted by '+3d', or "
        "'real'",
    )  # fmt: skip
    group.add_argument(
        "--hashes", action="store_true", default=_ABSENT,
        help="record hashes of every observation and state in a run that is not deterministic",
    )  # fmt: skip


def read_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the file or the resumed run, overridden by the command line's.

    A setting of the command line replaces all values that the grid of the file has for it.
    """
    given = dict(given)
    file, run = given.pop("config", None), given.pop("resume", None)
    if file and run:
        raise UsageError("give --config or --resume, not both: a run has its own settings")
    values = read_toml(file) if file else _recorded_settings(run) if run else {}
    pop_key_value_options(given, values)
    if "tasks" in given:
        given["tasks"] = _task_names(given["tasks"])
    pop_policy_options(given, values.get("policy"))
    if "address" in given and {**values, **given}.get("runner", "local") == "local":
        raise UsageError("--address names a Ray cluster: it needs --runner ray")
    if isinstance(grid := values.get("grid"), Mapping):
        values["grid"] = {
            k: _narrow_axis(v, given[k]) if k in given else v for k, v in grid.items()
        }
    return {**values, **given}


def _recorded_settings(run: Path) -> dict[str, Any]:
    """Return the settings that a run was started with."""
    settings = trajectories.read_run_metadata(run).get("config")
    if not isinstance(settings, Mapping):
        raise UsageError(f"{run} does not record its settings: give them, with --out {run}")
    return {**{k: v for k, v in settings.items() if v not in (None, [], {})}, "out": run}


def _narrow_axis(axis: Any, value: Any) -> Any:
    """Reduce an axis of a grid to one value, or the axes in a table to the values that it names."""
    if isinstance(axis, Mapping) and isinstance(value, Mapping):
        return {k: [value[k]] if k in value else v for k, v in axis.items()}
    return [value]


def _task_names(text: str) -> list[str]:
    """Return the ids and positions in a comma-separated list, or in a file."""
    if Path(text).is_file():
        return read_task_list(Path(text))
    if text.endswith(".txt"):
        raise UsageError(f"--tasks {text}: there is no such file")
    return [t for t in text.split(",") if t]
