"""Proves one drawn task by playing it.

Two episodes begin in the same state, in which no gold can be read. The gold scores 1 in both with
the same result, doing nothing scores less. Further golds do the same as the first, and all hold in
another world, where they do something else. The player who looks first solves the task. If it
needs looking, blind golds are played, which are golds of other hidden choices.
"""

from __future__ import annotations

from collections.abc import Sequence

from intercode.core.types import SUCCESS_THRESHOLD, Score, State, Task
from intercode.evaluation.check.dataset import TaskCheck, audit_gold
from intercode.evaluation.check.sandbox_search import search_sandbox
from intercode.evaluation.check.task_runs import TaskRun, TaskRunner
from intercode_lab.contamination.search import digest, world_digest
from intercode_lab.families.family import Family, FamilyPayload

MAX_VARIANTS = 6
"""Variants of a task that are tried, until the gold does something else in one."""
BLIND_TRIES = 4
"""Golds of other hidden choices that are played in a task, in a family that asks for looking."""


class FamilyTaskCheck(TaskCheck):
    """The check of a drawn task.

    ``search_image``: search the whole image for golds, and not only the files of the task.
    ``blind_tries``, ``blind_solved``: how many blind golds were played, and how many of them solved
    it.
    """

    def __init__(self, index: int, task: Task, family: Family, seed: int) -> None:
        super().__init__(index, task)
        self.family, self.seed = family, seed
        self.difficulty = int(task.id.split("/")[-2])
        self.search_image = False
        self.start: Score | None = None
        self.blind_tries = self.blind_solved = 0


def play_first_episode(runner: TaskRunner, check: FamilyTaskCheck) -> None:
    """Score the beginning, then the gold."""
    runner.reset(check.index)
    check.start, _, golds = runner.score_here()
    check.require_unsolved_start(check.start)
    check.add_first_run(runner.run_here(*check.solution, golds=golds))


def play_further_episodes(runner: TaskRunner, check: FamilyTaskCheck) -> None:
    """Play everything else."""
    if check.first_run is None or check.start is None:
        return
    check.wait_for_second_run()
    _play_second_episode(runner, check, check.start, check.first_run.golds)
    check.run_further_golds(runner)
    audit_gold(runner, check)
    if _golds_agree(runner, check.task, check.first_run):
        _check_variants(runner, check, check.first_run)
    else:
        check.add_finding("golds-disagree", "a further gold does something else than the first")
    if check.family.blind is not None:
        _play_blind_golds(runner, check, check.first_run.golds)


def _play_second_episode(
    runner: TaskRunner, check: FamilyTaskCheck, start: Score, golds: Sequence[State]
) -> None:
    """Compare the beginning, search it for golds, and play as the player who looks first. Where
    that player has nothing to look at, this is the second run of the gold."""
    again = runner.score_after_reset(check.index, golds)
    check.require_same_start(start, again, runner.env.scores_output)
    check.findings += search_sandbox(runner.env, whole=check.search_image)[0]
    turns = FamilyPayload.of(check.task).turns
    run = _play(runner, turns, golds)
    if not _solved(run):
        check.add_finding("turns-below-1", "the player who looks first does not solve it")
    if tuple(turns) != tuple(check.solution):
        run = runner.run(check.index, *check.solution, golds=golds)
    check.add_second_run(runner, run)


def _check_variants(runner: TaskRunner, check: FamilyTaskCheck, original: TaskRun) -> None:
    """Find what is wrong with the other worlds of a task: its golds must hold there, and do
    something else in one of them than in ``original``. A task of which all worlds are the same has
    no variants."""
    task = check.task
    for number in range(1, MAX_VARIANTS + 1):
        runner.reset(check.index, number)
        variant = runner.env.task
        if task_digest(variant) == task_digest(task):
            return
        if (variant.query, variant.golds) != (task.query, task.golds):
            check.add_finding("variant-differs", "query or golds change with the world")
            return
        run = runner.run_here(*check.solution)
        if not _solved(run):
            check.add_finding("variant-below-1", f"the gold does not solve variant {number}")
            return
        if not _golds_agree(runner, task, run):
            detail = f"a further gold does something else in variant {number}"
            check.add_finding("golds-disagree", detail)
            return
        if run.fingerprint != original.fingerprint:
            return
    detail = f"the gold does the same in {MAX_VARIANTS} other worlds"
    check.add_finding("alike-variants", detail)


def _play_blind_golds(runner: TaskRunner, check: FamilyTaskCheck, golds: Sequence[State]) -> None:
    """Count how many golds of other hidden choices solve the task."""
    check.blind_tries = BLIND_TRIES
    check.blind_solved = 0
    for number in range(1, BLIND_TRIES + 1):
        other = check.family(check.seed, check.difficulty, other=number)
        if other.query != check.task.query:
            check.add_finding("query-differs", "the query changes with the hidden choices")
        runner.reset(check.index)
        check.blind_solved += _solved(_play(runner, [other.solution or ""], golds))


def _play(runner: TaskRunner, actions: Sequence[str], golds: Sequence[State]) -> TaskRun:
    """Play actions in the present episode, the output of the last one being the answer."""
    for action in actions[:-1]:
        runner.env.execute(action)
    return runner.run_here(actions[-1], golds=golds)


def _solved(run: TaskRun) -> bool:
    return run.score is not None and run.score.value >= SUCCESS_THRESHOLD


def _golds_agree(runner: TaskRunner, task: Task, run: TaskRun) -> bool:
    reward = runner.env.reward_function
    return all(reward(task, gold, run.golds[0]).success for gold in run.golds[1:])


def variant_of(task: Task, seed: int) -> Task:
    """Return the variant of a task whose number is the seed of the episode; 0: the task itself."""
    return task.vary(task, seed) if seed and task.vary is not None else task


def task_digest(task: Task) -> str:
    """Return a digest of everything that a drawn task consists of."""
    parts = [task.query, list(task.golds), task.flag, repr(task.data), task.cwd]
    return digest([*parts, world_digest(task)])
