"""Processor time and seconds of the proofs of drawn tasks (``intercode check families:… --draw``).

    python benchmarks/bench_proofs.py families:bash families:sql --draw 25

Each specification is proven in a process of its own, into an empty file. To compare with a commit
BEFORE, give a checkout of it with ``--other``: the two then take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import Processor, search_path

_HERE = Path(__file__).resolve().parents[1]


def measure(source: Path, spec: str, draw: int, parallel: int) -> dict[str, float]:
    """Prove tasks with the packages of the checkout ``source``. Return the number of tasks and of
    faults, and per proof the milliseconds of processor time and the mean that the proofs say."""
    command = [sys.executable, __file__, spec, "--draw", str(draw), "--parallel", str(parallel)]
    environ = {**os.environ, "PYTHONPATH": search_path(source)}
    done = subprocess.run(
        [*command, "--measure"], env=environ, stdout=subprocess.PIPE, text=True, check=True
    )
    numbers: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return numbers


def prove_here(spec: str, draw: int, parallel: int) -> dict[str, float]:
    """Prove tasks with the package that Python imports; see ``measure``."""
    from intercode_lab.proofs.families import prove

    processor = Processor()
    with tempfile.TemporaryDirectory() as directory:
        used = processor.used()
        out = Path(directory) / "proofs.jsonl"
        report = prove(spec, draw, out, settings={}, parallel=parallel)
        spent = processor.used() - used
    processor.close()
    count = len(report.proofs)
    return {
        "tasks": count,
        "faults": len(report.all_faults),
        "processor": spent / count * 1000,
        "proof": statistics.fmean(p.seconds for p in report.proofs) * 1000,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("specs", nargs="+")
    parser.add_argument("--draw", type=int, default=25)
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--other", type=Path, help="a checkout of another commit")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(prove_here(args.specs[0], args.draw, args.parallel)))
        return
    sources = {"this": _HERE}
    if args.other is not None:
        sources = {"other": args.other, **sources}
    for spec in args.specs:
        for name, source in sources.items():
            found = measure(source, spec, args.draw, args.parallel)
            print(
                f"{spec} {name}: {found['tasks']} tasks, {found['faults']} faults, "
                f"{found['processor']:.0f} ms of processor time, {found['proof']:.0f} ms per proof",
                flush=True,
            )


if __name__ == "__main__":
    main()
