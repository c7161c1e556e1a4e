"""Compares whole runs in Inspect, with its mock model, with runs of `intercode eval`.

    python benchmarks/inspect_runs.py [nl2bash] [ic-ctf] [--limit N] [--parallel N] [--logs DIR]

``inspect eval intercode/bash -T dataset=nl2bash`` and ``intercode/ctf -T dataset=ic-ctf``, in which
the mock model answers with each task's gold, or with the program that finds the flag and the flag
(Try Again, and ReAct for flags). The score of every task has to be that of ``intercode eval --agent
gold``, if the gold agent can play the task. The flags of tasks with a server, which have no such
program, are only submitted and have to score 1. If a gold leaves work in the background, its score
depends on timing in both; such differences are reported separately.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from inspect_ai import eval as inspect_eval

import intercode
from intercode import datasets
from intercode.core.config import EvalConfig
from intercode.core.types import Dataset
from intercode.evaluation.evaluate.run import evaluate
from support.knowing_model import knowing

Rewards = dict[str, float | None]
"""The reward of each task; None if it has no score because it ended in an error."""
ENVIRONMENTS = {"nl2bash": "bash", "ic-ctf": "ctf"}


def inspects(dataset: Dataset, limit: int | None, parallel: int, logs: Path) -> Rewards:
    """Return every task's reward from Inspect's log. Raises RuntimeError if its run failed."""
    [log] = inspect_eval(
        f"intercode/{dataset.environment}",
        model=knowing(dataset),
        log_dir=str(logs),
        task_args={"dataset": dataset.name, "max_turns": 4},
        limit=limit,
        max_samples=parallel,
        display="none",
    )
    if log.status != "success":
        why = log.error.message if log.error is not None else ""
        raise RuntimeError(f"Inspect's run ended as {log.status}: {why}")
    found: Rewards = {}
    for sample in log.samples or ():
        value = (sample.scores or {})["reward"].value if sample.error is None else {}
        assert isinstance(value, dict)
        found[str(sample.id)] = value.get("reward")  # type: ignore[assignment]
    return found


def ours(dataset: Dataset, limit: int | None, parallel: int) -> Rewards:
    """Return the reward of every task that the gold agent can play, from ``intercode eval``."""
    tasks = dataset.tasks[:limit]
    chosen = [t.id for t in tasks if t.data.get("solution") or dataset.environment != "ctf"]
    with tempfile.TemporaryDirectory() as folder:
        config = EvalConfig(
            dataset.name, "gold", tasks=tuple(chosen), parallel=parallel, out=Path(folder)
        )
        run = intercode.load_run(evaluate(config, quiet=True))
        return {row["task"]: row["score"] for row in run.episode_rows()}


def differing(theirs: Rewards, known: Rewards) -> list[str]:
    """The tasks whose scores differ. Those that only have a flag have to score 1, unless their
    files are missing: then they have no score."""
    found = []
    for task, value in theirs.items():
        expected = known.get(task, None if value is None else 1.0)
        same = value == expected or (None not in (value, expected) and abs(value - expected) < 1e-9)
        if not same:
            found.append(task)
    return found


def mean(rewards: Rewards) -> float:
    """The mean over the tasks that were scored."""
    scored = [value for value in rewards.values() if value is not None]
    return sum(scored) / len(scored)


def races(dataset: Dataset) -> set[str]:
    """Return the tasks whose gold leaves work in the background."""
    return {t.id for t in dataset.tasks if (t.gold or "").rstrip().endswith("&")}


def main() -> int:
    """Print a line for each dataset. Returns 1 if a score differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("dataset", nargs="*", help="nl2bash, ic-ctf (default: both)")
    parser.add_argument("--limit", type=int, help="only the first so many tasks of each")
    parser.add_argument("--parallel", type=int, default=4, help="samples at once (default 4)")
    parser.add_argument("--logs", type=Path, help="keep Inspect's logs in this directory")
    args = parser.parse_args()
    wrong = 0
    for name in args.dataset or ENVIRONMENTS:
        dataset = datasets.load(name, ENVIRONMENTS[name.partition(":")[0]])
        with tempfile.TemporaryDirectory() as folder:
            start = time.monotonic()
            theirs = inspects(dataset, args.limit, args.parallel, args.logs or Path(folder))
            took = time.monotonic() - start
        known = ours(dataset, args.limit, args.parallel)
        found = differing(theirs, known)
        differ = [task for task in found if task not in races(dataset)]
        wrong += bool(differ)
        solved = sum((value or 0.0) >= 1 - 1e-9 for value in theirs.values())
        errors = sum(value is None for value in theirs.values())
        print(
            f"{name}: {len(theirs)} tasks in Inspect, {solved} solved, {errors} without a score, "
            f"mean reward {mean(theirs):.4f}, {took:.0f} s; "
            f"compared with {len(known)} of `intercode eval --agent gold`, mean {mean(known):.4f}: "
            f"{len(differ)} differ, {len(found) - len(differ)} by a race"
            f"{': ' if found else ''}{' '.join(found)}"
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
