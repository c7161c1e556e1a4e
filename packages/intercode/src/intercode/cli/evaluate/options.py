"""The arguments of ``intercode eval``, and the settings that they and a file give."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from intercode.cli.shared_options import SANDBOX_OPTIONS, options_of_run, run_settings
from intercode.core import trajectories
from intercode.core.config import collect_settings, recorded_settings
from intercode.core.errors import UsageError
from intercode_sandbox.command.parser import path
from intercode_sandbox.toml import read_toml

ARGUMENTS = f"""\
dataset [DATASET]       name[:subset], such as starter (its Bash tasks), starter:sql or
                        nl2bash:fs_1, or a .json/.jsonl/.csv file (see `intercode list datasets`)
--config FILE.toml      read settings from a file, under the names of `intercode list settings`; the
                        command line overrides them; a table [grid] of lists makes it an experiment
                        of many runs
--resume DIR            play what is missing in that run, with its settings; more --epochs extend it
--set NAME=VALUE ...    a line of such a file: any setting of the run or of its environment, as in
                        session=fresh, timeout=30, network=host, deterministic=true,
                        limits.memory=2g, policy.deny='command:rm -r', model_options.temperature=0.7
                        or shuffle=true; may be given several times
agent and model:
{options_of_run("agent", "model", "base_url")}
tasks, parallelism and output:
{options_of_run("max_turns", "parallel", "limit", "sample", "tasks", "epochs", "seed", "out")}
{options_of_run("save_every", "log")}
limits:
  An episode that reaches its limit ends and is scored. When the run reaches its limit it stops;
  the same command with a higher limit resumes it.
{options_of_run("max_tokens", "max_cost", "max_seconds", "fail_on_error")}
--dry-run               open and check everything, print what the run costs at most and, by earlier
                        episodes, likely; play nothing
--pilot N               play only N random episodes of the run, then print what the rest will likely
                        cost; the same command with the same --out and without it plays the rest
sandbox and scoring:
{SANDBOX_OPTIONS}"""
SETTINGS = {"config": {"type": path}, "seed": {"type": int}}
RENAMED = {
    "--variants": "`intercode replay RUN --variants N`, after the run",
}
"""Options of an earlier version that only this command had, and what they are now."""


def read_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the file or the resumed run, overridden by the command line's.

    A setting of the command line replaces all values that the grid of the file has for it.
    """
    given = dict(given)
    file, run = given.pop("config", None), given.pop("resume", None)
    if file and run:
        raise UsageError("give --config or --resume, not both: a run has its own settings")
    values = read_toml(file) if file else _recorded_settings(run) if run else {}
    grid = values.pop("grid", None)
    settings = run_settings(given, collect_settings(values, str(file or run)))
    if isinstance(grid, Mapping):
        alone = run_settings(given, {})
        alone = {**alone.get("env_options", {}), **alone}
        grid = {k: _narrow_axis(v, alone[k]) if k in alone else v for k, v in grid.items()}
    return settings if grid is None else {**settings, "grid": grid}


def _recorded_settings(run: Path) -> dict[str, Any]:
    readme = run / trajectories.README_FILE
    if readme.exists() and not (run / trajectories.RUN_FILE).exists():
        raise UsageError(
            f"{run} is the directory of an experiment: its own command resumes it, `intercode eval "
            f"--config FILE`; see {readme}"
        )
    settings = trajectories.read_run_metadata(run).get("config")
    if not isinstance(settings, Mapping):
        raise UsageError(f"{run} does not record its settings: give them, with --out {run}")
    return {**recorded_settings(settings), "out": run}


def _narrow_axis(axis: Any, value: Any) -> Any:
    """Reduce an axis of a grid to one value, or the axes in a table to the values that it names."""
    if isinstance(axis, Mapping) and isinstance(value, Mapping):
        return {k: [value[k]] if k in value else v for k, v in axis.items()}
    return [value]
