"""Makes the environment in which an episode was recorded, and executes recorded steps in it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

from intercode.agents import PROGRAM_PREFIXES
from intercode.core.config import join_settings
from intercode.core.errors import DataError, UnknownNameError, UsageError
from intercode.core.logs.formats import is_native
from intercode.core.types import Network, Step, Trajectory
from intercode.datasets.load_cache import load_cached
from intercode.environments import ENVIRONMENTS, check_setting_names
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.pool.lending import EnvironmentPool
from intercode.environments.base.replay.rules import replay_rules_for
from intercode.environments.base.tools.servers import parse_servers
from intercode.environments.recorded_descriptions import recorded_environment


@dataclass(frozen=True)
class ReplayOptions:
    """Where and how to execute recorded episodes.

    None stands for the recorded value, or the default if none is recorded. The tables among
    ``env_options`` are joined with those recorded (see ``join_settings``).
    """

    profile: str | None = None
    image: str | None = None
    network: Network | None = None
    dataset: str | None = None
    timeout: float | None = None
    parallel: int = 2
    env_options: Mapping[str, Any] = field(default_factory=dict)


def open_recorded_env(trajectory: Trajectory, options: ReplayOptions) -> InterCodeEnv:
    """Make an environment like the one in which an episode was recorded.

    Raises UsageError for a record that does not name its dataset and for one of a program, whose
    actions are only seen; SandboxUnavailableError if this machine cannot provide its determinism.
    """
    agent = str(trajectory.run.get("agent", ""))
    if agent.startswith(PROGRAM_PREFIXES):
        raise UsageError(
            f"the actions of {agent} ran inside the program, so they cannot be executed again: "
            "play the task anew, with `intercode eval` and another --out"
        )
    return make_environment(*environment_settings(trajectory, options))


def make_environment(environment: str, dataset: str, settings: Mapping[str, Any]) -> InterCodeEnv:
    """Make an environment from the result of ``environment_settings``.

    Raises UnknownNameError for a setting that it does not have.
    """
    check_setting_names(environment, settings)
    env: InterCodeEnv = ENVIRONMENTS.load(environment)(
        load_cached(dataset, environment), **settings
    )
    return env


def environment_settings(
    trajectory: Trajectory, options: ReplayOptions
) -> tuple[str, str, dict[str, Any]]:
    """Return the environment, the dataset and the settings with which an episode was recorded. If
    the record names no environment, it is that of the dataset.

    Raises UsageError for a record that does not name its dataset.
    """
    run = trajectory.run
    rules = replay_rules_for(trajectory)
    name = rules.dataset(options.dataset or str(run.get("dataset") or ""))
    if not name:
        raise UsageError(f"the record of {trajectory.task} names no dataset: give --dataset")
    profile = options.profile or run.get("profile") or "standard"
    native = is_native(trajectory)
    reward = run.get("reward") if native and profile == run.get("profile") else None
    settings: dict[str, Any] = {"reward": reward, **(run.get("env_options") or {})}
    if not native:
        settings |= rules.settings(trajectory)
    common = {
        "profile": profile,
        "image": options.image or run.get("image"),
        "network": options.network or (native and run.get("network")) or "none",
        "timeout": options.timeout or (native and run.get("timeout")) or 10.0,
        "deterministic": run.get("determinism") or False,
        "hashes": any(step.hashes for step in trajectory.steps),
        "policy": _recorded_policy(run.get("policy")) if native else None,
    }
    if native and run.get("limits"):
        settings["limits"] = run["limits"]
    settings["mcp"] = repeatable_servers(run.get("mcp")) if native else None
    environment = recorded_environment(run) or load_cached(name, "bash").environment
    return environment, name, join_settings({**common, **settings}, options.env_options)


def _recorded_policy(policy: object) -> object:
    """Return the policy of a record, without ``unparsed`` where that is the default for its rules:
    with further rules there may be another default."""
    if not isinstance(policy, Mapping):
        return policy
    default = "refuse" if policy.get("allow") else "allow"
    return {k: v for k, v in policy.items() if (k, v) != ("unparsed", default)}


def repeatable_servers(recorded: object) -> dict[str, str] | None:
    """Return the MCP servers of a recorded run, for a replay.

    Raises UsageError if one ran outside of the sandbox: what it answered depends on more than the
    episode, and a record must not start programs there.
    """
    servers = parse_servers(recorded)
    if outside := [server.name for server in servers if server.outside]:
        raise UsageError(
            f"the run called MCP servers outside of the sandbox ({', '.join(outside)}), so its "
            "episodes cannot be executed again"
        )
    return {server.name: server.setting for server in servers} or None


def reset_to_task(env: InterCodeEnv, episode: Trajectory) -> None:
    """Begin the task of a recorded episode.

    The task is found by its id, in the authors' logs by its position. Raises DataError if the
    dataset has no such task, or asks something else in it.
    """
    native = is_native(episode)
    try:
        env.reset(seed=episode.seed, options={"task": episode.task if native else episode.index})
    except UnknownNameError as e:
        raise DataError(f"{env.dataset.name} has no task {episode.task!r}, which was played") from e
    if native and env.task.query != episode.query:
        raise DataError(
            f"{episode.task} of {env.dataset.name} asks {env.task.query!r}, but the episode was "
            f"played for {episode.query!r}: give the recorded dataset with --dataset"
        )


class RecordedEnvironments:
    """Lends the environments of recorded episodes. May be used by several threads.

    An environment is used for several episodes if ``ReplayRules.reusable`` allows it.
    """

    def __init__(self, options: ReplayOptions) -> None:
        self._options, self._pool = options, EnvironmentPool[InterCodeEnv]()

    def borrow(self, trajectory: Trajectory) -> AbstractContextManager[InterCodeEnv]:
        """Lend the environment of an episode for a block. Raises as ``open_recorded_env`` does."""
        arguments = environment_settings(trajectory, self._options)
        make = partial(make_environment, *arguments)
        if not replay_rules_for(trajectory).reusable:
            return make()
        return self._pool.borrow(make, repr(arguments))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()


def repeat_step(env: InterCodeEnv, episode: Trajectory, turn: int) -> Step:
    """Execute again a step that this package recorded. Where its agent began the task again, so
    does this.

    The step is scored if the record has a score. A turn without code is only scored,
    unless it is one that records 0 without a look at the state.
    """
    step = episode.steps[turn]
    if turn in episode.restarts:
        reset_to_task(env, episode)
    if not step.executed:
        is_scored = is_compared(episode, turn) and step.score is not None
        return replace(step, score=env.score()) if is_scored else step
    repeated = env.execute(step.action)
    if repeated.score is None and step.score is not None:
        return replace(repeated, score=env.score())
    return repeated


def is_compared(episode: Trajectory, turn: int) -> bool:
    """Return whether the repetition of a step tells something: of a turn without code if it claims
    a reward, or is the last before a restart or the end."""
    step = episode.steps[turn]
    is_last = turn + 1 in (*episode.restarts, episode.turns)
    return step.executed or bool(step.score_value) or is_last
