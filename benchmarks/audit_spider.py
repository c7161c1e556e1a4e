"""Audits Spider's 1034 tasks on both engines; writes results/spider.md and the verified list.

    INTERCODE_DATA=... python benchmarks/audit_spider.py [--write]

What somebody judged by reading stands in the list: corrected and further golds, and reasons to
leave a task out that have a colon. This program keeps them and finds the rest. It runs `check` on
the engines ``embedded`` and ``mysql``, with the corrected golds. Then it runs every gold once more
on both and compares the results as the standard reward does, and runs it without each of its
conditions. Without ``--write`` it prints the page, and exits with status 1 if the page or the list
would change.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from idle_conditions import idle_conditions

from intercode import datasets
from intercode.core.types import SUCCESS_THRESHOLD, Dataset, ExecResult, State, Task
from intercode.datasets.payloads import SqlPayload
from intercode.environments.sql.engine import Engine
from intercode.environments.sql.recorded_results import difference_cause
from intercode.environments.sql.reward import standard
from intercode.environments.sql.row_order import rank_rows
from intercode.evaluation.check.dataset import check
from intercode.evaluation.check.findings import FAULT_KINDS, NOTE_KINDS, CheckReport
from intercode_sql import SqlLimits, open_engine

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "benchmarks" / "results" / "spider.md"
LIST = ROOT / "packages/intercode/src/intercode/datasets/sql/spider_verified.json"
ENGINES = ("embedded", "mysql")
SECONDS = 30.0
HASHED = ("repair", "compare")
"""What of an entry of the list is part of the dataset's hash beside the golds."""
FAULTS = [k for k in FAULT_KINDS if k != "duplicate-query"]
"""Spider has many pairs of questions with the same meaning, which is not a fault of a task."""


@dataclass(frozen=True)
class Answer:
    """The result of a gold on one engine, and whether one of its conditions has no effect."""

    result: ExecResult
    ranks: tuple[int, ...] | None
    idle: bool


def answers(dataset: Dataset, kind: str) -> tuple[str, list[Answer]]:
    """Return the engine's version and its result for every gold."""
    engine = Engine(open_engine(kind))
    out = []
    for task in dataset.tasks:
        assert task.database is not None and task.gold is not None
        session = engine.open(task.database, SqlLimits())
        result = session.run(task.gold, SECONDS)
        ask = lambda s, run=session.run: run(s, SECONDS).rows  # noqa: E731
        idle = kind == ENGINES[0] and any(idle_conditions(task, g, session) for g in task.golds)
        out.append(Answer(result, rank_rows(task.gold, result.rows or (), ask), idle))
        session.close()
    version = engine.version
    engine.close()
    return version, out


def compared(task: Task, a: Answer, b: Answer) -> str:
    """Return the cause of a difference between two engines' results; empty if they are equal."""
    one, other = (State(rows=x.result.rows, ranks=x.ranks) for x in (a, b))
    if one.rows is None or other.rows is None:
        alike = one.rows is other.rows
    else:
        alike = all(
            standard(task, x, y).value >= SUCCESS_THRESHOLD for x, y in ((one, other), (other, one))
        )
    if alike:
        return ""
    cause = difference_cause(str(task.gold), a.result.output, b.result.output)
    first, second = (f"of {e}" for e in ENGINES)
    return cause.replace("in the record", first).replace("here", second).replace(" alone", "")


def short(tasks: list[str]) -> str:
    return " ".join(t.removeprefix("spider/") for t in tasks)


def judged_dataset(listing: Mapping[str, Any]) -> Dataset:
    """Return all tasks, with the golds of the list where it has some."""
    tasks = []
    for task in datasets.load("spider").tasks:
        entry = listing["include"].get(task.id, {})
        golds = {"gold": entry.get("gold", task.gold), "also": tuple(entry.get("also", ()))}
        tasks.append(replace(task, **golds))
    return Dataset("spider", "sql", tuple(tasks))


def verdicts(
    reports: dict[str, CheckReport], differing: dict[str, str], idle: list[str]
) -> dict[str, str]:
    """Return the reason why each unsound task is left out."""
    out: dict[str, list[str]] = {}
    for report in reports.values():
        for fault in report.faults:
            if fault.kind in FAULTS and fault.kind not in out.setdefault(fault.task, []):
                out[fault.task].append(fault.kind)
    for task in differing:
        out.setdefault(task, []).append("engines-differ")
    for task in idle:
        if not out.get(task):
            out[task] = ["idle-condition"]
    return {task: ", ".join(sorted(kinds)) for task, kinds in out.items() if kinds}


def kinds_of(reason: str) -> list[str]:
    """Return the kinds of fault that a reason names: one before a colon, or several."""
    kind, colon, _ = reason.partition(": ")
    return [kind] if colon else reason.split(", ")


BESIDE = "what the gold sorts, groups or filters by can stand beside what it selects"
MEANINGS = {
    **FAULT_KINDS,
    **NOTE_KINDS,
    "fails": "the gold ends with an error",
    "engines-differ": "the two engines give different results",
    "idle-condition": "a condition of the gold has no effect: ignoring it is right by luck",
    "wrong-gold": "judged: the gold is wrong, and what is right is open or cannot be told apart",
    "text-order": "judged: the gold sorts numbers or dates that are stored as texts",
    "right-by-luck": "judged: what people take for the answer has the gold's rows by luck",
    "ambiguous": "judged: the query can be read in several ways that exclude each other",
}


@dataclass(frozen=True)
class Audit:
    """The findings: the engines' reports and versions, the cause of each difference between their
    results, the number of results with identical text, the reason for each excluded task, the sound
    tasks, and the list."""

    dataset: Dataset
    reports: dict[str, CheckReport]
    versions: dict[str, str]
    differing: dict[str, str]
    printed: int
    excluded: dict[str, str]
    sound: Dataset
    listing: Mapping[str, Any]


def page(audit: Audit) -> str:
    """Return the whole page."""
    lines = [
        *summary(audit),
        ABOUT,
        *judged(audit),
        *faults(audit),
        *remarks(audit),
        *differences(audit),
    ]
    return "\n".join(lines).rstrip() + "\n"


def summary(audit: Audit) -> list[str]:
    """Return the introduction: what was audited, and how many tasks are sound, by hardness."""
    total, left = len(audit.dataset), len(audit.sound)
    grades, sound = (Counter(t.hardness for t in d.tasks) for d in (audit.dataset, audit.sound))
    rows = [f"| {g} | {grades[g]} | {sound[g]} |" for g in ("easy", "medium", "hard", "extra")]
    engines = " and ".join(f"`{k}` ({v})" for k, v in audit.versions.items())
    return [
        "# Audit of Spider's development set",
        "",
        f"This page says which of the {total} Spider tasks are sound, on the dump that the",
        f"InterCode authors published, in the `standard` profile on two engines: {engines}.",
        "Tasks are named by number: 70 is `spider/70`. This page does not repeat their texts.",
        "",
        f"**{left} of {total} tasks are sound.** They are the subset `spider:verified`, hash",
        f"`{audit.sound.hash}`; the list is `{LIST.relative_to(ROOT)}`.",
        "",
        "| hardness | tasks | sound |",
        "|---|---:|---:|",
        *rows,
        f"| all | {total} | {left} |",
        "",
    ]


def judged(audit: Audit) -> list[str]:
    """Return the decisions that were made by reading, each with its reason and its tasks."""
    entries = audit.listing["include"].items()
    kinds = ("corrected", "further gold", "further columns", "left out")
    tables: dict[str, dict[str, list[str]]] = {kind: {} for kind in kinds}
    for task, entry in entries:
        if entry.get("compare") == SqlPayload.FURTHER:
            tables["further columns"].setdefault(BESIDE, []).append(task)
        for kind, key in (("corrected", "repair"), ("further gold", "also_reason")):
            if key in entry:
                tables[kind].setdefault(entry[key], []).append(task)
    for task, reason in audit.excluded.items():
        if ": " in reason:
            tables["left out"].setdefault(reason.partition(": ")[2], []).append(task)
    counts = {kind: sum(map(len, found.values())) for kind, found in tables.items()}
    rows = [
        f"| {kind} | {reason} | {short(tasks)} |"
        for kind, found in tables.items()
        for reason, tasks in found.items()
    ]
    return [
        "## What reading found",
        "",
        f"Corrected golds: {counts['corrected']}, tasks with further golds:",
        f"{counts['further gold']}, with further columns: {counts['further columns']}, left out:",
        f"{counts['left out']}.",
        "",
        "| decision | reason | tasks |",
        "|---|---|---|",
        *rows,
        "",
    ]


def faults(audit: Audit) -> list[str]:
    """Return the table of excluded tasks, by kind of fault."""
    why = audit.excluded.items()
    kinds = {kind: [t for t, found in why if kind in kinds_of(found)] for kind in MEANINGS}
    return [
        "## Tasks that are left out",
        "",
        "| kind | tasks | meaning | which |",
        "|---|---:|---|---|",
        *(f"| {k} | {len(t)} | {MEANINGS[k]} | {short(t)} |" for k, t in kinds.items() if t),
        "",
    ]


def remarks(audit: Audit) -> list[str]:
    """Return the table of notes, which are not faults."""
    notes: dict[str, list[str]] = {}
    for note in audit.reports[ENGINES[0]].notes:
        notes.setdefault(note.kind, []).append(note.task)
    return [
        "## Notes",
        "",
        "| kind | tasks | meaning |",
        "|---|---:|---|",
        *(f"| {k} | {len(t)} | {MEANINGS[k]} |" for k, t in notes.items()),
        "",
        f"Tasks without an order (`open-order`): {short(notes.get('open-order', []))}.",
        "",
    ]


def differences(audit: Audit) -> list[str]:
    """Return how often the two engines agree, and the causes of differences."""
    total = len(audit.dataset)
    equal = total - len(audit.differing)
    causes: dict[str, list[str]] = {}
    for task, cause in audit.differing.items():
        causes.setdefault(cause, []).append(task)
    return [
        "## The two engines",
        "",
        f"Results are equal for {equal} of {total} golds ({100 * equal / total:.2f} %) as the",
        f"standard reward compares them; {audit.printed} have identical text.",
        "",
        "| cause of a difference | tasks | which |",
        "|---|---:|---|",
        *(f"| {cause} | {len(t)} | {short(t)} |" for cause, t in sorted(causes.items())),
    ]


ABOUT = """\
## How to repeat it

<!-- needs: data, mysql -->
<!-- setup: intercode() { command intercode "$@" --limit 1; } -->
```sh
intercode check spider:verified                          # all sound, exit status 0
intercode check spider:verified --set engine=mysql
intercode check spider                                   # the faults and notes of all tasks
```

`python benchmarks/audit_spider.py` creates this page from new runs.

## What was audited, and how

- **Execution**: every gold, corrected and further ones too, runs as an agent would run it, twice,
  in fresh sessions, on both engines. It must run without an error, score 1 and give the same result
  again, and doing nothing must score less. `check` then examines the result: whether it is empty,
  whether a table that the gold reads is empty, and whether LIMIT cuts rows that tie in the gold's
  order. For the last, it runs the gold without LIMIT and with the columns that it orders by.
- **Conditions**: every gold runs again without each of its conditions (one side of AND, OR,
  INTERSECT, UNION or EXCEPT, a WHERE, a HAVING). If the result is the same, the data cannot show
  whether an answer knew the condition, and the task is left out (`idle-condition`). Tables that are
  joined, and columns that are grouped or ordered by, are not varied.
- **Reading**: one reader compared the query, the gold and the first rows of its result, in each of
  the 865 tasks that the automatic checks of the first version had left. 470 of the 1034 golds equal
  that of an earlier task, and were read with it. No second reader has read them, and the tasks that
  execution leaves out were not read.
- **Luck**: 23 tasks that were sound before are left out (`right-by-luck`), because a reader found
  answers that read the query wrongly and return the gold's rows, and their twins in other words.
- **Variants of the data** (other rows in the same tables) were used to make the labels of
  [validity.md](../../docs/validity.md), whose wrong golds are in this audit. `--variants` of
  `check`, `eval` and `replay` makes such variants ([variants](../../docs/variants.md)).

A task accepts **further columns** if its gold sorts, groups or filters by something that it does
not select, such as the count by which the rows are sorted: the reader of the labels in
[validity.md](../../docs/validity.md) called every such answer right. No other column may be added.

A gold is **corrected** if the query has one answer and the gold another. A task has **further
golds** if the query leaves open what a fair reader would take either way. It is **left out** if the
readings exclude each other, or if the right answer depends on how the data is stored. The list has
the reason of each decision. An answer can still be right by luck on this data: it can look up the
one row and then name its key in place of the condition.

The dump is truncated: all four tables of `wta_1` are empty, `cars_data` has 27 rows and `flights`
50. Many golds therefore return nothing, and so do many wrong statements. Golds fail by MySQL 8's
rules, which both engines follow; the `original` profile counts them as empty results, as the
authors' code does. Where a gold has no ORDER BY, the standard reward ignores the order of rows; the
authors' reward does not. Ties at a LIMIT are the kind `tie-at-limit` below.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the page and the list")
    args = parser.parse_args()
    known = json.loads(LIST.read_text("utf-8"))
    dataset = judged_dataset(known)
    reports = {e: check(dataset, env_options={"engine": e}, cache_golds=False) for e in ENGINES}
    found = {e: answers(dataset, e) for e in ENGINES}
    first, second = (found[e][1] for e in ENGINES)
    pairs = list(zip(dataset.tasks, first, second, strict=True))
    differing = {t.id: cause for t, a, b in pairs if (cause := compared(t, a, b))}
    printed = sum(a.result.output == b.result.output for _, a, b in pairs)
    why = verdicts(reports, differing, [t.id for t, a, _ in pairs if a.idle])
    why |= {task: reason for task, reason in known["exclude"].items() if ": " in reason}
    excluded = {t.id: why[t.id] for t in dataset.tasks if t.id in why}
    left = {t.id: known["include"].get(t.id, {}) for t in dataset.tasks if t.id not in why}
    sound = Dataset(
        "",
        "sql",
        tuple(
            replace(t, data={**t.data, **{k: left[t.id][k] for k in HASHED if k in left[t.id]}})
            for t in dataset.tasks
            if t.id in left
        ),
    )
    listing = {
        "version": known["version"],
        "hash": sound.hash,
        "include": left,
        "exclude": excluded,
    }
    versions = {e: found[e][0] for e in ENGINES}
    audit = Audit(dataset, reports, versions, differing, printed, excluded, sound, listing)
    texts = {
        PAGE: page(audit),
        LIST: json.dumps(listing, indent=1, ensure_ascii=False) + "\n",
    }
    print(texts[PAGE])
    changed = [p for p, text in texts.items() if not p.is_file() or p.read_text("utf-8") != text]
    for path in changed:
        print(f"{'wrote' if args.write else 'differs'}: {path}", file=sys.stderr)
        if args.write:
            path.write_text(texts[path], encoding="utf-8")
    return 0 if args.write or not changed else 1


if __name__ == "__main__":
    sys.exit(main())
