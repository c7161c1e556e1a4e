"""The report of proven task families: soundness, difficulty, and what a blind agent reaches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

from intercode.core.types import to_jsonable
from intercode.results.statistics.distributions import normal_quantile
from intercode.results.statistics.intervals import (
    LEVEL,
    Cluster,
    Estimate,
    estimate_proportion,
)
from intercode.results.tables import Cell, Table
from intercode_lab.proofs.families import Proof, ProofReport

_SIZES = ("turns", "files", "bytes", "words")


def blind_share(proofs: Sequence[Proof]) -> Estimate | None:
    """Return the share of blind golds that solved their task, with an interval over tasks, or None
    if none was played."""
    return estimate_proportion([Cluster(p.blind_solved, p.blind_tries) for p in proofs])


def tasks_needed(bound: float) -> int:
    """Return the smallest number of tasks that proves a bound if no blind gold solves one: the
    upper end of Wilson's interval is then z²/(n + z²)."""
    z = normal_quantile((1 + LEVEL) / 2)
    return math.ceil(z * z * (1 - bound) / bound)


def blind_verdict(share: Estimate, bound: float) -> str:
    """Return ``proven`` if the whole interval is at most the bound, ``too high`` if it is above the
    bound, else ``undecided`` and how many tasks are needed at least."""
    if share.high is not None and share.high <= bound:
        return "proven"
    if share.low is not None and share.low > bound:
        return "too high"
    needed = tasks_needed(bound)
    if share.clusters < needed:
        return f"undecided: needs {needed} tasks"
    return f"undecided: needs more than {share.clusters} tasks"


def family_faults(report: ProofReport) -> list[tuple[str, str]]:
    """Return faults of whole families: no size grows with the difficulty, or the chance of a blind
    agent is above the bound."""
    faults = []
    for family in report.families:
        proofs = [p for p in report.proofs if p.family == family.id]
        easy, hard = ([p for p in proofs if p.difficulty == d] for d in (1, 5))
        if easy and hard and not any(_mean(hard, n) > _mean(easy, n) for n in _SIZES):
            faults.append((family.id, "difficulty-flat: no size grows from difficulty 1 to 5"))
        blind, bound = blind_share(proofs), family.blind
        if blind and bound is not None and blind_verdict(blind, bound) == "too high":
            detail = f"at least {blind.low:.3f}, above the bound {bound:.3f}: claim a higher one"
            faults.append((family.id, f"blind: {detail}"))
    return faults


def _mean(proofs: Sequence[Proof], name: str) -> float:
    return fmean(getattr(proof, name) for proof in proofs)


def proof_tables(report: ProofReport) -> list[Table]:
    """Return a table of families, one of difficulties, one of blind agents, and one of faults."""
    by_family = {f.id: [p for p in report.proofs if p.family == f.id] for f in report.families}
    faulty = {task for task, _ in report.all_faults}
    seconds = [p.seconds for p in report.proofs]
    families: list[tuple[Cell, ...]] = []
    sizes: list[tuple[Cell, ...]] = []
    blind: list[tuple[Cell, ...]] = []
    for family in report.families:
        proofs = by_family[family.id]
        sound = sum(p.task not in faulty for p in proofs)
        time = fmean(p.seconds for p in proofs)
        families.append((family.id, family.group, family.split, len(proofs), sound, time))
        levels = {d: [p for p in proofs if p.difficulty == d] for d in (1, 3, 5)}
        cells = [
            " ".join(f"{_mean(level, name):.4g}" if level else "-" for level in levels.values())
            for name in _SIZES
        ]
        sizes.append((family.id, *cells))
        if family.blind is not None and (share := blind_share(proofs)) is not None:
            solved = sum(p.blind_solved for p in proofs)
            verdict = blind_verdict(share, family.blind)
            row = solved, share.samples, share.clusters, share.value, share.high, family.blind
            blind.append((family.id, *row, verdict))
    total = sum(p.task not in faulty for p in report.proofs)
    note = f"{sum(seconds):.0f} s of proofs, {fmean(seconds):.3f} s each (with --parallel at once)"
    tables = [
        Table(
            "families",
            f"{report.spec}: {total} of {len(report.proofs)} drawn tasks are sound",
            ("family", "group", "split", "tasks", "sound", "seconds"),
            tuple(families),
            (note,),
            digits=(("seconds", 2),),
        ),
        Table(
            "difficulty",
            "Means at the difficulties 1, 3 and 5",
            ("family", *_SIZES),
            tuple(sizes),
            ("turns: of a player who looks first; words: of the gold",),
        ),
    ]
    if blind:
        shares = ("share", "high", "bound")
        tables.append(
            Table(
                "blind",
                "Golds of other hidden choices, played without looking",
                ("family", "solved", "tries", "tasks", *shares, "verdict"),
                tuple(blind),
                ("high: the upper end of the interval at 95 %, with tasks as independent units",),
                digits=tuple((name, 3) for name in shares),
            )
        )
    if faults := [*report.all_faults, *family_faults(report)]:
        tables.append(Table("faults", "Faults", ("task", "what"), tuple(_group_faults(faults))))
    return tables


def _group_faults(faults: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield each fault once, with the first task that has it and the number of further ones."""
    tasks_by_fault: dict[str, list[str]] = {}
    for task, fault in faults:
        tasks_by_fault.setdefault(fault, []).append(task)
    for fault, (first, *others) in tasks_by_fault.items():
        yield f"{first} and {len(others)} more" if others else first, fault


def report_as_json(report: ProofReport) -> dict[str, Any]:
    """Return the report as JSON types."""
    faults = [*report.all_faults, *family_faults(report)]
    return {
        "spec": report.spec,
        "tasks": len(report.proofs),
        "sound": not faults,
        "faults": [list(fault) for fault in faults],
        "proofs": to_jsonable(report.proofs),
    }
