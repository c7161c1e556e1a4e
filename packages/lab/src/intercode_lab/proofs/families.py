"""Proves drawn tasks, in parallel processes, and writes the proofs to a file.

Each task is played (see tasks.py) and drawn once more, which must give the same task. Of all
tasks together: no two have the same world, and no other dataset has the query or a gold of one, or
a copy that is nearly the same.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError, InfrastructureError, UsageError
from intercode.core.types import Dataset, Payload
from intercode.environments import setting_names
from intercode.evaluation.check.dataset import static_findings, with_retry
from intercode.evaluation.check.findings import NOTE_KINDS
from intercode.evaluation.check.task_runs import TaskRunner, task_runners
from intercode_lab.contamination.search import copy_faults, dataset_index, world_digest
from intercode_lab.families.family import Family, FamilyPayload
from intercode_lab.families.selection import select_families
from intercode_lab.proofs.tasks import (
    FamilyTaskCheck,
    play_first_episode,
    play_further_episodes,
    task_digest,
    variant_of,
)
from intercode_lab.proofs.worker_processes import worker_processes

BATCH = 25
"""Tasks that are proven together, and then written down."""
_HARMLESS = NOTE_KINDS.keys() - {"flag-in-files"}


@dataclass(frozen=True, slots=True)
class Proof:
    """The proof of one task.

    ``faults``: what is wrong with it. ``digest``: of query, golds and initial state; ``world``: of
    the initial state alone. ``blind_tries``, ``blind_solved``: how many golds of other hidden
    choices were played without looking, and how many of them solved it. ``turns``, ``files``,
    ``bytes``, ``words``: its measured size: turns of the player who looks first, files (with links)
    and bytes of the initial state (bytes with database and hidden tests), and words of the gold.
    ``seconds``: the time of the proof.
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
    drawn as it was, is not proven again. ``parallel``: processes that prove tasks; 1: this one.
    A process that is started imports the script that runs, so a script calls this function under
    ``if __name__ == "__main__":``, unless ``parallel`` is 1. ``progress`` is called after each
    proof with the numbers of proofs that exist and that are wanted. Sandboxes are recycled unless
    the settings say otherwise. Raises UsageError for a count or ``parallel`` below 1 and for a
    specification with seeds, DataError for a file of another kind, InfrastructureError if a process
    ends too early.
    """
    selection = select_families(spec)
    if count < 1 or selection.seeds is not None:
        raise UsageError("--draw takes a number from 1, and a specification without @seed=")
    if parallel < 1:
        raise UsageError(f"parallel is {parallel}; it must be at least 1")
    if "recycle" in setting_names(selection.environment):
        settings = {"recycle": True, **settings}
    known = _read_proofs(out)
    batches = []
    for number, family in enumerate(selection.families):
        digests = frozenset(digest for digest, p in known.items() if p.family == family.id)
        batches += [
            _Batch(spec, number, range(start, min(start + BATCH, count)), digests, settings)
            for start in range(0, count, BATCH)
        ]
    if not known:
        batches[0] = replace(batches[0], search_image=True)
    proofs: list[Proof] = []
    faults: list[tuple[str, str]] = []
    out.parent.mkdir(parents=True, exist_ok=True)
    with (
        out.open("a", encoding="utf-8") as lines,
        _in_processes(min(parallel, len(batches))) as run,
    ):
        for results in run(batches):
            for result in results:
                proof = result.proof or replace(known[result.digest], task=result.task)
                proofs.append(proof)
                faults += [(proof.task, fault) for fault in result.copies]
                if result.proof is not None:
                    lines.write(json.dumps(asdict(proof)) + "\n")
                progress(proof, len(proofs), len(selection.families) * count)
            lines.flush()
    return ProofReport(spec, selection.families, tuple(proofs), (*_alike_worlds(proofs), *faults))


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


@dataclass(frozen=True, slots=True)
class _Batch:
    """Tasks of one family to prove: those of ``seeds``, unless their digest is among ``known``."""

    spec: str
    family: int
    seeds: range
    known: frozenset[str]
    settings: Mapping[str, Any]
    search_image: bool = False


@dataclass(frozen=True, slots=True)
class _Result:
    """The proof of a task (None: it is known), and where another dataset has its query or gold."""

    task: str
    digest: str
    copies: tuple[str, ...]
    proof: Proof | None


@contextmanager
def _in_processes(
    count: int,
) -> Iterator[Callable[[Sequence[_Batch]], Iterator[list[_Result]]]]:
    """Yield a function that proves batches in a number of processes, and returns the results in the
    order of the batches."""
    if count == 1:
        yield partial(map, _prove_batch)
        return
    try:
        with worker_processes(count) as pool:
            yield partial(pool.map, _prove_batch)
    except BrokenProcessPool as e:
        raise InfrastructureError(
            "a process that proves tasks has ended. Was it killed, for example for its memory? A "
            'script must call prove() under `if __name__ == "__main__":`, or with parallel=1'
        ) from e


def _prove_batch(batch: _Batch) -> list[_Result]:
    """Draw the tasks of a batch, and prove those that are not known."""
    started = time.monotonic()
    selection = select_families(batch.spec)
    family = selection.families[batch.family]
    drawn = [(seed, family(seed, selection.difficulty(seed))) for seed in batch.seeds]
    digests = [task_digest(task) for _, task in drawn]
    fresh = [pair for pair, key in zip(drawn, digests, strict=True) if key not in batch.known]
    checks = [FamilyTaskCheck(i, task, family, seed) for i, (seed, task) in enumerate(fresh)]
    if checks:
        checks[0].search_image = batch.search_image
        _play_all(checks, batch.settings)
    seconds = (time.monotonic() - started) / max(1, len(checks))
    proofs = {check.task.id: _proof(check, seconds) for check in checks}
    index = dataset_index()
    return [
        _Result(task.id, key, tuple(copy_faults(task, index)), proofs.get(task.id))
        for (_, task), key in zip(drawn, digests, strict=True)
    ]


def _play_all(checks: Sequence[FamilyTaskCheck], settings: Mapping[str, Any]) -> None:
    """Play the tasks of one family, and add what is found to their checks."""
    family = checks[0].family
    tasks = tuple(replace(check.task, instantiate=variant_of) for check in checks)
    dataset = Dataset(family.id, family.environment, tasks)
    by_id = {check.task.id: check for check in checks}
    for finding in static_findings(dataset):
        by_id[finding.task].add_finding(finding.kind, finding.detail)
    for check in checks:
        if task_digest(family(check.seed, check.difficulty)) != task_digest(check.task):
            check.add_finding("drawn-differently", "the same seed gives another task")
    with task_runners(dataset, settings, 1) as run_all:
        for episode in (play_first_episode, play_further_episodes):
            run_all(partial(_play_check, checks, episode), range(len(checks)))


def _play_check(
    checks: Sequence[FamilyTaskCheck],
    episode: Callable[[TaskRunner, FamilyTaskCheck], None],
    runner: TaskRunner,
    index: int,
) -> None:
    with_retry(runner, checks[index], episode)


def _proof(check: FamilyTaskCheck, seconds: float) -> Proof:
    task = check.task
    faults = tuple(f"{f.kind}: {f.detail}" for f in check.findings if f.kind not in _HARMLESS)
    files = [entry for entry in task.initial_files if entry.kind != "dir"]
    size = sum(len(entry.data) for entry in files)
    size += task.database.path.stat().st_size if task.database else 0
    size += len(repr(Payload.of(task).tests or ""))
    return Proof(
        task.id,
        check.family.id,
        check.difficulty,
        task_digest(task),
        world_digest(task),
        faults,
        check.blind_tries,
        check.blind_solved,
        len(FamilyPayload.of(task).turns),
        len(files),
        size,
        len((task.solution or "").split()),
        round(seconds, 4),
    )


def _alike_worlds(proofs: Sequence[Proof]) -> Iterator[tuple[str, str]]:
    """Yield the tasks that have the world of another one."""
    seen: dict[str, str] = {}
    for proof in proofs:
        first = seen.setdefault(proof.world, proof.task)
        if first != proof.task:
            yield proof.task, f"same-world: as {first}"
