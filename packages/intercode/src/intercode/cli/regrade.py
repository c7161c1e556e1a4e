"""``intercode regrade``: scores recorded episodes by another profile or reward, or in variants."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from intercode.cli.output import episode_progress
from intercode.cli.parser import ENVIRONMENT_OPTION, SANDBOX_OPTIONS
from intercode.cli.plugged_options import OPTIONS
from intercode.core.config import parse_key_values
from intercode_sandbox.command.parser import given_options

if TYPE_CHECKING:
    from pathlib import Path

    from intercode.evaluation.replay.recorded_environments import ReplayOptions
    from intercode.evaluation.replay.regrade import RegradeResult
    from intercode.results.tables import Table

MAX_SHOWN_EPISODES = 20
"""How many episodes with another outcome are printed; the file has all."""
UNGRADED = 1
"""Exit status if an episode could not be graded."""
EXAMPLE = """\
examples:
  intercode regrade runs/nl2bash-try-again --profile standard --out runs/nl2bash-standard
  intercode regrade LOG.json --profile standard --out regraded       a log of the authors
  intercode regrade RUN --reward mypackage.rewards:strict --out strict
  intercode regrade RUN --variants 3
      plays the solved episodes in 3 variants of each task and writes variants.json into the run:
      the share that holds there; success stays as it is

Every recorded action is executed again and scored; no model is called. The run.json of the new run
describes the source as regraded_from, and differences.jsonl lists every step that differs. The new
run has the new observations and the recorded messages of the agent. Exit status: 1 if an episode
could not be graded."""

ARGUMENTS = f"""\
run RUN               a run or log
--out DIR             directory of the new run; with --variants alone, where variants.json is
                      written (default: the run)
--variants N          play the solved episodes in N variants of each task as well
--dataset DATASET     if it is not recorded: name[:subset] or file
--parallel PARALLEL   episodes at the same time (default 2)
{ENVIRONMENT_OPTION}
{SANDBOX_OPTIONS}"""
DEFAULTS = {"parallel": 2}


def handle(args: argparse.Namespace) -> int:
    """Regrade the run and print what changed."""
    from intercode.core.errors import UsageError
    from intercode.evaluation.replay.recorded_environments import ReplayOptions
    from intercode.evaluation.replay.regrade import DIFFERENCES_FILE, regrade
    from intercode.results.rendering import render

    given = given_options(args)
    regrades = "profile" in given or "reward" in given
    if not regrades and args.variants is None:
        raise UsageError("name what to grade by: --profile PROFILE, or --reward PKG:FN")
    if regrades and args.out is None:
        raise UsageError("name the directory of the new run with --out")
    if "backend" in given:
        raise UsageError(
            "--backend cannot be used here: episodes run in sandboxes of the recorded back end"
        )
    options = ReplayOptions(
        profile=given.get("profile"),
        image=given.get("image"),
        network=given.get("network"),
        dataset=args.dataset,
        timeout=given.get("timeout"),
        parallel=args.parallel,
        env_options=parse_key_values(args.env_option),
    )
    if not regrades:
        return _play_variants(args, options, args.out)
    result = regrade(
        args.run, options, args.out, reward=given.get("reward"), progress=episode_progress()
    )
    print(render(_tables(result), "text"))
    print(
        f"wrote {result.out}; every differing step is in {result.out / DIFFERENCES_FILE}",
        file=sys.stderr,
    )
    if args.variants is not None:
        _play_variants(args, options, args.out)
    return UNGRADED if result.failed else 0


def _play_variants(args: argparse.Namespace, options: ReplayOptions, out: Path | None) -> int:
    """Play the solved episodes of the run in variants, and print which hold."""
    from intercode.results.rendering import render

    played = OPTIONS.load("run.variants")(args.run, options, args.variants, episode_progress())
    print(render(played.tables(), "text"))
    directory = out or (args.run if args.run.is_dir() else None)
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
        "failed",
        "left out",
    )
    notes = tuple(f"{t.task}: {t.error}" for t in result.failed[:MAX_SHOWN_EPISODES])
    out = [Table("regraded", "Graded again", columns, (row,), notes)]
    flips = [
        (a.task, a.epoch, a.reward, b.reward, b.turns) for a, b in result.flips[:MAX_SHOWN_EPISODES]
    ]
    if flips:
        more = len(result.flips) - len(flips)
        notes = (f"{more} more are in the file",) if more else ()
        heads = ("task", "epoch", "reward", "reward now", "turns")
        digits = (("reward", 3), ("reward now", 3))
        title = "Episodes whose success changed"
        out.append(Table("flips", title, heads, tuple(flips), notes, digits))
    return out
