"""``intercode check --audit``: lists what in a dataset a person should read."""

from __future__ import annotations

import argparse
from typing import Any

from intercode.cli.output import progress_of
from intercode.cli.shared_options import environment_settings


def audit_dataset(args: argparse.Namespace, name: str) -> tuple[dict[str, Any], bool]:
    """Audit a dataset and print the findings; see ``OPTIONS``."""
    from intercode.results.rendering import render
    from intercode_lab.audit import findings
    from intercode_lab.audit.dataset import audit

    report = audit(
        name,
        runs=args.runs,
        variants=args.variants,
        parallel=args.parallel,
        env_options=environment_settings(args),
        progress=progress_of("tasks"),
    )
    if not args.json:
        print(render(findings.report_tables(report)))
    return findings.report_as_json(report), report.complete
