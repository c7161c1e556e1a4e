"""Exact tests for paired samples, and the differences that a number of tasks can detect."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress

from intercode.results.statistics.distributions import normal_quantile

SIGN_FLIP_SAMPLES = 10_000
MAX_DISTRIBUTION_BYTES = 1 << 24
"""The size above which the exact distribution of a sign-flip test is sampled instead."""

_TIE_TOLERANCE = 1 - 1e-12
_LOW_BITS = bytes(n & 1 for n in range(256))


@dataclass(frozen=True, slots=True)
class SignificanceTest:
    """A two-sided p-value and the method that gave it."""

    p: float
    method: str


def mcnemar_p(first: int, second: int) -> float:
    """Return the two-sided p-value of the exact McNemar test for ``first`` and ``second`` pairs in
    which only one side, or only the other, succeeded. 1 if no pair differs.

    The binomial test of ``first`` out of the pairs that differ at 1/2 (McNemar 1947, Psychometrika
    12).
    """
    n = first + second
    tail = sum(math.comb(n, k) for k in range(min(first, second) + 1))
    return float(min(Fraction(1), Fraction(2 * tail, 2**n)))


def paired_success_test(pairs: Sequence[tuple[Sequence[bool], Sequence[bool]]]) -> SignificanceTest:
    """Return the test of a difference in success. ``pairs`` say, for each task that both sides have
    played, which of the first and of the second side's episodes were solved.

    The exact McNemar test if every task has one episode on each side, otherwise the sign-flip test
    of the differences in the share that is solved.
    """
    shares = [(Fraction(sum(a), len(a)), Fraction(sum(b), len(b))) for a, b in pairs]
    differences = [second - first for first, second in shares]
    if all(len(a) == len(b) == 1 for a, b in pairs):
        gained, lost = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
        return SignificanceTest(mcnemar_p(lost, gained), "exact McNemar test")
    return sign_flip_test(differences)


def sign_flip_test(
    differences: Sequence[Fraction | float], *, samples: int = SIGN_FLIP_SAMPLES, seed: int = 0
) -> SignificanceTest:
    """Return the two-sided p-value of the sum of differences if each sign is equally likely: the
    paired permutation test (Fisher 1935, The Design of Experiments, section 21).

    The test is exact, over all 2ⁿ signs, if the differences are fractions with a common denominator
    of reasonable size. Otherwise it is sampled with a fixed seed, and the observed sum counts as
    one of the samples (Phipson & Smyth 2010). 1 if nothing differs.
    """
    nonzero = [d for d in differences if d]
    if not nonzero:
        return SignificanceTest(1.0, "nothing differs")
    fractions = [d for d in nonzero if isinstance(d, Fraction)]
    if len(fractions) == len(nonzero):
        common = math.lcm(*(d.denominator for d in fractions))
        steps = [int(d * common) for d in fractions]
        if sum(map(abs, steps)) * (len(steps) // 8 + 1) <= MAX_DISTRIBUTION_BYTES:
            return SignificanceTest(_exact_sign_flip_p(steps), "exact sign-flip test")
    values = [float(d) for d in nonzero]
    sampled = _sampled_sign_flip_p(values, samples, seed)
    return SignificanceTest(sampled, f"sign-flip test, {samples} samples")


def holm_adjusted(values: Sequence[float]) -> list[float]:
    """Return adjusted p-values of several tests made together (Holm 1979, Scand. J. Statist. 6)."""
    order = sorted(range(len(values)), key=values.__getitem__)
    out, least = [1.0] * len(values), 0.0
    for rank, at in enumerate(order):
        least = max(least, min(1.0, (len(values) - rank) * values[at]))
        out[at] = least
    return out


def detectable_difference(
    error: float, tasks: int, *, epochs: int = 1, level: float = 0.95, power: float = 0.8
) -> float | None:
    """Return the smallest true difference that a paired comparison detects with this power: (z(1 -
    α/2) + z(power)) · SE, SE being the standard error of the mean difference per task.

    (Cohen 1988, section 2.3; Miller 2024, arXiv 2411.00640, section 5.) It is at least what gives
    an exact test, with this power, the fewest tasks in favour of one side whose p-value is below α.
    A task differs by at least 1/``epochs``. None if there are too few tasks for any difference.
    """
    low, high = 0.0, 1.0
    if tasks < _min_differing_pairs(level):
        return None
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        enough = _enough_differ(tasks, middle, level) >= power
        low, high = (low, middle) if enough else (middle, high)
    difference = max(_quantiles(level, power) * error, high / epochs)
    return difference if difference <= 1 else None


def tasks_needed(
    flips: float, difference: float, *, level: float = 0.95, power: float = 0.8
) -> int | None:
    """Return how many tasks, each played once, a paired comparison needs to detect a difference
    with this power: (z(1 - α/2) + z(power))² · (f - d²)/d², rounded up; ``flips`` f is the share of
    tasks that flip.

    At least what ``detectable_difference`` needs for its exact test. None for a difference that is
    larger than the share of tasks that flip, which there cannot be.
    """
    if not 0 < difference <= flips:
        return None
    variance = flips - difference**2
    tasks = math.ceil(variance * (_quantiles(level, power) / difference) ** 2)
    while _enough_differ(tasks, difference, level) < power:
        tasks += 1
    return tasks


_BISECTIONS = 50


def _quantiles(level: float, power: float) -> float:
    return normal_quantile((1 + level) / 2) + normal_quantile(power)


def _enough_differ(tasks: int, chance: float, level: float) -> float:
    """Return the probability that so many tasks differ as the exact test needs to reach 1 - level,
    if each differs with a chance, all in one direction."""
    return 1 - math.fsum(
        math.comb(tasks, k) * chance**k * (1 - chance) ** (tasks - k)
        for k in range(_min_differing_pairs(level))
    )


def _min_differing_pairs(level: float) -> int:
    """Return how many pairs must differ, all in one direction, for the exact test to reach 1 -
    level."""
    return math.ceil(1 - math.log2(1 - level))


def _exact_sign_flip_p(steps: Sequence[int]) -> float:
    """Return the share of all sign patterns whose sum is as far from 0 as that of ``steps``.

    Computes a polynomial whose powers are sums (shifted to be 0 or more) and whose coefficients
    count patterns, packed into one integer with enough bits per coefficient to avoid overflow.
    """
    width = len(steps) // 8 + 1
    counts = 1
    for step in steps:
        counts += counts << (8 * width * abs(step))
    largest, observed = sum(map(abs, steps)), abs(sum(steps))
    packed = counts.to_bytes((largest + 1) * width, "little")
    tail = sum(
        int.from_bytes(packed[at * width : (at + 1) * width], "little")
        for at in range((largest - observed) // 2 + 1)
    )
    return float(Fraction(min(2 * tail, 1 << len(steps)), 1 << len(steps)))


def _sampled_sign_flip_p(values: Sequence[float], shuffles: int, seed: int) -> float:
    generator = random.Random(seed)
    observed, total = abs(math.fsum(values)) * _TIE_TOLERANCE, sum(map(abs, values))
    sizes = [abs(v) for v in values]
    extreme = 1
    for _ in range(shuffles):
        up = sum(compress(sizes, generator.randbytes(len(sizes)).translate(_LOW_BITS)))
        extreme += abs(2 * up - total) >= observed
    return extreme / (shuffles + 1)
