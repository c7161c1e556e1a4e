"""Attacks parts of this package with random cases for as long as asked, and prints findings.

    python -m hostile fuzz [--seconds 60] [--seed 1] [--out FILE] [KIND ...]

KIND is actions, statements, grammar, archives, rows, harbor or messages; by default all, each for
the same time. Every finding is printed with its smallest case and the seed of its round, which
finds it again. With ``--out`` each run is recorded in FILE, the next one without ``--seed``
continues with other seeds, and the totals of all runs are printed. The exit status is 1 if there is
a finding. ``tests`` and ``src`` must be on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hostile import fuzz
from hostile.fuzzing import search
from hostile.fuzzing.archives import Archives
from hostile.fuzzing.messages import Messages
from hostile.fuzzing.rows import HarborTasks, Rows
from hostile.fuzzing.search import Finding
from hostile.fuzzing.sql_grammar import SqlGrammar
from hostile.fuzzing.statements import Statements

TARGETS: dict[str, Callable[[], search.Target]] = {
    "statements": Statements,
    "grammar": SqlGrammar,
    "archives": Archives,
    "rows": Rows,
    "harbor": HarborTasks,
    "messages": Messages,
}
KINDS = ("actions", *TARGETS)
_ACTIONS = 100  # in a round
_SHRINK_SECONDS = 60.0


def run(kind: str, seed: int, seconds: float) -> tuple[int, list[Finding]]:
    """Attack one kind; return the number of cases and the findings."""
    if kind == "actions":
        return _search_actions(seed, seconds)
    target = TARGETS[kind]()
    try:
        return search.search(target, seed, seconds)
    finally:
        target.close()


def _search_actions(seed: int, seconds: float) -> tuple[int, list[Finding]]:
    end, count, seeds = time.monotonic() + seconds, 0, fuzz.corpus()
    found: list[Finding] = []
    while time.monotonic() < end:
        rng = random.Random(seed)
        makers = (fuzz.random_bytes, lambda rng: fuzz.mutated(rng, seeds))
        done = _faults([rng.choice(makers)(rng) for _ in range(_ACTIONS)], seed, end)
        count += done.counts["actions"]
        for fault, history in zip(done.faults, done.histories, strict=True):
            small = search.shrink(history, partial(_fails, seed), _SHRINK_SECONDS)
            found.append(Finding(fault, repr(small), seed))
        seed += 1
    return count, found


def _fails(seed: int, actions: Sequence[str]) -> bool:
    return bool(_faults(actions, seed).faults)


def _faults(actions: Sequence[str], seed: int, end: float = float("inf")) -> fuzz.Fuzz:
    """Run actions in new sandboxes, and return the run with its faults."""
    done = fuzz.Fuzz(seed)
    try:
        for action in actions:
            if time.monotonic() < end:
                done.run([action])
    finally:
        done.close()
    return done


def main(arguments: Sequence[str]) -> int:
    """Parse the command line, attack, and print. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="hostile fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--seconds", type=float, default=60.0, help="for all kinds together")
    parser.add_argument("--seed", type=int, help="of the first round (default: 1, or a new one)")
    parser.add_argument("--out", type=Path, help="record of runs that add up")
    options = parser.parse_args(arguments)
    kinds = options.kinds or list(KINDS)
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"no kind {', '.join(sorted(unknown))}; known are {', '.join(KINDS)}")
    recorded = _recorded(options.out)
    failed = False
    for kind in kinds:
        mine = [line for line in recorded if line["kind"] == kind]
        seed = options.seed
        if seed is None:
            seed = max([1, *(line["next_seed"] for line in mine)])
        start, used = time.monotonic(), _processor_seconds()
        count, findings = run(kind, seed, options.seconds / len(kinds))
        took, used = time.monotonic() - start, _processor_seconds() - used
        print(f"{kind:<11}{count:>8} cases{took:>7.0f} s{len(findings):>4} findings", flush=True)
        for finding in findings:
            failed = True
            print(f"FINDING {kind}, seed {finding.seed}: {finding.what}")
            print(f"  case: {finding.case[:5000]}", flush=True)
        if options.out is not None:
            line = {"kind": kind, "next_seed": seed + count + 1, "cases": count}
            line |= {"processor_seconds": round(used, 1), "findings": len(findings)}
            with options.out.open("a") as file:
                file.write(json.dumps(line) + "\n")
            mine.append(line)
            cases, spent, faults = (
                sum(line[name] for line in mine)
                for name in ("cases", "processor_seconds", "findings")
            )
            print(f"  in all runs: {cases} cases, {spent:.0f} s of processors, {faults} findings")
    return 1 if failed else 0


def _recorded(path: Path | None) -> list[dict[str, Any]]:
    """Return the lines of earlier runs."""
    if path is None or not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def _processor_seconds() -> float:
    """Return the processor time of this process and of the children that have ended."""
    return sum(os.times()[:4])
