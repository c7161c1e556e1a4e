"""Audits a dataset: runs each gold once, as ``check`` does, and applies the rules."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intercode import datasets
from intercode.core.errors import DataError, GoldError, InfrastructureError, UsageError
from intercode.core.logs import find_logs, load_log
from intercode.core.types import EMPTY_MAPPING, Dataset, State, Task, Trajectory
from intercode.datasets.load_cache import environment_for_options
from intercode.environments.recorded_descriptions import describe_environment
from intercode.evaluation.check.dataset import AUDIT_RULES
from intercode.evaluation.check.findings import TaskFinding
from intercode.evaluation.check.task_runs import TaskRun, TaskRunner, task_runners
from intercode.results.short_text import cut_end
from intercode.results.statistics.metrics import is_submission
from intercode_lab.audit import rules
from intercode_lab.audit.findings import AuditReport
from intercode_lab.variants.tasks import check_variants

_RULE_KINDS = {
    "empty-table": "empty-answer",
    "vacuous": "empty-answer",
    "tie-at-limit": "tie-at-limit",
}
"""The kind here of what an audit rule of ``check`` finds; its other findings are left out."""


def audit(
    dataset: str | Dataset,
    *,
    runs: Sequence[Path] = (),
    variants: int | None = None,
    parallel: int = 2,
    settings: Mapping[str, Any] = EMPTY_MAPPING,
    env_options: Mapping[str, Any] = EMPTY_MAPPING,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> AuditReport:
    """Return what in a dataset a person should read.

    ``runs``: run directories and logs whose answers are compared. ``variants``: compare the golds
    in so many variants of each task as well (docs/variants.md). ``settings`` are those of every
    environment, such as ``profile`` and ``image``; ``env_options`` those of this one. ``progress``
    is called with the number of tasks that are done and of all whose golds run. Raises
    UnknownNameError and UsageError for a dataset, an image or a path that does not exist. A gold
    or a sandbox that fails is a finding.
    """
    chosen = datasets.load(dataset, environment_for_options(env_options))
    if parallel < 1:
        raise UsageError(f"parallel is {parallel}; it must be at least 1")
    episodes = read_episodes(chosen, runs) if runs else []
    which = [i for i, task in enumerate(chosen.tasks) if _gold_has_answer(chosen, task)]
    done = itertools.count(1)

    def audit_next(runner: TaskRunner, i: int) -> list[TaskFinding]:
        found = _audit_gold(runner, i)
        progress(next(done), len(which))
        return found

    with task_runners(chosen, {**settings, **env_options}, parallel) as run_all:
        metadata = run_all(lambda runner, _: runner.env.result_metadata(), [0])[0]
        by_task = run_all(audit_next, which)
    findings = [f for found in by_task for f in found]
    findings += _static_findings(chosen)
    if variants is not None:
        found = check_variants(chosen, {**settings, **env_options}, variants, parallel)
        findings += [finding for task in found for finding in rules.golds_in_variants(task)]
    findings += split_answers(chosen.environment, episodes)
    order = {task.id: n for n, task in reversed(list(enumerate(chosen.tasks)))}
    findings.sort(key=lambda f: order[f.task])
    return AuditReport(
        chosen.name, len(chosen), tuple(findings), len(which), len(episodes), metadata
    )


def _gold_has_answer(dataset: Dataset, task: Task) -> bool:
    """Return whether running the golds of a task tells something that a rule reads."""
    if describe_environment(dataset.environment).gold_is_hidden:
        return len(task.golds) > 1
    return task.gold is not None


def _audit_gold(runner: TaskRunner, index: int) -> list[TaskFinding]:
    """Run the golds of a task and apply the rules that read their results."""
    task = runner.env.dataset.tasks[index]
    try:
        run = runner.run(index, *task.solution_actions)
        if run.state is None:
            return [TaskFinding(task.id, "gold-fails", "it did not end within the time limit")]
        return list(_findings_of_run(runner, index, run, run.state))
    except GoldError as e:
        return [TaskFinding(task.id, "gold-fails", str(e))]
    except (DataError, InfrastructureError) as e:
        return [TaskFinding(task.id, "not-audited", f"{type(e).__name__}: {e}")]


def _findings_of_run(
    runner: TaskRunner, index: int, run: TaskRun, state: State
) -> Iterator[TaskFinding]:
    env = runner.env
    task = env.dataset.tasks[index]
    if len(run.golds) > 1:
        yield from rules.differing_golds(task, run.golds, env.reward_function)
    if env.description.gold_is_hidden:
        return
    for finding in rules.weak_answer(task, state):
        # what set-up made and the gold removed is no change, but doing nothing is not the answer
        if finding.kind == "zero-answer" or runner.score_after_reset(index).success:
            yield finding
    if state.rows is not None:
        yield from rules.duplicate_rows(task, [g.rows for g in run.golds if g.rows is not None])
    if env.name in AUDIT_RULES:
        for found in AUDIT_RULES.load(env.name)(runner, index, run):
            if found.kind in _RULE_KINDS:
                kind = _RULE_KINDS[found.kind]
                if kind == "empty-answer" and state.rows:
                    kind = "zero-answer"
                yield TaskFinding(task.id, kind, found.detail)


def _static_findings(dataset: Dataset) -> Iterator[TaskFinding]:
    """Apply the rules that run nothing."""
    first: dict[tuple[object, ...], Task] = {}
    for task in dataset.tasks:
        earlier = first.setdefault(rules.same_query_key(task), task)
        if earlier.gold != task.gold:
            yield TaskFinding(task.id, "same-query", f"as {earlier.id}")
        yield from rules.equal_expectations(task)
        if task.database is not None:
            yield from rules.unnamed_values(task)


# Finds answers of agents that are equal to a reader, and that the grader scores differently.
_CONDITIONS = ("profile", "reward", "scoring", "dataset_hash", "image_digest")
_MAX_TEXT = 50  # characters of an answer or an action in a finding
_DIGITS = 2  # of scores that are compared: some logs have no more


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """An answer in an episode, with its score and the action that gave it.

    ``key`` is equal for answers that the same grader should score the same.
    """

    task: str
    key: tuple[object, ...]
    text: str
    action: str
    score: float


def read_episodes(dataset: Dataset, paths: Sequence[Path]) -> list[Trajectory]:
    """Return the episodes of runs and logs that play a task of the dataset with its query.

    Raises UsageError for a path that does not exist or has no logs.
    """
    queries = {task.id: task.query for task in dataset.tasks}
    episodes = (t for path in find_logs(paths) for t in load_log(path))
    return [t for t in episodes if queries.get(t.task) == t.query]


def split_answers(environment: str, episodes: Iterable[Trajectory]) -> list[TaskFinding]:
    """Return a finding for each answer that has different scores."""
    groups: dict[tuple[object, ...], dict[float, ScoredAnswer]] = defaultdict(dict)
    for episode in episodes:
        answer = _final_answer(environment, episode)
        if answer is not None:
            groups[answer.key].setdefault(round(answer.score, _DIGITS), answer)
    found = (sorted(same.items(), reverse=True) for same in groups.values() if len(same) > 1)
    return [_describe(scored) for scored in found]


def _final_answer(environment: str, episode: Trajectory) -> ScoredAnswer | None:
    """Return the answer that an episode ended with, and the last score after it.

    None if it has none, if it shows nothing, or if its answer is a submitted flag.
    """
    done = [s for s in episode.steps if s.executed and s.valid and not is_submission(s)]
    scored = [s.score.value for s in episode.steps if s.score is not None]
    description = describe_environment(environment)
    if not done or not scored or episode.error is not None or description.expects_answer:
        return None
    last = done[-1]
    conditions = (str(episode.run.get(name)) for name in _CONDITIONS)
    code = [s.action for s in done] if description.judges_code else []
    text = last.observation.strip()
    if not (text or last.changes or code):
        return None
    key = (episode.task, episode.seed, *conditions, text, last.changes, *code)
    return ScoredAnswer(episode.task, key, text, last.action, scored[-1])


def _describe(scored: Sequence[tuple[float, ScoredAnswer]]) -> TaskFinding:
    answer = scored[0][1]
    parts = [f"{score:g} after {_quote(a.action)}" for score, a in (scored[0], scored[-1])]
    return TaskFinding(
        answer.task, "split-answers", f"{_quote(answer.text)} scored {' and '.join(parts)}"
    )


def _quote(text: str) -> str:
    text = " | ".join(text.split("\n"))
    return repr(cut_end(text, _MAX_TEXT))
