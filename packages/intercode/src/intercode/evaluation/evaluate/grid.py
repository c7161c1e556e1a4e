"""Plays an experiment: a run for every combination of some settings.

In the TOML file, ``[grid]`` holds lists of values; the other settings hold for all runs::

    dataset = "nl2bash:verified"
    [grid]
    agent = ["try-again", "react"]
    model = ["openai/gpt-4o-mini", {model = "mine", base_url = "http://localhost:8000/v1"}]
    [grid.model_options]
    temperature = [0.0, 0.7]

A value that is a table sets several settings at once. A table of lists under ``agent_options``,
``model_options`` or ``env_options`` varies single options, and so does the name of a setting of the
environment.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from intercode.core.config import SETTING_NAMES, EvalConfig, make_config
from intercode.core.errors import (
    BudgetError,
    ConfigError,
    InterCodeError,
    TooManyErrorsError,
    UsageError,
)
from intercode.core.trajectories import README_FILE
from intercode.core.types import Dataset, to_jsonable
from intercode.evaluation.evaluate.plan import Plan, make_plan
from intercode.evaluation.evaluate.run import run_and_close
from intercode.evaluation.evaluate.run_directory import safe_file_name
from intercode_sandbox.registry import unknown_name_error

OPTION_TABLES = ("agent_options", "model_options", "env_options")
SOME_RUNS_HINT = """\
A setting that only some runs take belongs in a table in the grid:
  [grid]
  dataset = ["starter:sql", {dataset = "starter:bash", image = "host"}]"""
_FIXED_SETTINGS = ("out", "parallel", "grid", "limit", "sample", "tasks")
AxisValue = tuple[str, dict[str, Any]]
"""One value of an axis: its name and the settings that it stands for."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of settings. ``name`` is also that of its directory."""

    name: str
    config: EvalConfig


@dataclass(frozen=True, slots=True)
class Grid:
    """An experiment. ``out`` contains a directory for each cell."""

    out: Path
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class CellResult:
    """The result of a cell. ``message`` says why it has errors, stopped or failed.

    A ``stopped`` cell reached a limit or had too many errors. A ``failed`` cell could not be
    played.
    """

    cell: Cell
    state: Literal["done", "errors", "stopped", "failed"]
    message: str = ""


def read_grid(values: Mapping[str, Any], out: Path, where: str = "the settings") -> Grid:
    """Return the cells of settings with a table ``grid``. ``out`` is the directory of all.

    Raises ConfigError or UnknownNameError for settings that are wrong for a run, for values that
    are not lists, and for two cells that are equal.
    """
    shared = {k: v for k, v in values.items() if k not in ("grid", "out")}
    axes = [axis for key, value in _grid_table(values, where) for axis in _axes(key, value, where)]
    combinations: list[tuple[list[str], dict[str, Any]]] = []
    for choices in itertools.product(*axes):
        settings = dict(shared)
        for _, change in choices:
            for key, value in change.items():
                joined = key in OPTION_TABLES and isinstance(value, Mapping)
                settings[key] = {**settings.get(key, {}), **value} if joined else value
        combinations.append(([name for name, _ in choices], settings))
    texts = [json.dumps(to_jsonable(s), sort_keys=True, default=str) for _, s in combinations]
    if duplicate := next((n for n, count in Counter(texts).items() if count > 1), None):
        raise ConfigError(f"{where}: the grid gives the same run twice: {duplicate}")
    names = [safe_file_name(words).lower() for words, _ in combinations]
    cells = []
    for name, text, (_, settings) in zip(names, texts, combinations, strict=True):
        if names.count(name) > 1:
            name = f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
        config = make_config({**settings, "out": out / name}, f"{where}, {name}")
        cells.append(Cell(name, config))
    return Grid(out, tuple(cells))


def run_grid(
    grid: Grid,
    *,
    quiet: bool = False,
    log: Callable[[str], None] = lambda _: None,
    on_dataset: Callable[[Dataset], None] = lambda _: None,
) -> list[CellResult]:
    """Play one cell after another. A cell that fails does not stop the others.

    Raises ConfigError, before anything is played, if the settings of a cell are wrong.
    A call with the same grid resumes an earlier one. ``log`` is called for each cell that failed or
    stopped, ``on_dataset`` for each dataset before its first cell.
    """
    datasets = set[str]()

    def begin(dataset: Dataset) -> None:
        if dataset.name not in datasets:
            datasets.add(dataset.name)
            on_dataset(dataset)

    plans = make_plans(grid)
    _require_playable(plans)
    grid.out.mkdir(parents=True, exist_ok=True)
    (grid.out / README_FILE).write_text(_readme_text(grid), encoding="utf-8")
    results = []
    for number, (cell, plan) in enumerate(plans, 1):
        label = f"[{number}/{len(plans)} {cell.name}] "
        result = _run_cell(cell, plan, quiet, label, begin)
        results.append(result)
        if result.state in ("failed", "stopped"):
            log(f"{label}{result.state}: {result.message}")
    return results


def make_plans(grid: Grid, *, needs_key: bool = True) -> list[tuple[Cell, Plan | InterCodeError]]:
    """Return the plan of each cell, or the error for which it cannot be played.

    ``needs_key`` is that of ``make_plan``.
    """
    plans: list[tuple[Cell, Plan | InterCodeError]] = []
    for cell in grid.cells:
        try:
            plans.append((cell, make_plan(cell.config, needs_key=needs_key)))
        except InterCodeError as e:
            plans.append((cell, e))
    return plans


def _require_playable(plans: Sequence[tuple[Cell, Plan | InterCodeError]]) -> None:
    """Raise ConfigError if the settings of a cell are wrong, naming every such cell beside what is
    wrong."""
    causes: dict[str, list[str]] = {}
    for cell, plan in plans:
        if isinstance(plan, UsageError):
            cause = str(plan).replace(str(cell.config.out), "its directory")
            causes.setdefault(cause, []).append(cell.name)
    if not causes:
        return
    for _, plan in plans:
        if isinstance(plan, Plan):
            plan.close()
    count = sum(map(len, causes.values()))
    listed = "\n".join(f"  {', '.join(names)}: {cause}" for cause, names in causes.items())
    hint = f"\n{SOME_RUNS_HINT}" if count < len(plans) else ""
    raise ConfigError(
        f"{count} of {len(plans)} runs cannot be played, so nothing is:\n{listed}{hint}"
    )


def _run_cell(
    cell: Cell,
    plan: Plan | InterCodeError,
    quiet: bool,
    label: str,
    begin: Callable[[Dataset], None],
) -> CellResult:
    try:
        if isinstance(plan, InterCodeError):
            raise plan
        begin(plan.dataset)
        run_and_close(plan, quiet=quiet, label=label)
    except (BudgetError, TooManyErrorsError) as e:
        return CellResult(cell, "stopped", str(e))
    except (InterCodeError, OSError) as e:
        return CellResult(cell, "failed", f"{type(e).__name__}: {e}")
    errors = plan.episode_errors()
    return CellResult(cell, "errors" if errors else "done", errors[-1] if errors else "")


def _grid_table(values: Mapping[str, Any], where: str) -> Sequence[tuple[str, Any]]:
    table = values.get("grid")
    if not isinstance(table, Mapping) or not table:
        raise ConfigError(
            f"{where}: grid = {table!r} is not a table of lists, such as agent = [...]"
        )
    for key in table:
        if key in _FIXED_SETTINGS:
            known = [k for k in SETTING_NAMES if k not in _FIXED_SETTINGS]
            raise unknown_name_error(f"setting of the grid in {where}", key, known)
    return list(table.items())


def _axes(key: str, value: Any, where: str) -> list[list[AxisValue]]:
    """Return the axes that one key of the grid stands for."""
    if isinstance(value, Mapping) and key in OPTION_TABLES:
        return [
            [
                (f"{option}-{v}", {key: {option: v}})
                for v in _require_list(f"{key}.{option}", vs, where)
            ]
            for option, vs in value.items()
        ]
    return [[_axis_value(key, v, where) for v in _require_list(key, value, where)]]


def _axis_value(key: str, value: Any, where: str) -> AxisValue:
    if not isinstance(value, Mapping):
        return _value_name(key, value), {key: value}
    if key in OPTION_TABLES:
        return "-".join(f"{k}-{v}" for k, v in value.items()) or f"no-{key}", {key: dict(value)}
    if key not in value:
        raise ConfigError(f"{where}: a table in grid.{key} has to set {key} itself: {dict(value)}")
    return _value_name(key, value[key]), dict(value)


def _value_name(key: str, value: Any) -> str:
    if not isinstance(value, str):
        return f"{key}-{value}"
    return Path(value).name if key == "dataset" else value


def _require_list(name: str, value: Any, where: str) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise ConfigError(f"{where}: grid.{name} = {value!r} is not a list of values: write [a, b]")
    return value


def _readme_text(grid: Grid) -> str:
    lines = [f"  {cell.name}" for cell in grid.cells]
    out = grid.out.name
    return "\n".join(
        [
            f"An experiment of intercode: {len(lines)} runs, each in its own directory.",
            "",
            *lines,
            "",
            "The same command with the same file resumes the experiment.",
            "",
            "Commands, to be run in the directory above this one:",
            "",
            f"Print all results: intercode report {out}",
            f"Show all episodes in a browser: intercode view {out}",
            "",
        ]
    )
