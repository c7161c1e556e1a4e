"""Figures of result sets: success by turn, by group, and against cost, each with its interval.

Only comparable rows share a figure: one dataset, one set of conditions. Colours are distinguishable
for colour-blind readers (Okabe & Ito 2008), and every series has its own marker. The same episodes
give the same file, byte by byte. Needs the extra ``data``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from intercode.core.errors import ConfigError
from intercode.core.types import Trajectory
from intercode.results.report.result_sets import (
    ResultSet,
    different_tasks_warning,
    load_result_sets,
)
from intercode.results.report.run_tables import MAX_GROUPS
from intercode.results.statistics import figures, metrics
from intercode.results.statistics.intervals import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
MARKERS = "osD^vPX*<>"
_STYLE: Any = {
    "svg.hashsalt": "intercode",
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.axisbelow": True,
    "figure.facecolor": "white",
}
_METADATA = {"svg": {"Date": None}, "png": {"Software": None}}


def save_plots(paths: Sequence[Path], directory: Path) -> list[Path]:
    """Draw all figures of logs and run directories as SVG and PNG, and return the files.

    Raises ConfigError without matplotlib, UsageError for a path without logs.
    """
    result_sets = load_result_sets(paths)
    try:
        import matplotlib
    except ImportError as e:
        raise ConfigError("figures need matplotlib: pip install 'intercode-gym[data]'") from e
    directory.mkdir(parents=True, exist_ok=True)
    out: list[Path] = []
    with matplotlib.rc_context(_STYLE):
        for name, title, rows in _comparable_sets(result_sets):
            for what, figure in (
                ("by-turn", _plot_by_turn(title, rows)),
                ("by-group", _plot_by_group(title, rows)),
                ("cost", _plot_cost(title, rows)),
            ):
                if figure is None:
                    continue
                for kind, metadata in _METADATA.items():
                    out.append(directory / f"{name}-{what}.{kind}")
                    figure.savefig(
                        out[-1], format=kind, dpi=150, bbox_inches="tight", metadata=metadata
                    )
    return out


def _comparable_sets(result_sets: Sequence[ResultSet]) -> list[tuple[str, str, list[ResultSet]]]:
    """Return result sets by dataset and conditions, with a file name and a title."""
    sets: dict[tuple[str, str], list[ResultSet]] = {}
    for result_set in result_sets:
        sets.setdefault((result_set.dataset, result_set.conditions), []).append(result_set)
    out: list[tuple[str, str, list[ResultSet]]] = []
    for (dataset, conditions), rows in sets.items():
        name = re.sub(r"[^\w.-]+", "-", Path(dataset).name).strip("-")
        number = sum(n == name or n.startswith(f"{name}-set") for n, _, _ in out) + 1
        name = name if number == 1 else f"{name}-set{number}"
        differ = (
            "\nrows have different tasks and cannot be compared"
            if different_tasks_warning(rows)
            else ""
        )
        out.append((name, f"{dataset}\n{conditions}{differ}", rows))
    return out


def _plot_by_turn(title: str, rows: Sequence[ResultSet]) -> Figure | None:
    """Plot the share of episodes solved within each number of turns, with a band for its
    interval."""
    figure, axes = _new_axes(title, "turns", "solved within so many turns, %")
    longest = 0
    for n, result_set in enumerate(rows):
        estimates = figures.success_by_turn(result_set.episodes)
        turns = list(range(1, len(estimates) + 1))
        longest = max(longest, len(estimates))
        values = [e.value for e in estimates]
        axes.plot(
            turns,
            values,
            color=_colour(n),
            marker=MARKERS[n % len(MARKERS)],
            label=_series_label(result_set),
        )
        low, high = zip(*map(_bounds, estimates), strict=True) if estimates else ((), ())
        axes.fill_between(turns, low, high, color=_colour(n), alpha=0.15, linewidth=0)
    if not longest:
        return None
    axes.set_xticks(range(1, longest + 1, max(1, longest // 15)))
    return _with_legend(figure, axes)


def _plot_by_group(title: str, rows: Sequence[ResultSet]) -> Figure | None:
    """Plot success in each group (file system, hardness), with bars for its interval."""
    split = [metrics.split_episodes(e.episodes, metrics.group_of) for e in rows]
    rows = [result_set for result_set, part in zip(rows, split, strict=True) if part]
    parts = [part for part in split if part]
    groups = sorted({g for part in parts for g in part}, key=figures.group_rank)
    if not 2 <= len(groups) <= MAX_GROUPS:
        return None
    figure, axes = _new_axes(title, "", "success, %")
    for n, (result_set, part) in enumerate(zip(rows, parts, strict=True)):
        at = [i + 0.6 * ((n + 0.5) / len(rows) - 0.5) for i, g in enumerate(groups) if g in part]
        _plot_points(axes, at, [part[g] for g in groups if g in part], n, _series_label(result_set))
    axes.set_xticks(range(len(groups)), groups)
    return _with_legend(figure, axes)


def _plot_cost(title: str, rows: Sequence[ResultSet]) -> Figure | None:
    """Plot success against the mean cost of an episode, for the rows whose cost is known."""
    figure, axes = _new_axes(title, "mean cost of an episode, US dollars", "success, %")
    known = False
    for n, result_set in enumerate(rows):
        cost = figures.mean_figure(result_set.episodes, lambda t: metrics.known_usage(t).cost)
        if cost is None or cost.clusters < len(
            {t.task for t in metrics.completed_episodes(result_set.episodes)}
        ):
            continue
        known = True
        _plot_points(
            axes, [cost.value], [list(result_set.episodes)], n, _series_label(result_set), cost
        )
    return _with_legend(figure, axes) if known else None


def _plot_points(
    axes: Axes,
    at: Sequence[float],
    parts: Sequence[Sequence[Trajectory]],
    n: int,
    label: str,
    across: Estimate | None = None,
) -> None:
    """Plot one point for each part's success, with its interval, and horizontally that of
    ``across``."""
    points = [(x, e) for x, part in zip(at, parts, strict=True) if (e := figures.success(part))]
    spans = [(e.value, *_bounds(e)) for _, e in points]
    sideways = None
    if across is not None and across.low is not None and across.high is not None:
        sideways = [[across.value - max(across.low, 0.0)], [across.high - across.value]]
    lower = [max(0.0, value - low) for value, low, _ in spans]
    upper = [max(0.0, high - value) for value, _, high in spans]
    axes.errorbar(
        [x for x, _ in points],
        [e.value for _, e in points],
        yerr=[lower, upper],
        xerr=sideways,
        fmt=MARKERS[n % len(MARKERS)],
        color=_colour(n),
        capsize=3,
        label=label,
    )


def _new_axes(title: str, across: str, up: str) -> tuple[Figure, Axes]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.3))
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_title(title, fontsize=9, loc="left", wrap=True)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.set_ylim(-2, 102)
    return figure, axes


def _with_legend(figure: Figure, axes: Axes) -> Figure:
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        frameon=False,
        title="with 95 % intervals",
        fontsize=9,
        title_fontsize=8,
    )
    return figure


def _bounds(estimate: Estimate) -> tuple[float, float]:
    """Return the interval, or the value itself if there is none."""
    if estimate.low is None or estimate.high is None:
        return estimate.value, estimate.value
    return estimate.low, estimate.high


def _series_label(result_set: ResultSet) -> str:
    """Return agent and model, the variant if there is one, and the number of tasks."""
    tasks = len({t.task for t in result_set.episodes})
    model = "" if result_set.model in ("none", result_set.agent) else f", {result_set.model}"
    variant = f", {result_set.variant}" if result_set.variant else ""
    return f"{result_set.agent}{model}{variant} ({tasks} tasks)"


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]
