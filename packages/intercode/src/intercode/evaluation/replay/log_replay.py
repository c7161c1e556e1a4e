"""Executes recorded episodes again and compares every observation and reward with the record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from intercode.core import logs
from intercode.core.errors import DataError, EnvironmentStateError, UsageError
from intercode.core.logs.formats import is_native
from intercode.core.types import SUCCESS_THRESHOLD, Step, Trajectory
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.replay.comparison import StepComparison
from intercode.environments.base.replay.rules import ReplayRules, replay_rules_for
from intercode.evaluation.replay.recorded_environments import (
    RecordedEnvironments,
    ReplayOptions,
    is_compared,
    repeat_step,
    reset_to_task,
)

__all__ = ["ReplayOptions", "ReplayReport", "StepComparison", "compare_step", "replay_logs"]


@dataclass
class ReplayReport:
    """The result of replaying one file."""

    file: str
    episodes: int = 0
    turns: int = 0
    recorded_success: int = 0
    replayed_success: int = 0
    native: bool = False
    deterministic: bool = False
    steps: list[StepComparison] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def shares(self, stable_only: bool = False) -> dict[str, float | int | None]:
        """Return the number of steps and the shares with equal observation and equal reward.

        A share is None if there is no such step. With ``stable_only`` only steps count that have to
        be equal wherever they are executed.
        """
        steps = [s for s in self.steps if s.stable or not stable_only]
        scored = [s for s in steps if s.recorded_reward is not None]
        return {
            "steps": len(steps),
            "observations": _share([s.same_observation for s in steps]),
            "rewards": _share([s.same_reward for s in scored]),
        }

    @property
    def mismatches(self) -> list[StepComparison]:
        """The steps that differ from their record."""
        return [s for s in self.steps if not s.same]

    @property
    def native_mismatches(self) -> list[StepComparison]:
        """The first differing step of each episode that this package recorded."""
        return [s for s in self.mismatches if s.native]

    @property
    def later_steps(self) -> int:
        """The number of steps that were not compared, because one before them differs."""
        return sum(s.later_steps for s in self.native_mismatches)

    @property
    def native_rewards_equal(self) -> bool:
        """Whether all rewards are equal in the episodes that this package recorded."""
        return all(s.same_reward and s.same_later_rewards for s in self.native_mismatches)


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def replay_logs(
    paths: Sequence[Path],
    options: ReplayOptions,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> list[ReplayReport]:
    """Replay every log in ``paths``. Raises UsageError for a log that cannot be replayed, and if
    none has an episode."""
    files = logs.find_logs(paths)
    episodes = {file: list(_episodes(file)) for file in files}
    total = sum(len(e) for e in episodes.values())
    if not total:
        raise UsageError(f"{', '.join(map(str, paths))}: no episode in it, so nothing to replay")
    done = 0
    reports = []
    for file in files:
        report = ReplayReport(file.name)
        with RecordedEnvironments(options) as envs, ThreadPoolExecutor(options.parallel) as pool:
            replayed = partial(_replay_episode, envs)
            for trajectory, checks in pool.map(replayed, *zip(*episodes[file], strict=True)):
                report.episodes += 1
                report.turns += trajectory.turns
                report.native = is_native(trajectory)
                report.deterministic = bool(trajectory.run.get("determinism"))
                report.recorded_success += trajectory.success
                best = max((c.replayed_reward or 0.0 for c in checks), default=0.0)
                report.replayed_success += best >= SUCCESS_THRESHOLD
                report.steps += checks
                done += 1
                progress(done, total)
        report.notes = (
            replay_rules_for(episodes[file][0][0]).notes(report.steps) if report.steps else []
        )
        reports.append(report)
    return reports


def _episodes(file: Path) -> Iterator[tuple[Trajectory, list[bool | None]]]:
    """Yield the episodes of a file with what it says about the stability of each step."""
    trajectories = logs.load_log(file)
    if stability := logs.load_stability(file):
        yield from zip(trajectories, stability, strict=True)
    else:
        for trajectory in trajectories:
            yield trajectory, [None] * len(trajectory.steps)


def _replay_episode(
    envs: RecordedEnvironments, trajectory: Trajectory, stability: list[bool | None]
) -> tuple[Trajectory, list[StepComparison]]:
    rules = replay_rules_for(trajectory)
    with envs.borrow(trajectory) as env:
        try:
            reset_to_task(env, trajectory)
        except DataError as e:
            if is_native(trajectory):
                raise
            return trajectory, _unplayable_steps(trajectory, str(e))
        if is_native(trajectory):
            return trajectory, _replay_native(trajectory, env, rules)
        checks: list[StepComparison] = []
        for turn, (raw, stable) in enumerate(zip(trajectory.steps, stability, strict=True)):
            if not raw.executed:
                continue
            step = rules.executed_step(trajectory, raw)
            observation, score = rules.play_and_score(env, step)
            observation = rules.logged_observation(trajectory, step, observation)
            checks.append(
                StepComparison(
                    trajectory.task,
                    turn,
                    step.action,
                    step.observation,
                    observation,
                    step.score_value,
                    score.value if score else None,
                    rules.stable(trajectory, turn) if stable is None else stable,
                    equivalent=rules.same(step.observation, observation),
                    parts=score.parts if score else {},
                )
            )
    return trajectory, [
        _with_cause(check, rules) for check in rules.review_checks(trajectory, checks)
    ]


def _unplayable_steps(trajectory: Trajectory, why: str) -> list[StepComparison]:
    """Return the steps of an episode that cannot begin, for example without its files."""
    return [
        StepComparison(
            trajectory.task,
            turn,
            step.action,
            step.observation,
            "",
            step.score_value,
            None,
            False,
            cause=f"cannot be played: {why.partition(':')[0]}",
        )
        for turn, step in enumerate(trajectory.steps)
        if step.executed
    ]


def _replay_native(
    trajectory: Trajectory, env: InterCodeEnv, rules: ReplayRules
) -> list[StepComparison]:
    """Compare the steps of an episode that this package recorded, up to the first that differs.

    The steps after it belong to another state, so only their rewards are compared.
    """
    checks: list[StepComparison] = []
    for turn in range(trajectory.turns):
        check = compare_step(trajectory, turn, repeat_step(env, trajectory, turn))
        if not is_compared(trajectory, turn):
            continue
        if check.differs_in == ["reward"]:
            check = replace(check, cause=_scoring_change(trajectory, env))
        checks.append(_with_cause(check, rules))
        if not check.same:
            later = range(turn + 1, trajectory.turns)
            checks[-1] = _with_later_steps(checks[-1], trajectory, env, later)
            break
    return checks


def _scoring_change(trajectory: Trajectory, env: InterCodeEnv) -> str:
    """Return which versions of the scoring an episode had and has now; empty if it is the same."""
    recorded, now = trajectory.run.get("scoring"), env.result_metadata()["scoring"]
    return f"scored by {recorded}, now by {now}" if recorded and recorded != now else ""


def _with_later_steps(
    check: StepComparison, trajectory: Trajectory, env: InterCodeEnv, turns: Sequence[int]
) -> StepComparison:
    """Execute the steps of these turns, and record whether their rewards are equal."""
    try:
        same = all(
            compare_step(trajectory, turn, repeat_step(env, trajectory, turn)).same_reward
            for turn in turns
        )
    except EnvironmentStateError:
        same, ended = False, True
    else:
        ended = False
    later = sum(is_compared(trajectory, turn) for turn in turns)
    return replace(check, same_later_rewards=same, later_steps=later, ended_early=ended)


def _with_cause(check: StepComparison, rules: ReplayRules) -> StepComparison:
    known = check.same or check.cause
    return check if known else replace(check, cause=rules.cause(check))


def compare_step(trajectory: Trajectory, turn: int, repeated: Step) -> StepComparison:
    """Compare a step that this package recorded with its repetition."""
    step = trajectory.steps[turn]
    return StepComparison(
        trajectory.task,
        turn,
        step.action,
        step.observation,
        repeated.observation,
        step.score_value,
        repeated.score_value,
        None,
        episode=trajectory.id,
        native=True,
        recorded_hashes=step.hashes,
        replayed_hashes=repeated.hashes,
    )
