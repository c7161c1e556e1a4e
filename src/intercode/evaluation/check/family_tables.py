"""The report of proven task families: soundness, difficulty, and what a blind agent reaches."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from intercode.core.types import to_jsonable
from intercode.evaluation.check.family_proofs import Proof, ProofReport
from intercode.results.statistics.intervals import wilson_interval
from intercode.results.tables import Cell, Table

_SIZES = ("turns", "files", "bytes", "words")


def blind_share(proofs: Sequence[Proof]) -> tuple[float, float, float] | None:
    """Return the share of tasks that a blind agent solved, with its interval, or None."""
    solved = [p.blind for p in proofs if p.blind is not None]
    if not solved:
        return None
    share = sum(solved) / len(solved)
    return share, *wilson_interval(share, len(solved))


def family_faults(report: ProofReport) -> list[tuple[str, str]]:
    """Return faults of whole families: no size grows with the difficulty, or a blind agent solves
    more than is claimed."""
    faults = []
    for family in report.families:
        proofs = [p for p in report.proofs if p.family == family.id]
        easy, hard = ([p for p in proofs if p.difficulty == d] for d in (1, 5))
        if easy and hard and not any(_mean(hard, n) > _mean(easy, n) for n in _SIZES):
            faults.append((family.id, "difficulty-flat: no size grows from difficulty 1 to 5"))
        blind = blind_share(proofs)
        if blind and family.blind is not None and blind[1] > family.blind:
            faults.append((family.id, f"blind: {blind[0]:.3f}, and {family.blind:.3f} is claimed"))
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
        if (share := blind_share(proofs)) is not None:
            blind.append((family.id, *share, family.blind))
    total = sum(p.task not in faulty for p in report.proofs)
    note = f"{sum(seconds):.0f} s of proofs, {fmean(seconds):.3f} s each (with --parallel at once)"
    tables = [
        Table(
            "families", f"{report.spec}: {total} of {len(report.proofs)} drawn tasks are sound",
            ("family", "group", "split", "tasks", "sound", "seconds"), tuple(families), (note,),
            digits=(("seconds", 2),),
        ),
        Table(
            "difficulty", "Means at the difficulties 1, 3 and 5", ("family", *_SIZES),
            tuple(sizes), ("turns: of a player who looks first; words: of the gold",),
        ),
    ]  # fmt: skip
    if blind:
        columns = ("family", "share", "low", "high", "bound")
        tables.append(
            Table(
                "blind", "Tasks that an agent solves which acts without observing", columns,
                tuple(blind), digits=tuple((name, 3) for name in columns[1:]),
            )
        )  # fmt: skip
    if faults := [*report.all_faults, *family_faults(report)]:
        tables.append(Table("faults", "Faults", ("task", "what"), tuple(faults)))
    return tables


def report_as_json(report: ProofReport) -> dict[str, Any]:
    """Return the report as JSON types."""
    faults = [*report.all_faults, *family_faults(report)]
    return {
        "spec": report.spec, "tasks": len(report.proofs), "sound": not faults,
        "faults": [list(fault) for fault in faults], "proofs": to_jsonable(report.proofs),
    }  # fmt: skip
