"""``intercode compare``: compares runs with each other, task by task."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence

from intercode.core.errors import UsageError

EXAMPLE = """\
examples:
  intercode compare runs/baseline runs/mine
      differences with intervals, an exact test, the tasks whose outcome changed, and last in one
      sentence which run is better, or that this cannot be told
  intercode compare runs/experiment
      the agents of an experiment, each over all its datasets
  intercode compare runs/baseline runs/mine --task nl2bash/fs_1/4
      the two transcripts of one task side by side
  intercode compare runs/one-profile runs/another --allow-mismatch profile

The first run is compared with each other run, by the tasks that both have played. In place of a run
may stand a directory: its runs count as one, if they are of one agent and model on different
datasets. Episodes that
ended in an error of the sandbox or the model count as not solved. Runs that were made under
different conditions are refused, unless --allow-mismatch names the conditions that differ:
subset, hash, profile, scoring, reward, image, arch, tier, network, limits, policy, determinism."""


def _epoch_number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


ARGUMENTS = """\
runs RUN ...  two or more runs or logs; or one directory, whose agents are compared
--allow-mismatch NAME,...  compare although these conditions differ; each is named in the result
--task ID     transcripts of this task, side by side
--epoch N     with --task: which sample of it, from 0
--all         whole lists and whole observations
--json        for programs"""
DEFAULTS = {"allow_mismatch": ""}
SETTINGS = {"epoch": {"type": _epoch_number}}


def handle(args: argparse.Namespace) -> int:
    """Print the comparison or the transcripts."""
    from intercode.core.trajectories import README_FILE
    from intercode.results.compare.comparison import compare_all, open_sides
    from intercode.results.compare.comparison_tables import (
        comparison_tables,
        comparisons_json,
        verdict,
    )
    from intercode.results.compare.transcripts import side_by_side
    from intercode.results.rendering import render
    from intercode_sandbox.valid_text import replace_surrogates

    if args.epoch is not None and args.task is None:
        raise UsageError("--epoch needs --task: name the task as well")
    if args.json and args.task is not None:
        raise UsageError("--task prints transcripts for people: leave --json out")
    sides = open_sides([p for p in args.runs if p.name != README_FILE])  # runs/* contains one
    comparisons = compare_all(sides, _split_names(args.allow_mismatch))
    if args.task is not None:
        width = shutil.get_terminal_size((160, 24)).columns
        print(side_by_side(sides, args.task, epoch=args.epoch, width=width, full=args.all), end="")
    elif args.json:
        document = json.dumps(comparisons_json(comparisons), indent=2, ensure_ascii=False)
        print(replace_surrogates(document))
    else:
        print(render(comparison_tables(comparisons, full=args.all)))
        for comparison in comparisons:
            print(verdict(comparison))
    return 0


def _split_names(text: str) -> Sequence[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
