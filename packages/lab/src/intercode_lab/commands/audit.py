"""``intercode audit``: lists what in a dataset a person should read."""

from __future__ import annotations

import argparse
from typing import Any

from intercode.cli.output import print_documents, progress_of
from intercode.cli.parser import ENVIRONMENT_OPTION
from intercode.core.config import parse_key_values

INCOMPLETE = 1
"""Exit status if a task could not be audited."""

EXAMPLE = """\
examples:
  intercode audit starter
  intercode audit nl2bash:verified --image recipe:nl2bash
      golds that differ from each other, answers that are empty or 0, ambiguous queries
  intercode audit spider --env-option engine=mysql --json > audit.json
  intercode audit my_tasks.jsonl --runs runs/a --runs runs/b
      also answers of agents that are equal and have different scores
  intercode audit nl2bash:verified --variants 3
      also golds that disagree in 3 variants of each task

A finding is something to read, not a fault.
`intercode check` tests whether tasks are sound. Exit status: 0, or 1 if a task could not be
audited."""

ARGUMENTS = f"""\
datasets DATASET ...    name[:subset], or a .json/.jsonl/.csv file
--runs PATH ...         a run directory, a directory that holds some, or a log whose episodes played
                        these tasks; may be given several times
--variants N            compare the golds in N variants of each task as well
--profile PROFILE       standard (the default), or another one of `intercode list profiles`
--image IMAGE           root file system: host, dir:PATH, tar:PATH or recipe:NAME (default: the
                        dataset's)
--backend BACKEND       back end of sandboxes (default auto: the strongest tier)
--network NETWORK       none (the default) or host
--timeout S             seconds that a gold may take (default 10; SWE-bench, Harbor: 120)
{ENVIRONMENT_OPTION}
--parallel N            tasks at the same time (default 2)
--json                  print the whole report as JSON
| --format STYLE        text (the default), markdown or csv"""
DEFAULTS = {
    "profile": "standard",
    "backend": "auto",
    "network": "none",
    "parallel": 2,
    "format": "text",
}
SETTINGS = {"variants": {"type": int}}
_SETTINGS = ("profile", "image", "network", "backend", "timeout")


def handle(args: argparse.Namespace) -> int:
    """Audit datasets and print the findings."""
    documents: list[dict[str, Any]] = []
    complete = True
    for name in args.datasets:
        document, whole = _audit(args, name)
        documents.append(document)
        complete = complete and whole
    if args.json:
        print_documents(documents)
    return 0 if complete else INCOMPLETE


def _audit(args: argparse.Namespace, name: str) -> tuple[dict[str, Any], bool]:
    from intercode.results.rendering import render
    from intercode_lab.audit import findings
    from intercode_lab.audit.dataset import audit

    report = audit(
        name,
        runs=args.runs,
        variants=args.variants,
        parallel=args.parallel,
        settings={setting: getattr(args, setting) for setting in _SETTINGS},
        env_options=parse_key_values(args.env_option),
        progress=progress_of("tasks"),
    )
    if not args.json:
        print(render(findings.report_tables(report), args.format))
    return findings.report_as_json(report), report.complete
