"""``intercode replay RUN --score PROFILE``: scores recorded episodes anew, or in variants."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from intercode.cli.output import progress_of
from intercode.cli.plugged_options import OPTIONS
from intercode.core.errors import UsageError

if TYPE_CHECKING:
    from intercode.evaluation.replay.recorded_environments import ReplayOptions
    from intercode.evaluation.replay.regrade import RegradeResult
    from intercode.results.tables import Table

MAX_SHOWN_EPISODES = 20
"""How many episodes with another outcome are printed; the file has all."""
UNGRADED = 1
"""Exit status if an episode could not be graded."""


def handle(args: argparse.Namespace, run: Path, options: ReplayOptions) -> int:
    """Score the run and print what changed, or play its solved episodes in variants, or both."""
    from intercode.environments.base.profiles import require_profile
    from intercode.evaluation.replay.regrade import DIFFERENCES_FILE, regrade
    from intercode.results.rendering import render

    if args.score is None and args.reward is None:
        return _play_variants(args, run, options)
    if args.score is not None:
        require_profile(args.score)
    if args.out is None:
        raise UsageError("name the directory of the new run with --out")
    scoring = replace(options, profile=args.score)
    result = regrade(run, scoring, args.out, progress=progress_of("episodes"))
    print(render(_tables(result), "text"))
    print(
        f"wrote {result.out}; every differing step is in {result.out / DIFFERENCES_FILE}",
        file=sys.stderr,
    )
    if args.variants is not None:
        _play_variants(args, run, scoring)
    return UNGRADED if result.failed else 0


def _play_variants(args: argparse.Namespace, run: Path, options: ReplayOptions) -> int:
    """Play the solved episodes of the run in variants, and print which hold."""
    from intercode.results.rendering import render

    played = OPTIONS.load("run.variants")(run, options, args.variants, progress_of("episodes"))
    print(render(played.tables(), "text"))
    directory = args.out or (run if run.is_dir() else None)
    if directory is not None:
        print(f"wrote {played.write(directory)}", file=sys.stderr)
    return 0


def _tables(result: RegradeResult) -> list[Table]:
    from intercode.results.tables import Cell, Table

    episodes = len(result.after)
    changed = {(d.task, d.epoch) for d in result.differences}
    gained = sum(b.success for _, b in result.flips)
    row: tuple[Cell, ...] = (
        episodes,
        sum(t.success for t in result.before),
        sum(t.success for t in result.after),
        gained,
        len(result.flips) - gained,
        len(changed),
        len(result.differences),
        len(result.failed),
        result.skipped,
    )
    columns = (
        "episodes",
        "solved",
        "solved now",
        "won",
        "lost",
        "episodes changed",
        "steps changed",
        "errors",
        "left out",
    )
    notes = tuple(f"{t.task}: {t.error}" for t in result.failed[:MAX_SHOWN_EPISODES])
    out = [Table("regraded", "Graded again", columns, (row,), notes)]
    flips = [
        (a.task, a.epoch, a.score, b.score, b.turns) for a, b in result.flips[:MAX_SHOWN_EPISODES]
    ]
    if flips:
        more = len(result.flips) - len(flips)
        notes = (f"{more} more are in the file",) if more else ()
        heads = ("task", "epoch", "reward", "reward now", "turns")
        digits = (("reward", 3), ("reward now", 3))
        title = "Episodes whose success changed"
        out.append(Table("flips", title, heads, tuple(flips), notes, digits))
    return out
