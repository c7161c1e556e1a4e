"""Proves drawn worlds by playing them.

Of each task: the reference player solves it from what it observes, and its score never falls;
undoing its changes file by file never raises the score, and ends at 0; doing nothing scores 0;
three scripts reach right end states that differ; each damage costs; the seed gives the task again.
Of all tasks of a kind: no player who skips a part of the looking, and no rule that chooses by
order, length or value, solves more than a tenth.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

from intercode.core.errors import UsageError
from intercode.core.types import Dataset, Score, State, Task
from intercode.environments import make
from intercode.environments.base.probe import PROBE_TIMEOUT
from intercode.environments.base.sandboxed_env import SandboxedEnv, uses_sandbox
from intercode.results.tables import Cell, Table
from intercode_lab.proofs.tasks import task_digest
from intercode_lab.proofs.worker_processes import worker_processes
from intercode_lab.worlds import selection_of
from intercode_lab.worlds.world import Run, WorldKind, WorldPayload, worlds_reward

MAX_SHALLOW = 0.1
"""The greatest share of worlds that a shallow player or a rule may solve."""
MIN_FOR_TELLS = 50
"""The least worlds of a kind by which players and rules are judged."""
MIN_TURNS = 8
"""The least turns of the reference player at the difficulties 4 and 5."""
MAX_RESET_SECONDS = 0.3
_BATCH = 10


@dataclass(frozen=True, slots=True)
class WorldProof:
    """The proof of one world. ``shallow``: which shallow players and rules solve it. ``seconds``:
    the time of the proof, ``reset`` that of the median reset."""

    task: str
    kind: str
    difficulty: int
    digest: str
    faults: tuple[str, ...]
    shallow: Mapping[str, bool]
    turns: int
    goals: int
    discoveries: int
    traps: int
    files: int
    reset: float
    seconds: float


def prove(
    spec: str,
    count: int,
    out: Path,
    *,
    parallel: int = 2,
    progress: Callable[[WorldProof], None] = lambda _: None,
) -> list[WorldProof]:
    """Prove ``count`` worlds of each kind that a specification selects, the difficulties in turn,
    and write the proofs to a file. Raises UsageError for a count or ``parallel`` below 1."""
    selection = selection_of(spec)
    if count < 1 or parallel < 1 or selection.seeds is not None:
        raise UsageError("--draw and --parallel take numbers from 1, and worlds without @seed=")
    batches = [
        (spec, at, tuple(range(start, min(start + _BATCH, count))))
        for at in range(len(selection.families))
        for start in range(0, count, _BATCH)
    ]
    proofs = []
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", encoding="utf-8") as lines:
        for batch in _results(batches, parallel):
            for proof in batch:
                lines.write(json.dumps(asdict(proof)) + "\n")
                progress(proof)
            lines.flush()
            proofs += batch
    return proofs


def _results(batches: Sequence[Any], parallel: int) -> Iterator[list[WorldProof]]:
    if parallel == 1:
        yield from map(_prove_batch, batches)
        return
    with worker_processes(min(parallel, len(batches))) as pool:
        yield from pool.map(_prove_batch, batches)


def _prove_batch(batch: tuple[str, int, tuple[int, ...]]) -> list[WorldProof]:
    spec, at, seeds = batch
    selection = selection_of(spec)
    kind = selection.families[at]
    assert isinstance(kind, WorldKind)
    tasks = [kind(seed, selection.difficulty(seed)) for seed in seeds]
    dataset = Dataset(spec, "bash", tuple(tasks), reward="worlds")
    with make("bash", dataset, recycle=True) as env:
        assert uses_sandbox(env)
        env.known_golds = (State(),)  # the reward needs no gold, so none has to run
        return [prove_task(env, n, kind, seed) for n, seed in enumerate(seeds)]


def prove_task(env: SandboxedEnv, index: int, kind: WorldKind, seed: int) -> WorldProof:
    """Prove the world at a position of an environment's dataset, which is that of a seed."""
    started, task = time.monotonic(), env.dataset.tasks[index]
    difficulty = int(task.id.split("/")[-2])
    play = _Play(env, index)
    faults = [*_reference_faults(play, task, kind, difficulty), *_solution_faults(play, task)]
    if task_digest(kind(seed, difficulty)) != task_digest(task):
        faults.append("drawn-differently: the same seed gives another task")
    shallow = {}
    for name, player in kind.shallow.items():
        query = play.reset()
        if failure := _run_player(partial(player, query), play.run):
            faults.append(f"player-fails: {name}: {failure}")
        shallow[name] = play.score().success
    payload = WorldPayload.of(task)
    shallow |= {name: _guesses(rule, payload) for name, rule in RULES.items() if payload.choices}
    reset = median(play.resets)
    return WorldProof(
        task.id,
        kind.id,
        difficulty,
        task_digest(task),
        tuple(faults),
        shallow,
        play.turns,
        len(payload.goals),
        payload.discoveries,
        payload.traps,
        len(task.initial_files),
        round(reset, 4),
        round(time.monotonic() - started, 3),
    )


class _Play:
    """Plays the world at one position. ``turns``: of the reference player."""

    def __init__(self, env: SandboxedEnv, index: int) -> None:
        self.env, self._index = env, index
        self.resets: list[float] = []
        self.turns = 0

    def reset(self) -> str:
        """Begin an episode and return the request."""
        started = time.monotonic()
        query, _ = self.env.reset(options={"task": self._index})
        self.resets.append(time.monotonic() - started)
        return query

    def run(self, command: str) -> str:
        """Run a command and return its observation."""
        return self.env.execute(command).observation

    def score(self) -> Score:
        """Return the score of the present state, as the probe reads it in the sandbox itself."""
        probe = self.env.task.probe or ""
        output = self.env.sandbox.run(["/bin/bash", "-c", probe], timeout=PROBE_TIMEOUT).output
        return worlds_reward(self.env.task, State(probe_output=output), State())


def _run_player(play: Callable[[Run], None], run: Run) -> str:
    """Return how a player failed; empty if it did not."""
    try:
        play(run)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return ""


def _reference_faults(play: _Play, task: Task, kind: WorldKind, difficulty: int) -> Iterator[str]:
    """Yield what is wrong with the scores while the reference player works, and while its work is
    undone."""
    query = play.reset()
    scores = [play.env.score().value]
    if scores[0]:
        yield f"solved-start: doing nothing scores {scores[0]}"

    def run(command: str) -> str:
        play.turns += 1
        observation = play.run(command)
        if play.env.changed_paths():
            scores.append(play.score().value)
        return observation

    failure = _run_player(partial(kind.player, query), run)
    score = play.env.score()
    scores.append(score.value)
    if failure:
        yield f"player-fails: {failure}"
    elif not score.success:
        yield f"player-below-1: {score.value}, {dict(score.details)}"
    if scores != sorted(scores):
        yield f"score-falls: {scores}"
    if not failure and difficulty > 3 and play.turns < MIN_TURNS:
        yield f"few-turns: the reference player needs {play.turns}"
    initial = {entry.path: entry for entry in task.initial_files}
    undone = [score.value]
    for path in sorted(play.env.changed_paths(), reverse=True):
        entry = initial.get(path)
        if entry is None:
            play.env.sandbox.run(["rm", "-rf", path])
        elif entry.kind == "file":
            play.env.sandbox.run(["mkdir", "-p", path.rpartition("/")[0]])
            play.env.sandbox.write(path, entry.data, entry.mode)
        else:
            continue
        undone.append(play.score().value)
    if undone != sorted(undone, reverse=True) or undone[-1]:
        yield f"undoing-pays: {undone}"


def _solution_faults(play: _Play, task: Task) -> Iterator[str]:
    """Yield which solutions fail or reach the same end, and which damages cost nothing."""
    ends, payload = set(), WorldPayload.of(task)
    for number, script in enumerate([task.solution or "", *payload.other_solutions], 1):
        play.reset()
        output = play.run(script)
        score = play.score()
        if not score.success:
            yield f"solution-below-1: {number}: {dict(score.details)} {output[-200:]}"
        changes = play.env.sandbox.changes()
        digests = sorted((path, str(entry)) for path, entry in changes.items())
        ends.add(hashlib.sha256(repr(digests).encode()).hexdigest())
    if len(ends) < 3:
        yield f"alike-ends: the solutions reach {len(ends)} end states"
    for name, harm in payload.harms.items():
        play.reset()
        play.run(task.solution or "")
        output = play.run(harm)
        if name not in play.score().details["damaged"]:
            yield f"free-damage: {name}: {output[-200:]}"
    if payload.harms.keys() != payload.damage.keys():
        yield "untested-damage: harms are not those of the damages"


def _extreme(name: str, sign: int, candidates: Sequence[Mapping[str, Any]]) -> int:
    """Return the position of the least (sign 1) or greatest (-1) value of a property."""
    order = sorted(range(len(candidates)), key=lambda n: candidates[n].get(name, 0))
    return order[0 if sign == 1 else -1]


RULES: Mapping[str, Callable[[Sequence[Mapping[str, Any]]], int]] = {
    "the first": lambda _candidates: 0,
    "the second": lambda candidates: min(1, len(candidates) - 1),
    "the middle one": lambda candidates: len(candidates) // 2,
    "the last but one": lambda candidates: max(0, len(candidates) - 2),
    "the last": lambda candidates: len(candidates) - 1,
    "the shortest": partial(_extreme, "length", 1),
    "the longest": partial(_extreme, "length", -1),
    "the least": partial(_extreme, "value", 1),
    "the greatest": partial(_extreme, "value", -1),
}
"""Cheap rules that choose one of several candidates."""


def _guesses(rule: Callable[[Sequence[Mapping[str, Any]]], int], payload: WorldPayload) -> bool:
    """Return whether a rule is right in every hidden choice of a world."""
    return all(rule(c["candidates"]) == c["right"] for c in payload.choices)


def kind_faults(proofs: Sequence[WorldProof]) -> list[tuple[str, str]]:
    """Return the faults of tasks, and of kinds: shallow players or rules that solve too many."""
    faults = [(proof.task, fault) for proof in proofs for fault in proof.faults]
    digests: dict[str, str] = {}
    for proof in proofs:
        if (first := digests.setdefault(proof.digest, proof.task)) != proof.task:
            faults.append((proof.task, f"same-world: as {first}"))
    for kind, name, solved, total in _shallow_counts(proofs):
        if total >= MIN_FOR_TELLS and solved > MAX_SHALLOW * total:
            faults.append((kind, f"tell: {name} solves {solved} of {total}"))
    for kind in sorted({proof.kind for proof in proofs}):
        reset = median(p.reset for p in proofs if p.kind == kind)
        if reset > MAX_RESET_SECONDS:
            faults.append((kind, f"slow-reset: {reset:.3f} s"))
    return faults


def _shallow_counts(proofs: Sequence[WorldProof]) -> Iterator[tuple[str, str, int, int]]:
    for kind in sorted({proof.kind for proof in proofs}):
        own = [proof.shallow for proof in proofs if proof.kind == kind]
        for name in sorted({name for shallow in own for name in shallow}):
            yield kind, name, sum(s.get(name, False) for s in own), len(own)


def world_tables(spec: str, proofs: Sequence[WorldProof]) -> list[Table]:
    """Return a table of kinds, one of shallow players and rules, and one of faults."""
    faults = kind_faults(proofs)
    faulty = {task for task, _ in faults}
    rows: list[tuple[Cell, ...]] = []
    for kind, level in sorted({(p.kind, p.difficulty) for p in proofs}):
        own = [p for p in proofs if (p.kind, p.difficulty) == (kind, level)]
        names = ("turns", "goals", "discoveries", "traps", "files")
        means = (fmean(getattr(p, name) for p in own) for name in names)
        sound = sum(p.task not in faulty for p in own)
        rows.append((kind, level, len(own), sound, *means, 1000 * median(p.reset for p in own)))
    total = sum(p.task not in faulty for p in proofs)
    columns = ("kind", "difficulty", "tasks", "sound", "turns", "goals", "discoveries", "traps")
    tables = [
        Table(
            "worlds",
            f"{spec}: {total} of {len(proofs)} drawn worlds are sound",
            (*columns, "files", "reset ms"),
            tuple(rows),
            ("turns: of the reference player; reset ms: the median",),
        ),
        Table(
            "tells",
            "Worlds that players solve who look at little, and rules that guess",
            ("kind", "who", "solved", "tasks"),
            tuple(_shallow_counts(proofs)),
        ),
    ]
    if faults:
        tables.append(Table("faults", "Faults", ("task", "what"), tuple(faults)))
    return tables
