"""The arguments of ``intercode eval``, and the settings that they and a file give."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from intercode.cli.parser import (  # fmt: skip
    add_agent_options,
    add_environment_options,
    add_record_diffs,
    dollars,
    path,
    pop_key_value_options,
    positive_int,
    positive_seconds,
)
from intercode.cli.policy_options import add_policy_options, pop_policy_options
from intercode.core import trajectories
from intercode.core.config import read_task_list, read_toml
from intercode.core.errors import UsageError


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    absent: Any = argparse.SUPPRESS
    parser.add_argument(
        "dataset", nargs="?", default=absent, metavar="DATASET",
        help="name[:subset], such as starter or nl2bash:fs_1, or a .json/.jsonl/.csv file",
    )  # fmt: skip
    parser.add_argument(
        "--config", type=path, metavar="FILE.toml",
        help="settings from a file, under the names of these options (base_url = ...); "
        "options given here go before it; a table [grid] of lists makes it a whole experiment",
    )  # fmt: skip
    parser.add_argument(
        "--resume", type=path, metavar="DIR",
        help="play what is missing in that run, with the settings that it was begun with",
    )  # fmt: skip
    add_agent_options(parser, "who plays")
    _add_extent(parser)
    _add_limits(parser)
    _add_reproducibility(parser)
    add_environment_options(parser)
    add_policy_options(parser)


def _add_extent(parser: argparse.ArgumentParser) -> None:
    absent: Any = argparse.SUPPRESS
    much = parser.add_argument_group("how much, and where it goes")
    much.add_argument(
        "--max-turns", type=positive_int, default=absent, metavar="N",
        help="actions an episode may take (default: the agent's own, mostly 10)",
    )  # fmt: skip
    much.add_argument(
        "--parallel", type=positive_int, default=absent, metavar="N",
        help="episodes at the same time (default 4); results do not depend on it",
    )  # fmt: skip
    much.add_argument(
        "--runner", default=absent, metavar="local|ray",
        help="where environments live: here, or on the nodes of a Ray cluster (docs/ray.md)",
    )  # fmt: skip
    much.add_argument(
        "--address", default=absent, metavar="HOST:PORT",
        help="head of that cluster (default: the one this machine is part of; local: one for now)",
    )  # fmt: skip
    much.add_argument(
        "--limit", type=positive_int, default=absent, metavar="N", help="only the first N tasks"
    )
    much.add_argument(
        "--tasks", default=absent, metavar="ID,ID,...|FILE",
        help="only these, by id or by position from 0; or a file of them, one a line",
    )  # fmt: skip
    much.add_argument(
        "--epochs", type=positive_int, default=absent, metavar="K",
        help="play each task K times (default 1): for pass@k, and intervals that say more",
    )  # fmt: skip
    much.add_argument(
        "--seed", type=int, default=absent, metavar="N",
        help="seed of the episodes: task i in epoch e gets N + i + e * (tasks in the dataset)",
    )  # fmt: skip
    much.add_argument(
        "--shuffle", action="store_true", default=absent,
        help="play in an order drawn from the seed; results do not depend on it",
    )  # fmt: skip
    much.add_argument(
        "--out", type=path, default=absent, metavar="DIR",
        help="where the run goes (default: runs/<dataset>-<agent>-<model>-<date>)",
    )  # fmt: skip
    add_record_diffs(much)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    absent: Any = argparse.SUPPRESS
    group = parser.add_argument_group(
        "limits", "An episode at its own limit is scored as it stands. At one of the run's, the "
        "run stops; the same command with a higher one goes on.",
    )  # fmt: skip
    for whose, what in (("-per-episode", "an episode"), ("", "the run")):
        group.add_argument(
            f"--max-tokens{whose}", type=positive_int, default=absent, metavar="N",
            help=f"tokens that {what} may use, prompts and answers",
        )  # fmt: skip
        group.add_argument(
            f"--max-cost{whose}", type=dollars, default=absent, metavar="USD",
            help=f"US dollars that {what} may spend",
        )  # fmt: skip
        group.add_argument(
            f"--max-seconds{whose}", type=positive_seconds, default=absent, metavar="S",
            help=f"how long {what} may take",
        )  # fmt: skip
    group.add_argument(
        "--fail-on-error", default=absent, metavar="N|N%",
        help="stop when more episodes than that ended in an error, such as 5 or 10%%",
    )  # fmt: skip
    group.add_argument(
        "--dry-run", action="store_true",
        help="open and check everything, say what it would take at the most, play nothing",
    )  # fmt: skip


def _add_reproducibility(parser: argparse.ArgumentParser) -> None:
    absent: Any = argparse.SUPPRESS
    same = parser.add_argument_group("the same again")
    same.add_argument(
        "--deterministic", action="store_true", default=absent,
        help="fixed time, seeded chance, hashes of every step: see `intercode replay`",
    )  # fmt: skip
    same.add_argument(
        "--clock", default=absent, metavar="TIME",
        help="deterministic, with the clock at '2026-01-01 00:00' (UTC), off by '+3d', or 'real'",
    )  # fmt: skip
    same.add_argument(
        "--hashes", action="store_true", default=absent,
        help="record hashes of every observation and state, also where they may differ",
    )  # fmt: skip


def read_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the file, with those of the command line over them.

    Of an axis of the file's grid, the command line's value alone is left.
    """
    given = dict(given)
    file, run = given.pop("config", None), given.pop("resume", None)
    if file and run:
        raise UsageError("--config and --resume exclude each other: a run has its own settings")
    values = read_toml(file) if file else _recorded_settings(run) if run else {}
    pop_key_value_options(given, values)
    if "tasks" in given:
        given["tasks"] = _task_names(given["tasks"])
    pop_policy_options(given, values.get("policy"))
    if "address" in given and {**values, **given}.get("runner", "local") == "local":
        raise UsageError("--address names a Ray cluster: it goes with --runner ray")
    if isinstance(grid := values.get("grid"), Mapping):
        values["grid"] = {
            k: _narrow_axis(v, given[k]) if k in given else v for k, v in grid.items()
        }
    return {**values, **given}


def _recorded_settings(run: Path) -> dict[str, Any]:
    """The settings that a run's directory was begun with."""
    settings = trajectories.read_run_metadata(run).get("config")
    if not isinstance(settings, Mapping):
        raise UsageError(f"{run} does not record its settings: give them, with --out {run}")
    return {**{k: v for k, v in settings.items() if v not in (None, [], {})}, "out": run}


def _narrow_axis(axis: Any, value: Any) -> Any:
    """An axis of a grid with one value; of a table of axes, those that the value names."""
    if isinstance(axis, Mapping) and isinstance(value, Mapping):
        return {k: [value[k]] if k in value else v for k, v in axis.items()}
    return [value]


def _task_names(text: str) -> list[str]:
    """Ids and positions between commas, or those in a file."""
    if Path(text).is_file():
        return read_task_list(Path(text))
    if text.endswith(".txt"):
        raise UsageError(f"--tasks {text}: there is no such file")
    return [t for t in text.split(",") if t]
