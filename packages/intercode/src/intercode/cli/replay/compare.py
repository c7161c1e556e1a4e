"""``intercode replay RUN``: executes recorded episodes again and compares every observation and
reward."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from intercode.cli.output import progress_of
from intercode.cli.replay import branch
from intercode.results.short_text import join_first

if TYPE_CHECKING:
    from intercode.evaluation.replay.log_replay import ReplayReport, StepComparison
    from intercode.evaluation.replay.recorded_environments import ReplayOptions
    from intercode.results.tables import Table

_LISTED = 5  # steps that differ by one cause, by name
NOT_EQUAL = 1
"""Exit status if an episode that InterCode recorded differs."""


def handle(args: argparse.Namespace, options: ReplayOptions) -> int:
    """Replay the episodes, print the results, and write the differences."""
    from intercode.evaluation.replay import log_replay
    from intercode.results import report

    reports = log_replay.replay_logs(args.files, options, progress_of("episodes"))
    if args.out is not None:
        _write(args.out, reports)
    if args.json:
        print(json.dumps([_as_json(r) for r in reports], indent=1))
    else:
        tables = [_table(reports), _causes(reports)]
        print(report.render([table for table in tables if table.rows], "text"))
        _print_native_results(reports)
    return NOT_EQUAL if any(r.native_mismatches for r in reports) else 0


def _print_native_results(reports: Sequence[ReplayReport]) -> None:
    """Print the results for the episodes that InterCode recorded, last a sentence for each file."""
    native = [report for report in reports if report.native]
    for report in native:
        if report.native_mismatches and not report.deterministic:
            print(f"NOTE     {report.file} was {branch.NOT_DETERMINISTIC}")
        _print_differences(report.native_mismatches)
    for report in native:
        hashed = sum(bool(step.recorded_hashes) for step in report.steps)
        also = f", {hashed} with hashes" if hashed else ""
        compared = len(report.steps) + report.later_steps
        turns = f"{compared} steps"
        if report.turns > compared:
            turns = f"{report.turns} turns, {compared} of them replayed (the others had no code)"
        what = "observation, reward and hash" if hashed else "observation and reward"
        counts = f"{report.episodes} episodes, {turns}{also}"
        if not report.native_mismatches:
            print(f"EQUAL    {report.file}: {counts}: every {what} is equal")
            continue
        differing, steps = len(report.native_mismatches), len(report.steps)
        equal = f"; {branch.REWARDS_EQUAL}" if report.native_rewards_equal else ""
        print(
            f"DIFFERS  {report.file}: {differing} of {report.episodes} episodes differ; "
            f"{steps} of {steps + report.later_steps} steps were compared{equal}"
        )


def _print_differences(checks: Sequence[StepComparison]) -> None:
    """Print the first difference of each kind, and of the others where they are."""
    kinds: dict[tuple[str, ...], list[StepComparison]] = {}
    for check in checks:
        kinds.setdefault((check.cause, *check.differs_in), []).append(check)
    for first, *others in kinds.values():
        print(f"differs  {branch.describe_mismatch(first)}")
        print(branch.indent(branch.format_difference(first)))
        if others:
            names = join_first([f"{c.task}, step {c.turn + 1}" for c in others], _LISTED)
            print(branch.indent(f"in the same, by the same cause: {names} (--out FILE has all)"))


def _as_json(report: ReplayReport) -> dict[str, Any]:
    return {
        "file": report.file,
        "episodes": report.episodes,
        **report.shares(),
        "stable": report.shares(stable_only=True),
        "recorded_success": report.recorded_success,
        "replayed_success": report.replayed_success,
        "causes": dict(Counter(s.cause for s in report.mismatches)),
        "hashes": sum(bool(s.recorded_hashes) for s in report.steps),
        "notes": report.notes,
        "differs": [
            {
                "task": s.task,
                "episode": s.episode,
                "step": s.turn + 1,
                "in": s.differs_in,
                "cause": s.cause,
                "later_steps": s.later_steps,
                "same_later_rewards": s.same_later_rewards,
            }
            for s in report.native_mismatches
        ],
    }


def _write(out: Path, reports: Sequence[ReplayReport]) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", encoding="utf-8") as f:
        for report in reports:
            for step in report.mismatches:
                f.write(json.dumps({"file": report.file, **asdict(step)}) + "\n")
    print(f"wrote {out}", file=sys.stderr)


def _table(reports: Sequence[ReplayReport]) -> Table:
    from intercode.results.tables import Table

    rows = [_row(r.file, [r]) for r in reports]
    if len(reports) > 1:
        rows.append(_row("all", reports))
    shown = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    return Table(
        "replay",
        "Executed steps that equal their record (%; rewards to 0.01)",
        tuple(shown),
        tuple(tuple(row[name] for name in shown) for row in rows),
        tuple(note for r in reports for note in r.notes),
    )


def _row(name: str, reports: Sequence[ReplayReport]) -> dict[str, Any]:
    from intercode.evaluation.replay.log_replay import ReplayReport

    whole = ReplayReport(name, steps=[s for r in reports for s in r.steps])
    every, stable = whole.shares(), whole.shares(stable_only=True)
    return {
        "file": name,
        "episodes": sum(r.episodes for r in reports),
        "steps": every["steps"],
        "observations": _percent(every["observations"]),
        "rewards": _percent(every["rewards"]),
        "stable steps": stable["steps"] or None,
        "stable obs.": _percent(stable["observations"]),
        "stable rewards": _percent(stable["rewards"]),
        "solved, recorded": sum(r.recorded_success for r in reports),
        "solved, replayed": sum(r.replayed_success for r in reports),
    }


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share


def _causes(reports: Sequence[ReplayReport]) -> Table:
    from intercode.results.tables import Table

    steps = [s for r in reports for s in r.mismatches]
    counts = Counter(s.cause for s in steps)
    rows = [
        (
            cause,
            number,
            sum(s.cause == cause and not s.same_observation for s in steps),
            sum(s.cause == cause and not s.same_reward for s in steps),
        )
        for cause, number in counts.most_common()
    ]
    return Table(
        "causes",
        "Differing steps by cause",
        ("cause", "steps", "observation differs", "reward differs"),
        tuple(rows),
    )
