"""What `make demo` does: the starter tasks, played by the gold and noop agents and, if an endpoint
is set, by a model.

    OPENAI_BASE_URL=http://localhost:8000/v1 INTERCODE_MODEL=my-model make demo

Stopped half-way, it goes on where it was. The exit status tells whether gold solves every task and
doing nothing solves none.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from intercode.core import trajectories
from intercode.core.config import EvalConfig
from intercode.core.errors import InterCodeError
from intercode.core.types import Trajectory
from intercode.evaluation.evaluate.plan import make_plan, unused_directory
from intercode.evaluation.evaluate.run import run_plan
from intercode.results import report

RUNS = Path("runs")


def play(agent: str, model: str | None = None) -> tuple[Path, list[Trajectory], int]:
    """One agent's run: its directory, the finished episodes and how many tasks there are."""
    print(f"{agent}{f' with {model}' if model else ''}:", file=sys.stderr)
    plan = make_plan(EvalConfig("starter", agent, model=model))
    plan = replace(plan, out=unused_directory(RUNS, f"demo-{agent}", plan.metadata))
    run_plan(plan)
    return plan.out, plan.finished_episodes(), len(plan.task_indices)


def main() -> int:
    """Play, print the table, and name the files."""
    gold_out, gold, count = play("gold")
    noop_out, noop, _ = play("noop")
    outs = [gold_out, noop_out]
    if model := os.environ.get("INTERCODE_MODEL"):
        outs.append(play("try-again", model)[0])
    else:
        print("(no model: set INTERCODE_MODEL and OPENAI_BASE_URL to see one)", file=sys.stderr)
    print("\n" + report.render(report.build(outs)))
    for out in outs:
        print(out / trajectories.TRAJECTORIES_FILE)
    faults = [f"gold failed {t.task}" for t in gold if not t.success]
    faults += [f"noop solved {t.task}" for t in noop if t.success]
    if len(gold) < count or len(noop) < count:
        faults.append("some episodes ended in an error")
    print("\n" + ("\n".join(faults) or f"All {count} golds score 1 and doing nothing never does."))
    return int(bool(faults))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InterCodeError as e:
        sys.exit(f"demo: {e} (`intercode doctor` says what this machine lacks)")
    except KeyboardInterrupt:
        sys.exit("\ndemo: stopped; run it again to go on")
