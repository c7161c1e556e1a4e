"""``intercode check``: tests that tasks are sound and that prompts do not contain them."""

from __future__ import annotations

import argparse
import json
from typing import Any

from intercode.cli.output import log_warnings, print_documents
from intercode.cli.plugged_options import OPTIONS
from intercode.cli.shared_options import SET_OPTION, environment_settings, refuse_options
from intercode.core.errors import DataError, UsageError

UNSOUND = 1
"""Exit status if there is a fault or a leak."""

EXAMPLE = """\
examples:
  intercode check starter
  intercode check nl2bash:verified --image recipe:nl2bash
      every gold runs, scores 1 and does the same twice; doing nothing scores less
  intercode check spider --set engine=mysql
      also reports weak SQL golds: ties that LIMIT cuts, tables that are empty
  intercode check my_tasks.jsonl --json > today.json
  intercode check my_tasks.jsonl --baseline today.json
      also compares every gold with its earlier run
  intercode check nl2bash:verified --variants 3
      also finds 3 sound variants of each task, in which a gold scores 1 and doing nothing does not
      and names the seeds that the next ones replace
  intercode check families:bash --draw 1000
      proves 1000 drawn tasks of each family; the same command continues after an interruption
  intercode check --contamination
      compares drawn tasks of all families with each other, between the splits, and with every
      other dataset; runs nothing
  intercode check nl2bash:verified --audit --image recipe:nl2bash
      what a person should read: golds that differ from each other, answers that are empty or 0,
      ambiguous queries; with --runs, also answers of agents that are equal and score differently
  intercode check --labels bash.jsonl --labels sql.jsonl --out graded.jsonl
      compares what the grader says with labels of people: correct, incorrect or ambiguous
  intercode check --labels mine.jsonl --second theirs.jsonl
      how far two people agree who labelled the same trajectories; nothing is executed

A label says whether the actions of a trajectory do what the query asks. A line of a file of labels
has task, query, actions and label. The actions are executed again in a sandbox and scored. Tasks
are played as their verified subset has them, if they are in it; a DATASET that is named has all
tasks.

Exit status: 0 all tasks are sound, 1 some are not, or could not be audited or graded, 2 wrong
usage."""

ARGUMENTS = f"""\
datasets [DATASET] ...  name[:subset], or a .json/.jsonl/.csv file
--contamination         compare drawn tasks of the families named (default: of all) with each
                        other and with every other dataset
--limit N               check the first N tasks only
--profile PROFILE       standard (the default), or another one of `intercode list profiles`
--image IMAGE           root file system: host, dir:PATH, tar:PATH or recipe:NAME (default: the
                        dataset's)
--backend BACKEND       back end of sandboxes (default auto: the strongest tier)
{SET_OPTION}
--variants N            find N sound variants of each task as well
--draw N                prove N tasks of each task family, or compare N (default 25)
                        with --contamination
--out FILE              where --draw writes its proofs and finds earlier ones (default: in the
                        cache), and --labels every graded label, one JSON object a line
--parallel N            tasks at the same time (default 2); with --draw: processes
--baseline FILE         the output of an earlier --json: a gold that now does something else is
                        volatile
--json                  print the whole report as JSON
--audit                 list findings that a person should read; a finding is no fault
--runs PATH ...         with --audit: a run directory, a directory that holds some, or a log whose
                        episodes played these tasks; may be given several times
labels of people:
--labels FILE ...       grade labels, one JSON object a line; may be given several times
--second FILE           with --labels: labels of the same trajectories by another person"""
DEFAULTS = {"parallel": 2}

SETTINGS = {"variants": {"type": int}, "limit": {"type": int}}
RENAMED = {
    "--no-gold-cache": "--set use_gold_cache=false",
    "--prompts": "a test of the prompts",
    "--format": "--json",
}
"""Options of an earlier version that only this command had, and what they are now."""


_SETTINGS_OF_RUNS = {"image", "backend", "set", "profile"}
_SHARED = {"parallel", "json"}
_SOUNDNESS = "the check of tasks"
MODES = {
    "find faults of tasks": {
        "--contamination": {"contamination", "draw", *_SHARED},
        "--draw": {"draw", "out", *_SETTINGS_OF_RUNS, *_SHARED} - {"profile"},
        "--audit": {"audit", "runs", "variants", *_SETTINGS_OF_RUNS, *_SHARED},
        _SOUNDNESS: {"limit", "variants", "baseline", *_SETTINGS_OF_RUNS, *_SHARED},
    },
    "compare labels of people with rewards": {
        "--labels": {"labels", "second", "variants", "out", *_SETTINGS_OF_RUNS, *_SHARED},
        "--labels with --second": {"labels", "second", *_SHARED},
    },
}


def _chosen(args: argparse.Namespace) -> str:
    """Return the option that says what to do, or nothing for the soundness of tasks."""
    chosen = [name for name in ("labels", "contamination", "audit") if getattr(args, name)]
    if len(chosen) > 1:
        raise UsageError(f"--{chosen[0]} and --{chosen[1]} are two things: choose one")
    return next(iter(chosen), "draw" if args.draw is not None else "")


def handle(args: argparse.Namespace) -> int:
    """Check datasets, and print the findings."""
    if not (args.datasets or args.contamination or args.labels):
        raise UsageError(
            "name a dataset to check, or give --contamination or --labels; see "
            "`intercode check --help`"
        )
    chosen = _chosen(args)
    form = f"--{chosen}" if chosen else _SOUNDNESS
    form += " with --second" if chosen == "labels" and args.second is not None else ""
    refuse_options(args, MODES, form, DEFAULTS)
    if chosen in ("labels", "contamination"):
        results = [OPTIONS.load(f"check.{chosen}")(args)]
    else:
        check = OPTIONS.load(f"check.{chosen}") if chosen else _check_dataset
        results = [check(args, name) for name in args.datasets]
    if args.json:
        print_documents([document for document, _ in results])
    return 0 if all(sound for _, sound in results) else UNSOUND


def _check_dataset(args: argparse.Namespace, name: str) -> tuple[dict[str, Any], bool]:
    from intercode import datasets
    from intercode.datasets.load_cache import environment_for_options
    from intercode.evaluation.check import dataset, findings
    from intercode.results.rendering import render

    settings = environment_settings(args)
    chosen = datasets.load(name, environment_for_options(settings))
    log_warnings(chosen)
    report = dataset.check(
        chosen,
        limit=args.limit,
        parallel=args.parallel,
        env_options=settings,
    )
    if args.baseline is not None:
        report = dataset.compare_with_baseline(report, _read_baseline(args), str(args.baseline))
    document, tables = findings.report_as_json(report), findings.report_tables(report)
    if args.variants is not None:
        document["variants"], more = OPTIONS.load("check.variants")(args, name)
        tables += more
    if not args.json:
        print(render(tables))
    return document, report.sound


def _read_baseline(args: argparse.Namespace) -> dict[str, str]:
    try:
        earlier = json.loads(args.baseline.read_text(encoding="utf-8"))
        reports = earlier if isinstance(earlier, list) else [earlier]
        fingerprints: dict[str, str] = {}
        for report in reports:  # intercode 0.1.0 wrote the key `prints`
            fingerprints |= report.get("fingerprints", report.get("prints", {}))
        return fingerprints
    except (ValueError, TypeError, AttributeError) as e:
        raise DataError(
            f"{args.baseline} is not the output of `intercode check --json`: write it anew, with "
            "`intercode check DATASET --json > FILE`"
        ) from e
