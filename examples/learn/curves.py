"""Draws the curves of single.py and credit.py, with intervals over the seeds, and prints a table of
every kind of run.

    python examples/learn/curves.py [--runs DIR] [--out DIR]

A curve is the share of solved training episodes, each a task that was played for the first time,
in windows of at least 160 episodes. The band is the 95 % interval of the mean over the seeds, by
Student's t. `one turn` and `five turns` are compared in `interaction.svg`, the kinds of credit in
`credit.svg`, and the turns of language_model.py in `language-model.svg`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt

from intercode.results.statistics.distributions import t_quantile

WINDOW = 160
Runs = dict[str, dict[Path, dict[str, Any]]]
"""The results of runs by kind and by folder."""
FIGURES = {
    "interaction.svg": {"one-turn": "one turn", "five-turns": "five turns"},
    "credit.svg": {
        "five-turns": "final reward",
        "delta": "change of the score",
        "fork": "forks",
    },
    "language-model.svg": {"turns-1": "one turn", "turns-7": "seven turns"},
}


def finished_runs(folder: Path) -> Runs:
    """Return the results of the finished runs. Ends the program if there are none, or if those of
    a kind were made in different ways or have different numbers of episodes."""
    runs: Runs = {}
    for file in sorted(folder.glob("*-[0-9]*/result.json")):
        arm, result = file.parent.name.rpartition("-")[0], json.loads(file.read_text())
        others = runs.setdefault(arm, {})
        first = next(iter(others.values()), result)
        if "made_with" not in result or _kind(result) != _kind(first):
            raise SystemExit(f"{file.parent} was not made as the other runs of {arm!r}")
        others[file.parent] = result
    if not runs:
        raise SystemExit(f"{folder} has no finished run: name the folder of runs with --runs")
    return runs


def _kind(stored: dict[str, Any]) -> dict[str, Any]:
    return {**stored["made_with"], "seed": None, "episodes": stored["episodes"]}


def read_curve(run: Path) -> list[tuple[int, float]]:
    """Return, for each window, the episodes played up to its end and the success of the whole ones.

    Forks of later turns count as played, but not as successes or failures of whole episodes.
    """
    windows, played, begun, whole, solved = [], 0, 0, 0, 0
    for line in (run / "curve.jsonl").read_text().splitlines():
        row = json.loads(line)
        played += row["episodes"]
        whole, solved = whole + row["whole"], solved + row["solved"]
        if played - begun >= WINDOW:
            windows.append((played, solved / whole))
            begun, whole, solved = played, 0, 0
    return windows


def interval(values: list[float]) -> float:
    """Return half the width of the 95 % interval of a mean."""
    if len(values) < 2:
        return float("nan")
    return t_quantile(0.975, len(values) - 1) * stdev(values) / len(values) ** 0.5


def draw(path: Path, runs: Runs, arms: dict[str, str]) -> None:
    """Draw one figure."""
    figure, axes = plt.subplots(figsize=(6, 3.5))
    for arm, label in arms.items():
        if arm not in runs:
            continue
        curves = [read_curve(run) for run in runs[arm]]
        columns = [list(values) for values in zip(*curves, strict=False)]
        places = [mean(played for played, _ in column) for column in columns]
        middle = [mean(share for _, share in column) for column in columns]
        half = [interval([share for _, share in column]) for column in columns]
        axes.plot(places, middle, label=f"{label}, {len(curves)} seeds")
        axes.fill_between(
            places,
            [max(m - h, 0) for m, h in zip(middle, half, strict=True)],
            [min(m + h, 1) for m, h in zip(middle, half, strict=True)],
            alpha=0.2,
        )
    axes.set(xlabel="episodes", ylabel="success on new tasks", ylim=(0, 1.02))
    axes.legend(loc="upper left")
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def print_table(runs: Runs) -> None:
    """Print the success before and after of each kind of run, as mean and half of the interval."""
    for arm, stored in sorted(runs.items()):
        results = [one["success"] for one in stored.values()]
        reached = [_episodes_to(0.8, read_curve(run)) for run in stored]
        episodes = next(iter(stored.values()))["episodes"]
        print(f"{arm}: {len(stored)} seeds of {episodes} episodes")
        print(f"  episodes to 80 %: {', '.join(str(n or 'never') for n in reached)}")
        for key in results[0]:
            values = [result[key] for result in results]
            print(f"  {key:38} {mean(values):.2f} ± {interval(values):.2f}")


def _episodes_to(share: float, curve: list[tuple[int, float]]) -> int | None:
    return next((played for played, value in curve if value >= share), None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, default=Path("runs/learn"), help="where runs are kept")
    parser.add_argument("--out", type=Path, default=Path(), help="where the figures go")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    runs = finished_runs(args.runs)
    for name, arms in FIGURES.items():
        if any(arm in runs for arm in arms):
            draw(args.out / name, runs, arms)
    print_table(runs)
