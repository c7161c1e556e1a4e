"""Simulates how often a 95 % interval contains the true value, and how often a difference of the
size ``detectable`` is found. Seeds make the table reproducible.

    python benchmarks/coverage.py [--rounds 1000] [--seed 0]

The probability to solve a task has a Beta distribution with mean p and intra-task correlation rho,
and each epoch is a trial with that probability (rho = 0: all tasks are alike; rho = 1: each task is
always or never solved). The estimate is of p, over all possible tasks. ``naive`` treats episodes as
independent samples, as many reports do.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from statistics import fmean

from intercode.results.statistics.intervals import (
    Cluster,
    bootstrap_interval,
    estimate_paired_difference,
    estimate_proportion,
    paired_standard_error,
    wilson_interval,
)
from intercode.results.statistics.significance import (
    detectable_difference,
    mcnemar_p,
    sign_flip_test,
)

TASKS, CHANCES, EPOCHS, CORRELATIONS = (20, 60, 200), (0.05, 0.5, 0.9), (1, 4), (0.0, 0.4)
SAME_TASKS = 0.7  # share of tasks that are as hard for the second side as for the first
Bounds = tuple[float | None, float | None]


def chances(draw: random.Random, tasks: int, mean: float, rho: float) -> list[float]:
    """Return the probability to solve each task."""
    if rho == 0:
        return [mean] * tasks
    size = (1 - rho) / rho
    return [draw.betavariate(mean * size, (1 - mean) * size) for _ in range(tasks)]


def plays(draw: random.Random, chance: Sequence[float], epochs: int) -> list[int]:
    """Return how many of its epochs solve each task."""
    return [sum(draw.random() < p for _ in range(epochs)) for p in chance]


def share(found: Iterator[tuple[float, Bounds]]) -> float:
    """Return the share of intervals that contain the true value, in percent."""
    held = [
        low is not None and high is not None and low <= true <= high for true, (low, high) in found
    ]
    return 100 * fmean(held)


# ------------------------------------------------------------- one run
def runs(
    draw: random.Random,
    rounds: int,
    case: tuple[int, float, int, float],
    method: Callable[[list[int], int], Bounds],
) -> Iterator[tuple[float, Bounds]]:
    tasks, mean, epochs, rho = case
    for _ in range(rounds):
        yield mean, method(plays(draw, chances(draw, tasks, mean, rho), epochs), epochs)


def clustered(solved: list[int], epochs: int) -> Bounds:
    found = estimate_proportion([Cluster(hits, epochs) for hits in solved])
    return (None, None) if found is None else (found.low, found.high)


def naive(solved: list[int], epochs: int) -> Bounds:
    return wilson_interval(sum(solved) / (len(solved) * epochs), len(solved) * epochs)


def bootstrapped(solved: list[int], epochs: int) -> Bounds:
    if min(solved) == max(solved):
        return clustered(solved, epochs)
    return bootstrap_interval([hits / epochs for hits in solved], resamples=400)


# ------------------------------------------------------------- two runs
def both(
    draw: random.Random, tasks: int, mean: float, epochs: int, rho: float, better: float = 0.0
) -> list[Fraction]:
    """Draw the differences of two runs. Most tasks are equally hard for both; the others are drawn
    again. Then the second run is ``better`` on average (or worse): its probabilities move towards 1
    (or 0)."""
    first = chances(draw, tasks, mean, rho)
    anew = chances(draw, tasks, mean, rho)
    second = [a if draw.random() < SAME_TASKS else b for a, b in zip(first, anew, strict=True)]
    if better > 0:
        second = [p + better * (1 - p) / (1 - mean) for p in second]
    elif better < 0:
        second = [p * (mean + better) / mean for p in second]
    counts = zip(plays(draw, first, epochs), plays(draw, second, epochs), strict=True)
    return [Fraction(b - a, epochs) for a, b in counts]


def differences(
    draw: random.Random, rounds: int, case: tuple[int, float, int, float], method: str
) -> Iterator[tuple[float, Bounds]]:
    tasks, mean, epochs, rho = case
    for _ in range(rounds):
        moved = list(map(float, both(draw, tasks, mean, epochs, rho)))
        if method == "paired":
            found = estimate_paired_difference(moved, bound=1.0)
            yield 0.0, (found.low, found.high)
        else:
            yield 0.0, bootstrap_interval(moved, resamples=400)


def false_alarms(
    draw: random.Random, rounds: int, case: tuple[int, float, int, float]
) -> tuple[float, float]:
    """Return how often the exact test gives p < 0.05, in percent: if both sides are alike, and if
    they differ by the size that ``detectable`` computes from the spread of another such experiment.
    """
    tasks, mean, epochs, rho = case
    alarms, found = [], []
    for _ in range(rounds):
        alike = both(draw, tasks, mean, epochs, rho)
        alarms.append(_p(alike, epochs) < 0.05)
        least = detectable_difference(
            paired_standard_error(list(map(float, alike)), bound=1.0), tasks, epochs=epochs
        )
        better = next((d for d in (least, -least) if 0 < mean + d < 1), None) if least else None
        if better is not None:
            pair = both(draw, tasks, mean, epochs, rho, better)
            found.append(_p(pair, epochs) < 0.05)
    return 100 * fmean(alarms), 100 * fmean(found) if found else float("nan")


def _p(moved: Sequence[Fraction], epochs: int) -> float:
    if epochs > 1:
        return sign_flip_test(moved).p
    return mcnemar_p(sum(d < 0 for d in moved), sum(d > 0 for d in moved))


# ------------------------------------------------------------- the tables
def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    head = f"{'tasks':>5} {'p':>5} {'epochs':>6} {'rho':>4}"
    print(f"nominal 95 %, {args.rounds} rounds a line, seed {args.seed}\n")
    print(
        f"{head} | {'clustered':>9} {'naive':>6} {'bootstrap':>9} | {'difference':>10} "
        f"{'boot':>5} | {'alarms':>6} {'power':>5}"
    )
    for case in product(TASKS, CHANCES, EPOCHS, CORRELATIONS):
        tasks, mean, epochs, rho = case
        if epochs == 1 and rho != CORRELATIONS[1]:
            continue  # with one epoch the correlation has no effect
        draw = random.Random(f"{args.seed} {case}")
        cells = [share(runs(draw, args.rounds, case, way)) for way in (clustered, naive)]
        few = max(100, args.rounds // 5)
        cells.append(share(runs(draw, few, case, bootstrapped)))
        moved = share(differences(draw, args.rounds, case, "paired"))
        booted = share(differences(draw, few, case, "bootstrap"))
        alarms, power = false_alarms(draw, few, case)
        print(
            f"{tasks:>5} {mean:>5} {epochs:>6} {rho:>4} | {cells[0]:>9.1f} {cells[1]:>6.1f} "
            f"{cells[2]:>9.1f} | {moved:>10.1f} {booted:>5.1f} | {alarms:>6.1f} {power:>5.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
