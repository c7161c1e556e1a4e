"""Runs what single.py and credit.py compare, one process for each run."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from settings import Setting, count
from stored_runs import RunError
from training import train

from intercode_lab.proofs.worker_processes import worker_processes


def run_all(arms: Mapping[str, tuple[str, Setting]], description: str | None) -> None:
    """Train each arm, a kind of credit and a setting, from several seeds, and print the
    success of each run on unseen tasks."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("runs/learn"), help="where runs are kept")
    parser.add_argument("--seeds", type=count, default=3, help="runs of each kind (default 3)")
    parser.add_argument("--episodes", type=count, default=1920, help="of each run (default 1920)")
    parser.add_argument("--parallel", type=count, default=2, help="runs at once (default 2)")
    args = parser.parse_args()
    try:
        _run(args, arms)
    except KeyboardInterrupt:
        raise SystemExit("interrupted: run it again to go on") from None


def _run(args: argparse.Namespace, arms: Mapping[str, tuple[str, Setting]]) -> None:
    chosen = [(arm, seed) for seed in range(args.seeds) for arm in arms]
    with worker_processes(args.parallel) as processes:
        jobs = [
            processes.submit(
                train,
                args.out / f"{arm.replace(' ', '-')}-{seed}",
                arms[arm][1],
                arms[arm][0],
                seed,
                args.episodes,
            )
            for arm, seed in chosen
        ]
        for (arm, seed), job in zip(chosen, jobs, strict=True):
            try:
                report = job.result()
            except RunError as e:
                raise SystemExit(f"{arm}, seed {seed}: {e}") from e
            shares = ", ".join(f"{name} {share:.2f}" for name, share in report.items())
            print(f"{arm}, seed {seed}: {shares}", flush=True)
