"""Plays the starter tasks with the gold and noop agents and, if an endpoint is set, with a model.

`make demo` runs this file:

    OPENAI_BASE_URL=http://localhost:8000/v1 INTERCODE_MODEL=my-model make demo

Run it again to resume it after an interruption. The exit status is 0 if gold solves every task and
noop solves none.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from intercode.core import EvalConfig, InterCodeError, Trajectory, trajectories
from intercode.evaluation import make_plan, run_plan, unused_directory
from intercode.results import report

RUNS = Path("runs")


def play(agent: str, model: str | None = None) -> tuple[Path, list[Trajectory], int]:
    """Run one agent. Returns the run's directory, the finished episodes and the number of tasks."""
    print(f"{agent}{f' with {model}' if model else ''}:", file=sys.stderr)
    plan = make_plan(EvalConfig("starter", agent, model=model))
    plan = replace(plan, out=unused_directory(RUNS, f"demo-{agent}", plan.metadata))
    run_plan(plan)
    episodes = trajectories.read_trajectories(plan.trajectories_file)
    return plan.out, [t for t in episodes if trajectories.has_result(t)], len(plan.task_indices)


def command() -> str:
    """Return how to run `intercode` from here: its name, if a shell finds it, or else a path."""
    script = Path(sys.executable).with_name("intercode")
    if shutil.which("intercode") == str(script):
        return "intercode"
    if not script.exists():
        return f"{shlex.quote(sys.executable)} -m intercode"
    here = Path.cwd()
    return shlex.quote(str(script.relative_to(here) if script.is_relative_to(here) else script))


def main() -> int:
    """Play, print the table, the names of the files and how to look at them."""
    gold_out, gold, count = play("gold")
    noop_out, noop, _ = play("noop")
    outs = [gold_out, noop_out]
    if model := os.environ.get("INTERCODE_MODEL"):
        outs.append(play("try-again", model)[0])
    else:
        print("(no model: set INTERCODE_MODEL and OPENAI_BASE_URL to use one)", file=sys.stderr)
    print("\n" + report.render(report.build(outs)))
    for out in outs:
        print(out / trajectories.TRAJECTORIES_FILE)
    faults = [f"gold failed {t.task}" for t in gold if not t.success]
    faults += [f"noop solved {t.task}" for t in noop if t.success]
    if len(gold) < count or len(noop) < count:
        faults.append("some episodes ended in an error")
    print("\n" + ("\n".join(faults) or f"All {count} golds score 1 and doing nothing never does."))
    program, runs = command(), " ".join(str(out) for out in outs)
    print("\nTo look at it:")
    for words, what in (
        (f"view {runs} --open", "every episode turn by turn, in a browser"),
        (f"show {gold_out} starter/bash/count-csv", "one episode"),
        (f"report {runs}", "the tables above"),
    ):
        print(f"  {program} {words}  # {what}")
    return int(bool(faults))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InterCodeError as e:
        sys.exit(f"demo: {e} (`intercode doctor` prints what this machine lacks)")
    except KeyboardInterrupt:
        sys.exit("\ndemo: stopped; run it again to resume")
