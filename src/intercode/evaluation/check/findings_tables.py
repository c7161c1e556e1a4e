"""A check's findings as tables for people and as JSON for programs."""

from __future__ import annotations

from typing import Any

from intercode.core.types import to_jsonable
from intercode.environments.base.gold_cache import ENABLE_VARIABLE
from intercode.evaluation.check.findings import FAULT_KINDS, NOTE_KINDS, CheckReport
from intercode.results.tables import Cell, Table


def report_tables(report: CheckReport) -> list[Table]:
    """How many tasks have each kind of fault, and every fault and note."""
    good = report.tasks - len(report.unsound)
    about = ", ".join(
        f"{name} {report.metadata[name]}"
        for name in ("profile", "dataset_hash", "image", "image_digest", "network")
        if report.metadata.get(name)
    )
    kinds: list[tuple[Cell, ...]] = [("sound", good, "no fault was found")]
    kinds += [(kind, n, FAULT_KINDS[kind]) for kind, n in report.counts().items()]
    summary = Table(
        "check",
        f"{report.dataset}: {good} of {report.tasks} tasks are sound",
        ("kind", "tasks", "meaning"),
        tuple(kinds),
        notes=tuple(filter(None, (about, _search_note(report), _cache_note(report)))),
    )
    rows = tuple((f.task, f.kind, f.detail) for f in report.faults)
    notes = tuple((f.task, f.kind, f.detail) for f in report.notes)
    columns = ("task", "kind", "what")
    shown = [summary]
    if rows:
        shown.append(Table("faults", "Faults", columns, rows))
    if notes:
        seen = {f.kind for f in report.notes}
        meaning = tuple(f"{kind}: {text}" for kind, text in NOTE_KINDS.items() if kind in seen)
        shown.append(Table("notes", "Not faults by themselves", columns, notes, meaning))
    return shown


def _search_note(report: CheckReport) -> str:
    done = report.search
    if not done.sandboxes:
        return ""
    short = f"; {done.too_short} are too short to be looked for" if done.too_short else ""
    return (
        f"golds, tests and flags were looked for inside {done.sandboxes} fresh box"
        f"{'' if done.sandboxes == 1 else 'es'}: {done.texts} texts{short}"
    )


def _cache_note(report: CheckReport) -> str:
    if not report.cached_tasks:
        return ""
    return (
        f"the golds of {report.cached_tasks} tasks are proven steady: for a day, scoring looks up what "
        f"they leave and does not run them ({ENABLE_VARIABLE}=0 turns that off)"
    )


def report_as_json(report: CheckReport) -> dict[str, Any]:
    """The whole report as JSON types, with its counts and whether it is sound."""
    return {
        "dataset": report.dataset, "sound": report.sound, "counts": report.counts(),
        "unsound": list(report.unsound), **to_jsonable(report),
    }  # fmt: skip
