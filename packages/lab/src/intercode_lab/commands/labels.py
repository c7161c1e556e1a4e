"""``intercode check --labels``: compares what a grader says with labels of people."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from intercode.cli.output import progress_of
from intercode.cli.shared_options import environment_settings
from intercode.core.errors import UsageError

if TYPE_CHECKING:
    from intercode_lab.labels.records import Label


def check_labels(args: argparse.Namespace) -> tuple[Any, bool]:
    """Grade labels, or compare two files of them, and print the tables; see ``OPTIONS``."""
    from intercode_lab.labels.records import read_labels

    labels = read_labels(args.labels)
    if args.second is None:
        return _grade(args, labels)
    if args.datasets:
        raise UsageError("a dataset has no meaning with --second, which executes nothing")
    return _compare(labels, read_labels([args.second]), args)


def _grade(args: argparse.Namespace, labels: list[Label]) -> tuple[Any, bool]:
    from intercode.results.rendering import render
    from intercode_lab.validity import tables
    from intercode_lab.validity.grading import GradingOptions, grade_labels
    from intercode_lab.validity.pair_order import order_rates, order_table
    from intercode_lab.validity.rates import group_rates

    if len(args.datasets) > 1:
        raise UsageError("labels are of the tasks of one dataset, or each names its own")
    settings = environment_settings(args)
    options = GradingOptions(next(iter(args.datasets), None), args.parallel, settings)
    graded = grade_labels(labels, options, progress_of("episodes"))
    weighted = any(label.weight != 1 for label in labels)
    shown = tables.rate_tables(group_rates(graded), weighted)
    more = [order_table(order_rates(graded)), tables.disagreement_table(graded)]
    if args.variants is not None:
        from intercode_lab.variants.labels import label_tables, measure_labels

        held = measure_labels(
            graded, settings, args.variants, args.parallel, progress_of("episodes")
        )
        more += label_tables(held)
    if not args.json:
        print(render([*shown, *(table for table in more if table.rows)]))
    print(*tables.summary_lines(graded), sep="\n", file=sys.stderr)
    rows = tables.grade_rows(graded)
    if args.out is not None:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        args.out.write_text(text, encoding="utf-8")
        print(f"wrote {args.out}", file=sys.stderr)
    return rows, not any(g.fault for g in graded)


def _compare(first: list[Label], second: list[Label], args: argparse.Namespace) -> tuple[Any, bool]:
    from intercode.core.types import to_jsonable
    from intercode.results.rendering import render
    from intercode_lab.labels.agreement import pair_labels
    from intercode_lab.validity.tables import agreement_tables

    pairs = pair_labels(first, second)
    if not args.json:
        print(render(agreement_tables(pairs)))
    left = len(first) + len(second) - 2 * len(pairs)
    if left:
        print(f"{left} labels are in one of the files only", file=sys.stderr)
    return to_jsonable(pairs), True
