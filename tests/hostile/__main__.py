"""Runs hostile cases without a test runner, as the current user, and prints a table.

    python -m hostile [--sample N] [--seed N] [--backend NAME] [--serve] [WORD ...]
    python -m hostile --table [--backend NAME] [--sample N] [--seed N] [WORD ...]
    python -m hostile fuzz [--seconds N] [--seed N] [--out FILE] [KIND ...]

Words select the cases whose class and name contain one of them. The exit status is 1 if a case
fails that is not known to. With ``--serve`` the positions of cases are read from the standard
input, and each is answered with the user id and ``ok`` or the failed expectation. With ``--table``
the cases run on one tier, and a row of the table of benchmarks/results/costs.md is printed, with
the reason for each case that is not contained. ``tests`` and ``src`` must be on PYTHONPATH. For
``fuzz`` see ``fuzzing/campaign.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter

from hostile.cases import Case, all_cases
from hostile.planted import Planted
from hostile.trial import BACKENDS, try_case
from intercode_sandbox import tier_of
from support import backend


def sampled(cases: list[Case], count: int, seed: int) -> list[Case]:
    """Return about ``count`` cases without known bugs, a share of every class."""
    sound = [case for case in cases if not case.fault]
    random.Random(seed).shuffle(sound)
    sound.sort(key=lambda case: case.kind)
    return sound[:: max(1, len(sound) // count)]


def attempt(case: Case, backend: str, planted: Planted) -> str:
    """Return ``ok``, or the failed expectation."""
    if case.harmful:
        return case.fault
    try:
        try_case(case, backend, planted)
    except Exception as e:
        cause = f" (after {type(e.__context__).__name__}: {e.__context__})" if e.__context__ else ""
        return f"{type(e).__name__}: {e}{cause}"
    return "ok"


def serve(backend: str) -> int:
    """Run the requested cases until the input ends. Returns the exit status."""
    cases, planted = all_cases(), Planted(BACKENDS[backend])
    for line in sys.stdin:
        print(json.dumps([os.geteuid(), attempt(cases[int(line)], backend, planted)]), flush=True)
    said = "ok"
    try:
        planted.close()
    except AssertionError as e:
        said = str(e)
    print(json.dumps([os.geteuid(), said]), flush=True)
    return 0


def table(cases: list[Case], tier: str) -> int:
    """Run the cases on a tier and print its row of the table. Returns the exit status."""
    start, planted = time.monotonic(), Planted(BACKENDS[tier])
    contained = 0
    for case in cases:
        said = attempt(case, tier, planted)
        contained += said == "ok"
        if said != "ok":
            print(f"not contained: {case.kind}: {case.name}: {case.fault or said[:500]}")
    planted.close()
    print("| tier | cases | contained | not contained | seconds |\n|---|---|---|---|---|")
    numbers = f"{len(cases)} | {contained} | {len(cases) - contained}"
    print(f"| `{tier_of(tier)}` | {numbers} | {time.monotonic() - start:.0f} |", flush=True)
    return 1 if contained < len(cases) else 0


def main() -> int:
    """Parse the command line, run the cases, and print. Returns the exit status."""
    if sys.argv[1:2] == ["fuzz"]:
        from hostile.fuzzing import campaign  # needs hypothesis

        return campaign.main(sys.argv[2:])
    parser = argparse.ArgumentParser(prog="hostile", description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--backend", default="namespace", choices=sorted(BACKENDS))
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    backend.choose(options.backend.partition("/")[0])
    if options.serve:
        return serve(options.backend)
    cases = all_cases()
    if options.sample:
        cases = sampled(cases, options.sample, options.seed)
    if options.words:
        cases = [c for c in cases if any(w in f"{c.kind}: {c.name}" for w in options.words)]
    if options.table:
        tier = "namespace/1" if options.backend == "namespace" else options.backend
        return table(cases, tier)
    start = time.monotonic()
    planted = Planted(BACKENDS[options.backend])
    counts: dict[str, Counter[str]] = {case.kind: Counter() for case in cases}
    for case in cases:
        said = attempt(case, options.backend, planted)
        what = "ok" if said == "ok" else "known faults" if case.fault else "failed"
        counts[case.kind][what] += 1
        if said != "ok":
            print(f"{what}: {case.kind}: {case.name}: {case.fault or said[:500]}")
    planted.close()
    print(f"{'class':<12}{'cases':>6}{'ok':>6}{'known faults':>14}{'failed':>8}")
    for kind, count in [*counts.items(), ("all", sum(counts.values(), Counter[str]()))]:
        numbers = f"{count['ok']:>6}{count['known faults']:>14}{count['failed']:>8}"
        print(f"{kind:<12}{count.total():>6}{numbers}")
    print(f"user id {os.geteuid()}, {options.backend}, {time.monotonic() - start:.0f} s")
    return 1 if any(count["failed"] for count in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
