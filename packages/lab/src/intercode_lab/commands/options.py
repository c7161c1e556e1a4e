"""The options ``--variants``, ``--draw``, ``--contamination`` and ``--label`` of other commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from intercode.cli.output import log_warnings
from intercode.cli.shared_options import environment_settings
from intercode.core.types import to_jsonable

if TYPE_CHECKING:
    from intercode.evaluation.replay.recorded_environments import ReplayOptions
    from intercode.results.tables import Table
    from intercode.results.view import LabelPage, Library
    from intercode_lab.proofs.families import Proof
    from intercode_lab.variants.holding import HoldingReport


def check_contamination(args: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """Compare drawn tasks with each other and with other datasets; see ``OPTIONS``."""
    from intercode.results.rendering import render
    from intercode_lab.contamination import search as contamination
    from intercode_lab.contamination.tables import contamination_tables

    draws = contamination.DEFAULT_DRAWS if args.draw is None else args.draw
    report = contamination.find_contamination(args.datasets, draws)
    if not args.json:
        print(render(contamination_tables(report)))
    return to_jsonable(report), not report.faults


def prove_families(args: argparse.Namespace, spec: str) -> tuple[dict[str, Any], bool]:
    """Prove drawn tasks of the families that a specification selects; see ``OPTIONS``."""
    from intercode import datasets
    from intercode.results.export.base import text_as_file_name
    from intercode.results.rendering import render
    from intercode_lab import worlds
    from intercode_lab.proofs import families as family_proofs
    from intercode_lab.proofs import tables as family_tables
    from intercode_sandbox.platforms.paths import cache_root

    if spec.startswith(worlds.SCHEME):
        return _prove_worlds(args, spec)

    def show(proof: Proof, done: int, wanted: int) -> None:
        faults = "; ".join(proof.faults) or "sound"
        print(f"{done}/{wanted} {proof.task} {proof.seconds:.2f} s: {faults}", file=sys.stderr)

    log_warnings(datasets.load(spec))
    out = args.out or cache_root() / "proofs" / f"{text_as_file_name(spec)}.jsonl"
    report = family_proofs.prove(
        spec,
        args.draw,
        out,
        settings=environment_settings(args),
        parallel=args.parallel,
        progress=show,
    )
    if not args.json:
        print(render(family_tables.proof_tables(report)))
    document = family_tables.report_as_json(report)
    return document, document["sound"]


def _prove_worlds(args: argparse.Namespace, spec: str) -> tuple[dict[str, Any], bool]:
    from intercode.results.export.base import text_as_file_name
    from intercode.results.rendering import render
    from intercode_lab.proofs import worlds
    from intercode_sandbox.platforms.paths import cache_root

    def show(proof: worlds.WorldProof) -> None:
        print(
            f"{proof.task} {proof.seconds:.2f} s: {'; '.join(proof.faults) or 'sound'}",
            file=sys.stderr,
        )

    out = args.out or cache_root() / "proofs" / f"{text_as_file_name(spec)}.jsonl"
    proofs = worlds.prove(spec, args.draw, out, parallel=args.parallel, progress=show)
    faults = worlds.kind_faults(proofs)
    if not args.json:
        print(render(worlds.world_tables(spec, proofs)))
    document = {"spec": spec, "tasks": len(proofs), "sound": not faults, "faults": faults}
    return document | {"proofs": to_jsonable(proofs)}, not faults


def check_variants(args: argparse.Namespace, name: str) -> tuple[list[Any], list[Table]]:
    """Find sound variants of the tasks of a dataset; see ``OPTIONS``."""
    from intercode.datasets.load_cache import environment_for_options, load_cached
    from intercode_lab.variants import tasks
    from intercode_lab.variants.tables import variant_tables

    loaded = load_cached(name, environment_for_options(environment_settings(args)))
    chosen = replace(loaded, tasks=loaded.tasks[: args.limit])
    found = tasks.check_variants(chosen, environment_settings(args), args.variants, args.parallel)
    return to_jsonable(found), variant_tables(found, args.variants)


@dataclass(frozen=True, slots=True)
class RunInVariants:
    """The solved episodes of a run, played in variants of their tasks."""

    report: HoldingReport

    def tables(self) -> list[Table]:
        """Return tables of what holds."""
        from intercode_lab.variants.tables import holding_tables

        return holding_tables(self.report)

    def write(self, directory: Path) -> Path:
        """Write the report to a directory. Returns the file."""
        from intercode_lab.variants.holding import write_report

        return write_report(self.report, directory)


def play_variants(
    run: Path, options: ReplayOptions, count: int, progress: Callable[[int, int], None]
) -> RunInVariants:
    """Play the solved episodes of a run in variants of their tasks; see ``OPTIONS``."""
    from intercode_lab.variants.holding import measure_holding

    return RunInVariants(measure_holding(run, options, count, progress))


def open_label_page(library: Library, path: Path) -> LabelPage:
    """Return the page that stores labels of a library's trajectories in a file."""
    from intercode_lab.labels.label_file import LabelFile
    from intercode_lab.labels.viewer import Labelling

    return Labelling(library, LabelFile(path))
