"""The arguments of ``intercode eval``, and the settings that they and a file give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from intercode.cli.parser import (
    AGENT_OPTIONS,
    POLICY_OPTIONS,
    RECORD_DIFFS,
    SANDBOX_OPTIONS,
    pop_key_value_options,
    pop_policy_options,
)
from intercode.core import trajectories
from intercode.core.config import task_names
from intercode.core.errors import UsageError
from intercode_sandbox.command.parser import path
from intercode_sandbox.toml import read_toml

ARGUMENTS = f"""\
dataset [DATASET]       name[:subset], such as starter or nl2bash:fs_1, or a .json/.jsonl/.csv file
--config FILE.toml      read settings from a file, under the names of these options (base_url =
                        ...); the command line overrides them; a table [grid] of lists makes it an
                        experiment of many runs
--resume DIR            play what is missing in that run, with the settings that it was started with
agent and model:
{AGENT_OPTIONS}
--mcp NAME=COMMAND ...  start an MCP server in the sandbox of each episode, and offer its tools to
                        the agent tool-calling; NAME=outside:COMMAND starts it on this machine, as
                        you; may be given several times
tasks, parallelism and output:
--max-turns N           actions an episode may take (default: the agent's own, mostly 10)
--parallel N            episodes at the same time (default 4); results do not depend on it
--runner local|ray      where environments run: on this machine, or on a Ray cluster
--address HOST:PORT     head of the Ray cluster (default: the one this machine is part of; local:
                        start one)
--limit N               only the first N tasks
--sample N              a random sample of N tasks, stratified by hardness or group; the seed
                        determines it
--tasks ID,ID,...|FILE  only these, by id, by position from 0, or by a range such as 0-5; or a file
                        that names one on each line
--epochs K              play each task K times (default 1), for pass@k and for narrower intervals
--seed N                seed of the episodes: task i in epoch e gets N + i + e * (tasks in the
                        dataset)
--shuffle               play in an order that the seed determines; results do not depend on it
--out DIR               directory of the run (default: runs/<dataset>-<agent>-<model>-<date>)
{RECORD_DIFFS}
--variants N            play the solved episodes again in N variants of each task, after the run
--log wandb|otel ...    report the run to Weights & Biases, or as OpenTelemetry spans, as it goes
                        on; may be given several times
--log-content           report texts of tasks, models and actions as well; golds never
limits:
  An episode that reaches its limit ends and is scored. When the run reaches its limit it stops;
  the same command with a higher limit resumes it.
--max-tokens-per-episode N  tokens that an episode may use, prompts and answers together
--max-cost-per-episode USD  US dollars that an episode may spend
--max-seconds-per-episode S  seconds that an episode may take
--max-tokens N          tokens that the run may use, prompts and answers together
--max-cost USD          US dollars that the run may spend
--max-seconds S         seconds that the run may take
--fail-on-error N|N%    stop when more episodes than this ended in an error, such as 5 or 10%%
--dry-run               open and check everything, print what the run costs at most and, by earlier
                        episodes, likely; play nothing
--pilot N               play only N random episodes of the run, then print what the rest will likely
                        cost; the same command with the same --out and without it plays the rest
reproducibility:
--deterministic         fixed clock, seeded randomness, hashes of every step: see `intercode replay`
--clock TIME            deterministic, with the clock at '2026-01-01 00:00' (UTC), shifted by '+3d',
                        or 'real'
--hashes                record hashes of every observation and state in a run that is not
                        deterministic
{SANDBOX_OPTIONS}
--limits NAME=VALUE ...  a limit of each sandbox, such as memory=2g: memory, disk, file_size,
                        output, processes, inodes, open_files, address_space, or cpu_seconds of an
                        action; may be given several times
{POLICY_OPTIONS}"""
SETTINGS = {"config": {"type": path}, "seed": {"type": int}}


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
    if "mcp" in given:
        given["mcp"] = {**values.get("mcp", {}), **_named("mcp", given["mcp"], "NAME=COMMAND")}
    if "limits" in given:
        given["limits"] = {**values.get("limits", {}), **_named("limits", given["limits"])}
    if "tasks" in given:
        given["tasks"] = list(task_names(given["tasks"]))
    pop_policy_options(given, values.get("policy"))
    if "address" in given and {**values, **given}.get("runner", "local") == "local":
        raise UsageError("--address names a Ray cluster: it needs --runner ray")
    if isinstance(grid := values.get("grid"), Mapping):
        values["grid"] = {
            k: _narrow_axis(v, given[k]) if k in given else v for k, v in grid.items()
        }
    return {**values, **given}


def _named(option: str, texts: Sequence[str], form: str = "NAME=VALUE") -> dict[str, str]:
    """Return values by name, such as the commands of MCP servers."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--{option} {text!r} is not of the form {form}")
        values[name] = value
    return values


def _recorded_settings(run: Path) -> dict[str, Any]:
    settings = trajectories.read_run_metadata(run).get("config")
    if not isinstance(settings, Mapping):
        raise UsageError(f"{run} does not record its settings: give them, with --out {run}")
    return {**{k: v for k, v in settings.items() if v not in (None, [], {})}, "out": run}


def _narrow_axis(axis: Any, value: Any) -> Any:
    """Reduce an axis of a grid to one value, or the axes in a table to the values that it names."""
    if isinstance(axis, Mapping) and isinstance(value, Mapping):
        return {k: [value[k]] if k in value else v for k, v in axis.items()}
    return [value]
