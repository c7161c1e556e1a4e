"""``intercode validity``: compares what a grader says with labels of people."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from intercode.cli.output import episode_progress
from intercode.cli.parser import ENVIRONMENT_OPTION, SANDBOX_OPTIONS
from intercode.core.config import parse_key_values
from intercode_sandbox.command.parser import given_options

if TYPE_CHECKING:
    from intercode_lab.labels.records import Label

EXAMPLE = """\
examples:
  intercode validity labels.jsonl
  intercode validity bash.jsonl sql.jsonl --out graded.jsonl
  intercode validity labels.jsonl --reward mypackage.rewards:strict
  intercode validity mine.jsonl --second theirs.jsonl
      how far two people agree who labelled the same trajectories; nothing is executed
  intercode validity labels.jsonl --variants 3
      also plays what is correct and graded 1 in 3 variants of each task

A label says whether the actions of a trajectory do what the query asks: correct, incorrect or
ambiguous. A line of a file has task, query, actions and label. The actions are executed again in a
sandbox and scored. Tasks are played as their verified subset has them, if they are in it. Exit
status: 1 if a label could not be graded."""

ARGUMENTS = f"""\
labels FILE ...         labels, one JSON object a line
--second FILE           labels of the same trajectories by another person
--dataset DATASET       the dataset of all labels: name[:subset] or file (default: by each task)
--variants N            play labels that are correct and graded 1 in N variants of their tasks
--out FILE              write every graded label to this file, one JSON object a line
--format STYLE          text (the default), markdown or csv
--parallel PARALLEL     labels at the same time (default 2)
{ENVIRONMENT_OPTION}
{SANDBOX_OPTIONS}"""
DEFAULTS = {"parallel": 2, "format": "text"}
UNGRADED = 1
"""Exit status if a label could not be graded."""
SETTINGS = {"variants": {"type": int}}
_ENVIRONMENT_SETTINGS = ("profile", "image", "network", "backend", "timeout", "reward")


def handle(args: argparse.Namespace) -> int:
    """Grade the labels, or compare two files of them, and print the tables."""
    from intercode.core.errors import UsageError
    from intercode_lab.labels.records import read_labels

    labels = read_labels(args.labels)
    given = given_options(args)
    if args.second is not None:
        unused = [n for n in (*_ENVIRONMENT_SETTINGS, "dataset", "variants", "out") if n in given]
        if unused:
            raise UsageError(f"--{unused[0]} has no meaning with --second, which executes nothing")
        return _compare(labels, read_labels([args.second]), args.format)
    settings = {name: given[name] for name in _ENVIRONMENT_SETTINGS if name in given}
    return _grade(args, labels, settings | dict(parse_key_values(args.env_option)))


def _grade(args: argparse.Namespace, labels: list[Label], settings: dict[str, Any]) -> int:
    from intercode.results.rendering import render
    from intercode_lab.validity import tables
    from intercode_lab.validity.grading import GradingOptions, grade_labels
    from intercode_lab.validity.order import order_rates, order_table
    from intercode_lab.validity.rates import group_rates

    options = GradingOptions(args.dataset, args.parallel, settings)
    graded = grade_labels(labels, options, episode_progress())
    weighted = any(label.weight != 1 for label in labels)
    shown = tables.rate_tables(group_rates(graded), weighted)
    more = order_table(order_rates(graded)), tables.disagreement_table(graded)
    print(render([*shown, *(table for table in more if table.rows)], args.format))
    print(*tables.summary_lines(graded), sep="\n", file=sys.stderr)
    if args.variants is not None:
        from intercode_lab.variants.labels import label_tables, measure_labels

        held = measure_labels(graded, settings, args.variants, args.parallel, episode_progress())
        print(render(label_tables(held), args.format))
    if args.out is not None:
        rows = tables.grade_rows(graded)
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        args.out.write_text(text, encoding="utf-8")
        print(f"wrote {args.out}", file=sys.stderr)
    return UNGRADED if any(g.fault for g in graded) else 0


def _compare(first: list[Label], second: list[Label], style: str) -> int:
    from intercode.results.rendering import render
    from intercode_lab.labels.agreement import pair_labels
    from intercode_lab.validity.tables import agreement_tables

    pairs = pair_labels(first, second)
    print(render(agreement_tables(pairs), style))
    left = len(first) + len(second) - 2 * len(pairs)
    if left:
        print(f"{left} labels are in one of the files only", file=sys.stderr)
    return 0
