"""Re-executes recorded episodes and compares every observation and reward with the record."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from intercode import logs
from intercode.envs import ENVIRONMENTS
from intercode.envs.base import SUBMIT, InterCodeEnv
from intercode.errors import UsageError
from intercode.runner.causes import cause
from intercode.types import SUCCESS, Network, Profile, Step, Trajectory

TOLERANCE = 0.01 + 1e-9
"""Rewards that differ by at most this count as equal: the authors' are sums of rounded parts."""
REACT_LOGGED = 350
"""Characters of an observation that the authors' ReAct logs keep."""
_EXECUTE = re.compile(r"execute\[(.*)\]", re.DOTALL)
_DATASET = re.compile(r"nl2bash_(fs_\d)")


@dataclass(frozen=True)
class Options:
    """Where and how to re-execute; None takes what the record says, else the default."""

    profile: Profile | None = None
    image: str | None = None
    network: Network = "none"
    dataset: str | None = None
    timeout: float = 10.0
    parallel: int = 2


@dataclass(frozen=True)
class StepCheck:
    """One re-executed step beside its record. A reward of None was not recorded."""

    task: str
    turn: int
    action: str
    recorded: str
    replayed: str
    recorded_reward: float | None
    replayed_reward: float | None
    stable: bool | None
    cause: str = ""

    @property
    def same_observation(self) -> bool:
        return self.recorded == self.replayed

    @property
    def same_reward(self) -> bool:
        a, b = self.recorded_reward, self.replayed_reward
        return a is None or (b is not None and abs(a - b) <= TOLERANCE)


@dataclass
class FileReport:
    """What the replay of one file showed."""

    file: str
    episodes: int = 0
    recorded_success: int = 0
    replayed_success: int = 0
    steps: list[StepCheck] = field(default_factory=list)

    def shares(self, stable_only: bool = False) -> dict[str, float | int | None]:
        """Steps, and the shares with equal observation and equal reward (None: no such step)."""
        steps = [s for s in self.steps if s.stable or not stable_only]
        scored = [s for s in steps if s.recorded_reward is not None]
        return {
            "steps": len(steps),
            "observations": _share([s.same_observation for s in steps]),
            "rewards": _share([s.same_reward for s in scored]),
        }

    @property
    def mismatches(self) -> list[StepCheck]:
        return [s for s in self.steps if not (s.same_observation and s.same_reward)]


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def run(
    paths: Sequence[Path],
    options: Options,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> list[FileReport]:
    """Replay every log among ``paths``. Raises UsageError for one that cannot be replayed."""
    files = logs.discover(paths)
    episodes = {file: list(_episodes(file)) for file in files}
    total = sum(len(e) for e in episodes.values())
    done = 0
    reports = []
    for file in files:
        report = FileReport(file.name)
        with ThreadPoolExecutor(max_workers=options.parallel) as pool:
            for trajectory, checks in pool.map(
                lambda e: _replay(e[0], e[1], options), episodes[file]
            ):
                report.episodes += 1
                report.recorded_success += trajectory.success
                best = max((c.replayed_reward or 0.0 for c in checks), default=0.0)
                report.replayed_success += best >= SUCCESS
                report.steps += checks
                done += 1
                progress(done, total)
        reports.append(report)
    return reports


def _episodes(file: Path) -> Iterator[tuple[Trajectory, list[dict[str, Any]]]]:
    """Episodes with what a reference file says of each step (an empty dict where nothing)."""
    trajectories = logs.load(file)
    if trajectories and trajectories[0].run.get("source") == "reference":
        yield from zip(trajectories, logs.load_reference(file), strict=True)
    else:
        for trajectory in trajectories:
            yield trajectory, [{} for _ in trajectory.steps]


def _replay(
    trajectory: Trajectory, notes: list[dict[str, Any]], options: Options
) -> tuple[Trajectory, list[StepCheck]]:
    with open_env(trajectory, options) as env:
        env.reset(options={"task": trajectory.index})
        checks: list[StepCheck] = []
        for turn, (raw, note) in enumerate(zip(trajectory.steps, notes, strict=True)):
            if not raw.executed:
                continue
            step = _as_executed(trajectory, raw)
            observation, reward = _again(env, step)
            if len(step.observation) == REACT_LOGGED and trajectory.run.get("agent") == "react":
                observation = observation[:REACT_LOGGED]
            check = StepCheck(
                trajectory.task, turn, step.action, step.observation, observation,
                step.reward, reward, note.get("stable"),
            )  # fmt: skip
            if not (check.same_observation and check.same_reward):
                check = StepCheck(**{**vars(check), "cause": cause(check)})
            checks.append(check)
    return trajectory, checks


def _as_executed(trajectory: Trajectory, step: Step) -> Step:
    """A step as the environment saw it: the authors' ReAct logs keep the wrapping of the action,
    and a reward of 0 for steps that were never scored."""
    if trajectory.run.get("source") != "authors" or trajectory.run.get("agent") != "react":
        return step
    if wrapped := _EXECUTE.fullmatch(step.action):
        return replace(step, action=wrapped[1], reward=None)
    return step


def _again(env: InterCodeEnv, step: Step) -> tuple[str, float | None]:
    if step.action.split(None, 1)[:1] == [SUBMIT]:
        observation = env.last_observation
    else:
        observation, *_ = env.step(step.action)
    return observation, None if step.reward is None else env.score().value


def open_env(trajectory: Trajectory, options: Options) -> InterCodeEnv:
    """An environment like the one in which an episode was recorded.

    Raises UsageError for a record that does not tell its dataset.
    """
    facts = trajectory.run
    name = options.dataset or str(facts.get("dataset") or "")
    if found := _DATASET.search(name):
        name = f"nl2bash:{found[1]}"
    if not name:
        raise UsageError(f"the record of {trajectory.task} names no dataset: give --dataset")
    environment = str(facts.get("environment") or "bash").removeprefix("ic_")
    env: InterCodeEnv = ENVIRONMENTS.load(environment)(
        name,
        profile=options.profile or facts.get("profile") or "standard",
        image=options.image or facts.get("image"),
        network=options.network,
        timeout=options.timeout,
    )
    return env
