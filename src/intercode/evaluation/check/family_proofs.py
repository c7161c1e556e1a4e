"""Proves drawn tasks: everything that ``check`` asks of a task, and what is asked of a family.

Of each task: gold 1, doing nothing below 1, the same after another reset, no gold to be read (see
``dataset.check``); further golds do the same as the first; all hold in another world, where they do
something else; the player who looks first solves it. Of all tasks together: no two have the same
world, and no other dataset has the query or a gold of one, or a copy that is nearly the same. Of a
family that cannot be solved without looking: how many blind golds solve a task, which are golds of
other hidden choices.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError, GoldError, InfrastructureError, UsageError
from intercode.core.types import SUCCESS_THRESHOLD, Dataset, State, Task
from intercode.datasets.families.family import Family
from intercode.datasets.families.selection import FamilySelection, select_families
from intercode.evaluation.check import dataset as dataset_check
from intercode.evaluation.check.contamination import (
    copy_faults,
    dataset_index,
    digest,
    world_digest,
)
from intercode.evaluation.check.task_runs import TaskRun, TaskRunner, task_runners

BATCH = 25
"""Tasks that are proven together, and then written down."""
MAX_VARIANTS = 6
"""Variants of a task that are tried, until the gold does something else in one."""
BLIND_TRIES = 4
"""Golds of other hidden choices that are played in a task, in a family that asks for looking."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The proof of one task.

    ``faults``: what is wrong with it. ``digest``: of query, golds and initial state; ``world``: of
    the initial state alone. ``blind_tries``, ``blind_solved``: how many golds of other hidden
    choices were played without looking, and how many of them solved it. ``turns``, ``files``,
    ``bytes``, ``words``: its measured size: turns of the player who looks first, files and bytes of
    the initial state (bytes with database and hidden tests), and words of the gold. ``seconds``:
    the time of the proof.
    """

    task: str
    family: str
    difficulty: int
    digest: str
    world: str
    faults: tuple[str, ...]
    blind_tries: int
    blind_solved: int
    turns: int
    files: int
    bytes: int
    words: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ProofReport:
    """The proofs of a specification. ``faults``: of all tasks together, by the id of the task."""

    spec: str
    families: tuple[Family, ...]
    proofs: tuple[Proof, ...]
    faults: tuple[tuple[str, str], ...]

    @property
    def all_faults(self) -> list[tuple[str, str]]:
        """Every fault, with the id of its task."""
        return [(p.task, fault) for p in self.proofs for fault in p.faults] + list(self.faults)


def prove(
    spec: str,
    count: int,
    out: Path,
    *,
    settings: Mapping[str, Any],
    parallel: int = 2,
    progress: Callable[[Proof, int, int], None] = lambda *_: None,
) -> ProofReport:
    """Prove ``count`` tasks of every family that a specification selects.

    Proofs are added to the file ``out``, which is read first: a task that is sound there, and is
    drawn as it was, is not proven again. ``progress`` is called after each proof with the numbers
    of proofs that exist and that are wanted. Raises UsageError for a count below 1 and for a
    specification with seeds, DataError for a file of another kind.
    """
    selection = select_families(spec)
    if count < 1 or selection.seeds is not None:
        raise UsageError("--draw takes a number from 1, and a specification without @seed=")
    known = _read_proofs(out)
    proofs: list[Proof] = []
    wanted = count * len(selection.families)
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("a", encoding="utf-8") as lines:
        for family in selection.families:
            for start in range(0, count, BATCH):
                seeds = range(start, min(start + BATCH, count))
                for proof, is_new in _prove_batch(
                    family, selection, seeds, known, settings, parallel
                ):
                    proofs.append(proof)
                    if is_new:
                        known[proof.digest] = proof
                        lines.write(json.dumps(asdict(proof)) + "\n")
                    progress(proof, len(proofs), wanted)
                lines.flush()
    return ProofReport(
        spec, selection.families, tuple(proofs), tuple(_common_faults(selection, proofs))
    )


def _read_proofs(path: Path) -> dict[str, Proof]:
    """Return the sound proofs in a file, by digest. Remove a last line that was cut off."""
    found: dict[str, Proof] = {}
    text = path.read_text("utf-8") if path.exists() else ""
    if not text.endswith("\n") and text:
        text = text[: text.rfind("\n") + 1]
        path.write_text(text, "utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        try:
            row = json.loads(line)
            proof = Proof(**{**row, "faults": tuple(row["faults"])})
        except (ValueError, TypeError, KeyError) as e:
            raise DataError(
                f"{path}:{number} is not a proof: remove it, or choose another --out"
            ) from e
        if not proof.faults:
            found[proof.digest] = proof
    return found


def _prove_batch(
    family: Family,
    selection: FamilySelection,
    seeds: Sequence[int],
    known: Mapping[str, Proof],
    settings: Mapping[str, Any],
    parallel: int,
) -> Iterator[tuple[Proof, bool]]:
    """Yield the proofs of a few tasks of one family, and whether each is new."""
    started = time.monotonic()
    drawn = [(seed, family(seed, selection.difficulty(seed))) for seed in seeds]
    fresh = [(seed, task) for seed, task in drawn if task_digest(task) not in known]
    for _, task in drawn:
        if (proof := known.get(task_digest(task))) is not None:
            yield replace(proof, task=task.id), False
    if not fresh:
        return
    batch = Dataset(family.id, family.environment, tuple(task for _, task in fresh))
    report = dataset_check.check(
        batch, parallel=parallel, cache_golds=False, env_options=settings, search_image=not known
    )
    faults: dict[str, list[str]] = {task.id: [] for task in batch.tasks}
    for finding in (*report.faults, *(n for n in report.notes if n.kind == "flag-in-files")):
        faults[finding.task].append(f"{finding.kind}: {finding.detail}")
    variable = replace(
        batch, tasks=tuple(replace(task, instantiate=_variant_of) for task in batch.tasks)
    )
    with task_runners(variable, settings, parallel) as run_all:
        played = run_all(lambda runner, i: _play(runner, i, family, *fresh[i]), range(len(fresh)))
    seconds = (time.monotonic() - started) / len(fresh)
    for (_, task), (found, tries, solved) in zip(fresh, played, strict=True):
        yield _proof(family, task, (*faults[task.id], *found), tries, solved, seconds), True


def _variant_of(task: Task, seed: int) -> Task:
    """Return the variant of a task whose number is the seed of the episode; 0: the task itself."""
    return task.vary(task, seed) if seed and task.vary is not None else task


def _play(
    runner: TaskRunner, index: int, family: Family, seed: int, task: Task
) -> tuple[list[str], int, int]:
    """Return the faults of a task that playing it shows, the number of blind golds that were
    played, and how many of them solved it."""
    difficulty, faults, tries, solved = int(task.id.split("/")[-2]), [], 0, 0
    if task_digest(family(seed, difficulty)) != task_digest(task):
        faults.append("drawn-differently: the same seed gives another task")
    try:
        original = runner.run(index, task.solution or "")
        faults += _variant_faults(runner, index, task, original)
        if not _solves(runner, index, task.data["turns"], original.golds):
            faults.append("turns-below-1: the player who looks first does not solve it")
        tries = BLIND_TRIES if family.blind is not None else 0
        others = [family(seed, difficulty, other=number) for number in range(1, tries + 1)]
        if any(other.query != task.query for other in others):
            faults.append("query-differs: the query changes with the hidden choices")
        for other in others:
            solved += _solves(runner, index, [other.solution or ""], original.golds)
    except (GoldError, InfrastructureError) as e:
        faults.append(f"{type(e).__name__}: {e}")
    return faults, tries, solved


def _variant_faults(runner: TaskRunner, index: int, task: Task, original: TaskRun) -> list[str]:
    """Return what is wrong with the other worlds of a task: its gold must hold there, and do
    something else in one of them than in ``original``. A task of which all worlds are the same has
    no variants."""
    variant = _variant_of(task, 1)
    if task_digest(variant) == task_digest(task):
        return []
    if (variant.query, variant.golds) != (task.query, task.golds):
        return ["variant-differs: query or golds change with the world"]
    if not _golds_agree(runner, task, original):
        return ["golds-disagree: a further gold does something else than the first"]
    for number in range(1, MAX_VARIANTS + 1):
        runner.reset(index, number)
        run = runner.run_here(task.solution or "")
        if run.score is None or run.score.value < SUCCESS_THRESHOLD:
            return [f"variant-below-1: the gold does not solve variant {number}"]
        if not _golds_agree(runner, task, run):
            return [f"golds-disagree: a further gold does something else in variant {number}"]
        if run.fingerprint != original.fingerprint:
            return []
    return [f"alike-variants: the gold does the same in {MAX_VARIANTS} other worlds"]


def _golds_agree(runner: TaskRunner, task: Task, run: TaskRun) -> bool:
    reward = runner.env.reward_function
    return all(reward(task, gold, run.golds[0]).success for gold in run.golds[1:])


def _solves(runner: TaskRunner, index: int, actions: Sequence[str], golds: Sequence[State]) -> bool:
    """Return whether actions solve a task, the output of the last one being its answer. ``golds``:
    the states that its golds leave."""
    runner.reset(index)
    for action in actions[:-1]:
        runner.env.execute(action)
    score = runner.run_here(actions[-1], golds=golds).score
    return score is not None and score.value >= SUCCESS_THRESHOLD


def _proof(
    family: Family, task: Task, faults: tuple[str, ...], tries: int, solved: int, seconds: float
) -> Proof:
    files = [entry for entry in task.initial_files if entry.kind == "file"]
    size = sum(len(entry.data) for entry in files)
    size += task.database.path.stat().st_size if task.database else 0
    size += len(repr(task.data.get("tests", "")))
    return Proof(
        task.id, family.id, int(task.id.split("/")[-2]), task_digest(task),
        world_digest(task), faults, tries, solved, len(task.data["turns"]), len(files), size,
        len((task.solution or "").split()), round(seconds, 4),
    )  # fmt: skip


def task_digest(task: Task) -> str:
    """Return a digest of everything that a drawn task consists of."""
    parts = [task.query, list(task.golds), task.flag, repr(task.data), task.cwd]
    return digest([*parts, world_digest(task)])


def _common_faults(
    selection: FamilySelection, proofs: Sequence[Proof]
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with tasks that are each sound: two that are alike, or one that another
    dataset has."""
    seen: dict[str, str] = {}
    for proof in proofs:
        first = seen.setdefault(proof.world, proof.task)
        if first != proof.task:
            yield proof.task, f"same-world: as {first}"
    known = dataset_index()
    by_id = {family.id: family for family in selection.families}
    for proof in proofs:
        task = by_id[proof.family](int(proof.task.rpartition("/")[2]), proof.difficulty)
        for fault in copy_faults(task, known):
            yield proof.task, fault
