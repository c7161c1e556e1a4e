"""Replays the authors' SQL logs on both engines and writes results/sql-replay.md.

    INTERCODE_DATA=... python benchmarks/replay_sql.py LOGS [--write] [--engine embedded mysql]

The page has, for each engine and log, the shares of equal observations and rewards, every
difference by its cause, and the steps that are left out because they depend on what another episode
left behind. Without ``--write`` it is only printed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from intercode.evaluation.replay import log_replay
from intercode.evaluation.replay.log_replay import ReplayReport, StepComparison
from intercode.paper.replay.sql import LEAKED_TABLES, LENIENT_CAUSE

PAGE = Path(__file__).resolve().parent / "results" / "sql-replay.md"

ABOUT = """\
# Replay of the published SQL logs

This page says how often a replay of the published SQL logs gives the recorded observations and
rewards. `python benchmarks/replay_sql.py LOGS --write` generates it. To replay a single log:
`intercode replay --profile original --set engine=mysql --out differences.jsonl LOG.json`.

## What counts as equal

- **Rewards** are equal to within 0.01. The authors scored some logs by IoU alone, others with
  Kendall's τ, and the Try Again log with both. Every step is scored in both ways, and an episode
  takes the scorer that explains more of its rewards. If both explain equally many, it is τ
  for Plan & Solve and IoU for the rest. A gold that fails counts as an empty result. 19 golds fail
  by the rules of MySQL 8.
- **Observations** are equal as text, apart from differences between servers. Errors of one kind are
  equal: their wording differs, and MariaDB reports a missing table where MySQL reports a missing
  database. `int(11)` equals `int`. What one release of the connector returns as bytes equals text.
  The default `CURRENT_TIMESTAMP` has two spellings. Rows in another order are a difference.
- **Recorded forms**: the ReAct log holds 25 rows of a result or 350 characters of an error, and its
  action is the content of `execute[...]`, wherever that occurs. The human log holds rows without
  brackets around them.

## What is left out

On the authors' server, later episodes saw what earlier ones had changed. Some steps show or use
these changes:

- tables that no dump creates: {tables};
- MySQL's rule for grouped queries, which `SET sql_mode = ''` in the ReAct log (tasks 153 and 301)
  turned off for the tasks after it, up to the end of that run.

A step is dependent if it names such a table and the recorded observation does not report it as
missing, if its recorded catalog shows the table, or if it is a `submit` after such a step. A replay
isolates episodes, so no episode sees the changes of another one. The steps that are not dependent
are the [stable](../../docs/glossary.md#evaluations) ones.
"""


def _share(report: ReplayReport) -> str:
    every, stable = report.shares(), report.shares(stable_only=True)

    def percent(value: float | int | None) -> str:
        return "-" if value is None else f"{100 * value:.2f}"

    cells = [report.file]
    for found, mark in ((every, ""), (stable, "**")):
        shares = (percent(found[key]) for key in ("observations", "rewards"))
        cells += [str(found["steps"]), *(f"{mark}{share}{mark}" for share in shares)]
    return f"| {' | '.join(cells)} |"


def _table(engine: str, reports: list[ReplayReport], seconds: float) -> list[str]:
    whole = ReplayReport("all", steps=[s for r in reports for s in r.steps])
    left = [s for s in whole.mismatches if s.stable]
    lines = [
        f"## Engine `{engine}`",
        "",
        f"{len(whole.steps)} steps in {seconds:.0f} s; % equal.",
        "",
        "| log | steps | observations | rewards | stable steps | observations | rewards |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *(_share(r) for r in (*reports, whole)),
        "",
        "| cause of a difference | steps | observation | reward |",
        "|---|---:|---:|---:|",
    ]
    for cause, count in Counter(s.cause for s in left).most_common():
        mine = [s for s in left if s.cause == cause]
        seen = sum(not s.same_observation for s in mine)
        lines.append(f"| {cause} | {count} | {seen} | {sum(not s.same_reward for s in mine)} |")
    return [*lines, ""]


def _dependent(reports: list[ReplayReport]) -> list[str]:
    """Return the lines that list the left-out steps by log: each task with its steps counted from
    0."""
    lines = ["## The dependent steps", "", "Task and, in brackets, its steps counted from 0.", ""]
    for report in reports:
        for cause in sorted({s.cause for s in report.steps if s.stable is False}):
            found: dict[str, list[StepComparison]] = {}
            for step in report.steps:
                if step.stable is False and step.cause == cause:
                    found.setdefault(step.task.rpartition("/")[2], []).append(step)
            listed = (f"{t}({' '.join(str(s.turn) for s in f)})" for t, f in found.items())
            what = "setting" if cause == LENIENT_CAUSE else "table"
            lines += [f"**{report.file}**, a {what}: {' '.join(listed)}", ""]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("logs", type=Path, nargs="+")
    parser.add_argument("--engine", nargs="+", default=["embedded", "mysql"])
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    args = parser.parse_args()
    tables = ", ".join(f"`{t}` in {d}" for d, names in LEAKED_TABLES.items() for t in sorted(names))
    lines = [*ABOUT.format(tables=tables).splitlines(), ""]
    reports: list[ReplayReport] = []
    for engine in args.engine:
        began = time.monotonic()
        options = log_replay.ReplayOptions(profile="original", env_options={"engine": engine})
        reports = log_replay.replay_logs(args.logs, options)
        lines += _table(engine, reports, time.monotonic() - began)
    text = "\n".join([*lines, *_dependent(reports)]).rstrip() + "\n"
    print(text)
    if args.write:
        PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
