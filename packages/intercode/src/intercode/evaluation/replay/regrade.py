"""Scores recorded episodes with another profile or reward function.

Their actions are executed again, without a model, and recorded as a new run, which describes its
source.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import intercode
from intercode.core import logs, trajectories
from intercode.core.errors import DataError, UsageError
from intercode.core.logs.formats import is_native
from intercode.core.types import SUBMIT, EndReason, Score, Step, Trajectory
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.replay.rules import ReplayRules, replay_rules_for
from intercode.evaluation.replay.recorded_environments import (
    RecordedEnvironments,
    ReplayOptions,
    open_recorded_env,
    reset_to_task,
)
from intercode.evaluation.tracebacks import portable_traceback, traceback_metadata
from intercode.results.statistics.metrics import is_failed

DIFFERENCES_FILE = "differences.jsonl"
"""The file of a regraded run that lists every step that differs."""
_SOURCE_KEYS = (
    "profile",
    "scoring",
    "reward",
    "dataset",
    "dataset_hash",
    "image_digest",
    "arch",
    "tier",
)
_OLD_RUN_KEYS = (
    "source",
    "file",
    "attempts",
    "turns_taken",
    "started",
    "config",
    "versions",
    "code",
)
"""Keys of run.json that do not apply to the new run."""


@dataclass(frozen=True, slots=True)
class StepDifference:
    """A step, counted from 1, that differs from its record.

    A reward is None if the step has none. ``observation`` says whether the observation differs,
    ``ended`` whether the new episode was over before this step.
    """

    task: str
    epoch: int
    step: int
    recorded_reward: float | None
    reward: float | None
    observation: bool
    ended: bool = False


@dataclass(frozen=True)
class RegradeResult:
    """A regraded run: its directory, the recorded and the new episodes, and what differs.

    ``skipped`` counts the recorded episodes that were left out.
    """

    out: Path
    before: tuple[Trajectory, ...]
    after: tuple[Trajectory, ...]
    differences: tuple[StepDifference, ...]
    skipped: int

    @property
    def flips(self) -> list[tuple[Trajectory, Trajectory]]:
        """The recorded and new episodes whose success differs, of those that could be graded."""
        pairs = zip(self.before, self.after, strict=True)
        return [(a, b) for a, b in pairs if a.success != b.success and not is_failed(b)]

    @property
    def failed(self) -> list[Trajectory]:
        """The new episodes that could not be graded."""
        return [t for t in self.after if is_failed(t)]


def regrade(
    source: Path,
    options: ReplayOptions,
    out: Path,
    *,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> RegradeResult:
    """Execute and score the episodes of a log again, and write them as the run ``out``.

    ``options`` has the profile, the reward function (default: that of the profile) and the
    conditions. The new steps have the recorded messages of the agent and the new observations.
    Episodes that ended in an error are left out. An episode that cannot be graded becomes an error
    in the new run. Raises UsageError if ``out`` contains episodes already.
    """
    if (out / trajectories.TRAJECTORIES_FILE).exists():
        raise UsageError(f"{out} contains a run already: give another --out")
    recorded = logs.load_log(source)
    before = [t for t in recorded if not is_failed(t) and t.steps]
    if not before:
        raise UsageError(f"{source} has no episode that was played to its end")
    options = replace(options, env_options={"reward": None, **options.env_options})
    metadata = _run_metadata(before[0], options, source)
    trajectories.write_run_metadata(out, metadata)
    after: list[Trajectory] = []
    differences: list[StepDifference] = []
    with RecordedEnvironments(options) as envs, ThreadPoolExecutor(options.parallel) as pool:
        graded = pool.map(partial(_regrade_or_error, envs), before)
        for new, episode_differences in graded:
            after.append(new.replace(run={**_carried_metadata(new.run), **metadata}))
            trajectories.append_trajectory(out / trajectories.TRAJECTORIES_FILE, after[-1])
            differences += episode_differences
            progress(len(after), len(before))
    with (out / DIFFERENCES_FILE).open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(d)) + "\n" for d in differences)
    return RegradeResult(
        out, tuple(before), tuple(after), tuple(differences), len(recorded) - len(before)
    )


def _run_metadata(episode: Trajectory, options: ReplayOptions, source: Path) -> dict[str, Any]:
    """Return the metadata of the new run: its conditions, the recorded agent, and the source."""
    with open_recorded_env(episode, options) as env:
        reset_to_task(env, episode)  # some metadata needs a sandbox
        here = env.result_metadata()
    log = source / trajectories.TRAJECTORIES_FILE if source.is_dir() else source
    regraded_from = {
        "run": source.resolve().name,
        "sha256": hashlib.sha256(log.read_bytes()).hexdigest(),
        "source": episode.run.get("source"),
        **{k: episode.run[k] for k in _SOURCE_KEYS if episode.run.get(k) is not None},
    }
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {
        **_carried_metadata(episode.run),
        **here,
        "version": intercode.__version__,
        "regraded_from": regraded_from,
        "started": now,
    }


def _carried_metadata(run: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in run.items() if k not in _OLD_RUN_KEYS}


def _regrade_or_error(
    envs: RecordedEnvironments, old: Trajectory
) -> tuple[Trajectory, list[StepDifference]]:
    """Regrade an episode. One that cannot be graded becomes an error."""
    try:
        return _regrade_episode(envs, old)
    except Exception as e:  # a fault in a gold, a sandbox, a file or a reward
        if isinstance(e, UsageError) and not isinstance(e, DataError):
            raise
        text = f"{type(e).__name__}: {e}"
        run = {**old.run, **traceback_metadata(e)}
        return old.replace(steps=(), end="error", error=text, seconds=None, run=run), []


def _regrade_episode(
    envs: RecordedEnvironments, old: Trajectory
) -> tuple[Trajectory, list[StepDifference]]:
    """Execute and score an episode again. Returns it with the steps that differ."""
    rules = replay_rules_for(old)
    with envs.borrow(old) as env:
        played = play_again(env, old)
        failure = env.episode.action_error
    if failure is not None and old.end != "action_error":
        error = f"{failure.type}: {failure.message}"
        run = {**old.run, "traceback": portable_traceback(failure.traceback)}
        return old.replace(steps=(), end="error", error=error, seconds=None, run=run), []
    differences = [
        StepDifference(old.task, old.epoch, n + 1, a.score_value, b.score_value, text)
        for n, b in played.items()
        for a in [rules.executed_step(old, old.steps[n])]
        if (text := _observation_differs(rules, old, a, b)) or a.score_value != b.score_value
    ]
    differences += [
        StepDifference(old.task, old.epoch, n + 1, step.score_value, None, False, ended=True)
        for n, step in enumerate(old.steps)
        if n not in played
    ]
    restarts = tuple(sum(k < n for k in played) for n in old.restarts)
    steps = tuple(played.values())
    regraded = old.replace(steps=steps, restarts=restarts, seconds=None, started=None)
    return regraded.replace(end=_end_reason(old, regraded)), differences


def play_again(env: InterCodeEnv, old: Trajectory) -> dict[int, Step]:
    """Execute the steps of a recorded episode again, those of each attempt until it is over.
    Returns the new steps by their position in the record, and leaves the environment in the state
    that they reached."""
    rules, played, over = replay_rules_for(old), dict[int, Step](), False
    reset_to_task(env, old)
    for number, recorded in enumerate(old.steps):
        if number in old.restarts:
            reset_to_task(env, old)
        elif over:
            continue
        last = number + 1 in (*old.restarts, old.turns)
        step, over = _regrade_step(env, rules, old, recorded, last)
        played[number] = step.as_recorded()
    return played


def _observation_differs(rules: ReplayRules, old: Trajectory, recorded: Step, now: Step) -> bool:
    """Return whether an observation differs; one of other software is first put into its log
    form."""
    if is_native(old):
        return recorded.observation != now.observation
    return not rules.same(
        recorded.observation, rules.logged_observation(old, recorded, now.observation)
    )


def _regrade_step(
    env: InterCodeEnv, rules: ReplayRules, old: Trajectory, recorded: Step, last: bool
) -> tuple[Step, bool]:
    """Execute a recorded step again. Returns the new step and whether the episode is over.

    It is scored if the record has a score, and at the end of the episode.
    """
    step = rules.executed_step(old, recorded)
    scored = step.score is not None or (last and old.steps[-1].score is not None)
    if not step.executed:
        # other software records 0 for a turn without code, and does not score it
        score = env.score() if scored and is_native(old) else None
        return (step if score is None else replace(step, score=score)), False
    if step.action.split(None, 1)[:1] == [SUBMIT] and not is_native(old) and not env.expects_answer:
        # the authors' loops continue after a submit, and log the last observation again
        return replace(step, observation=env.episode.last_observation, score=env.score()), False
    if not is_native(old) and rules.repeats_in(env):
        observation, score = rules.play_and_score(env, step)
        return replace(step, observation=observation, score=score), False
    result = env.execute(step.action)
    score = result.score
    if score is None and scored:
        score = Score(0.0) if env.expects_answer and not is_native(old) else env.score()
    new = result.with_output(replace(step.agent_output(), action=step.action))
    return replace(new, score=score, diffs=step.diffs), result.terminated


def _end_reason(old: Trajectory, new: Trajectory) -> EndReason:
    """Return why the episode ended: as recorded, unless a recorded success no longer is one."""
    return "agent_stopped" if old.end == "solved" and not new.success else old.end
