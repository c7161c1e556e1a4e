"""Shared parts of the authors' environments: their constructor, ``reset``, ``step`` and log
files."""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from intercode.core.errors import EnvironmentStateError, UsageError
from intercode.core.types import Dataset, ExecResult, Score, State, Task
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.rewards import REWARDS, RewardFunction
from intercode.paper.envs.data import (
    IntercodeDataLoader,
    Record,
    check_preprocess,
    interactive_dataset,
    load_data_file,
    without_setup,
)
from intercode_sandbox.registry import unknown_name_error


def save_submission(env: IntercodeEnv, folder: str) -> Path:
    """Write actions, observations and the reward to ``folder/logs_NAME/log_TIME.json``. A number is
    appended if the file exists."""
    row: dict[str, Any] = {"environment": env.name}
    if not env.tool_mode:
        row |= {"query_idx": env.query_idx, "query": env.query, "gold": env.gold}
        row["reward"] = env.reward
    row["trajectory"] = [
        {"action": a, "observation": _observation_text(o)} for a, o in env.trajectory
    ]
    row["info"] = env.info
    directory = Path(folder) / f"logs_{env.name}"
    directory.mkdir(parents=True, exist_ok=True)
    stamp, number = datetime.now().strftime("%Y%m%d%H%M%S"), 0
    text = json.dumps(row, indent=2, default=str)
    while True:
        path = directory / f"log_{stamp}{f'_{number}' if number else ''}.json"
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            return path
        except FileExistsError:
            number += 1


def _observation_text(observation: Any) -> str:
    if isinstance(observation, list):
        return "".join(map(str, observation))
    return str(observation)


AGENT_OBS, EVAL_OBS, CORRUPT_GOLD = "agent_obs", "eval_obs", "corrupt_gold"
ACTION_EXEC, REWARD = "action_executed", "reward"
"""Keys of ``info``, as in the authors' package."""

_DOCKER_ARGUMENTS = ("command", "environment", "ports", "volumes")
"""Arguments that the authors' code passes to Docker when it starts its container."""
_ENV_SETTINGS = (
    "image",
    "backend",
    "network",
    "timeout",
    "engine",
    "dsn",
    "interpreter",
    "recycle",
)

logger = logging.getLogger("intercode.paper.envs")


class ScorableEnv(InterCodeEnv):
    """An environment that can be scored after any turn, with or without an answer, and
    continues."""

    def score_with_answer(self, answer: str | None) -> Score:
        """Return the score of the present state as if ``answer`` had been submitted."""
        self.episode.answer = answer
        try:
            return self.score()
        finally:
            self.episode.answer = None


class RecordingReward:
    """A reward function that records the states that it was called with."""

    def __init__(self, name: str) -> None:
        self.__qualname__ = name
        self._reward: RewardFunction = REWARDS.load(name)
        self.agent, self.gold = State(), State()

    def __call__(self, task: Task, agent: State, gold: State) -> Score:
        self.agent, self.gold = agent, gold
        return self._reward(task, agent, gold)


class IntercodeEnv(ABC):
    """An environment of the authors' package, on top of one of ours, which is ``env``.

    Args:
        image_name: The name of the authors' image, or one of our image specifications.
        data_path: A file of rows with ``query`` and ``gold``, as for ``IntercodeDataLoader``; None:
            nothing is scored.
        preprocess: A function from a row to commands that run when its episode begins.
        traj_dir: A directory to which each submission is written; None: nothing is.
        verbose: Whether tasks and actions are logged.
        profile: The profile of our environment.
        **settings: Those of our environment: ``image``, ``backend``, ``network``, ``timeout``,
            ``engine``, ``dsn``, ``interpreter`` and ``recycle``.

    Raises:
        UsageError: An argument is unknown, or only a Docker container could have it; or the data
            file or the image does not exist.

    >>> import json
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from intercode.paper.envs import ACTION_EXEC, AGENT_OBS, CORRUPT_GOLD, EVAL_OBS, REWARD
    >>> from intercode.paper.envs import BashEnv
    >>> with TemporaryDirectory() as directory:
    ...     file = Path(directory, "rows.json")
    ...     _ = file.write_text(json.dumps([{"query": "Print 1.", "gold": "echo 1"}]))
    ...     env = BashEnv("host", data_path=str(file))
    ...     _ = env.reset(0), env.step("echo 1")
    ...     observation, reward, done, info = env.step("submit")
    ...     env.close()
    >>> info[AGENT_OBS] == info[EVAL_OBS], info[CORRUPT_GOLD], info[ACTION_EXEC]
    (True, False, True)
    >>> reward, info[REWARD]["file_diff"]
    (1.0, 0.33)
    """

    name: ClassVar[str]
    environment: ClassVar[str]
    images: ClassVar[Mapping[str, str]] = {}
    env_class: ClassVar[type[ScorableEnv]]

    def __init__(
        self,
        image_name: str,
        *,
        data_path: str | None = None,
        preprocess: Any = None,
        traj_dir: str | None = None,
        verbose: bool = False,
        profile: str = "original",
        **settings: Any,
    ) -> None:
        _check_settings(settings)
        self.logger, self.image_name, self.data_path = logger, image_name, data_path
        self.preprocess, self.traj_dir = check_preprocess(preprocess), traj_dir
        logger.disabled = not verbose
        self.tool_mode = data_path is None
        dataset = interactive_dataset(self.environment)
        if data_path is not None:
            self.data_loader = IntercodeDataLoader(data_path)
            dataset = load_data_file(data_path, self.environment, self.data_loader)
        self.recorder = RecordingReward(f"{self.environment}-{profile}")
        self.env = self._make_env(without_setup(dataset), dict(settings), profile)
        self.info: dict[str, Any] = {}
        self.trajectory: list[tuple[str, Any]] = []
        self.observation: Any = None
        self.reward: float | None = None
        self.record: Record = {}
        self.query_idx, self.query, self.gold = 0, "", "N/A"

    def _make_env(self, dataset: Dataset, settings: dict[str, Any], profile: str) -> ScorableEnv:
        """Return our environment that does the work."""
        if "image" not in settings:
            settings["image"] = self._resolve_image(dataset)
        return self.env_class(dataset, profile=profile, reward=self.recorder, **settings)

    def _resolve_image(self, dataset: Dataset) -> str:
        """Return our image for the authors' image name; for an unknown name, the dataset's
        image."""
        if self.image_name in self.images:
            return self.images[self.image_name]
        if self.image_name == "host" or ":" in self.image_name:
            return self.image_name
        if dataset.comparable:  # a published dataset, and a name of the caller's own
            return dataset.image
        raise UsageError(
            f"{self.image_name!r} is neither an image of the authors ({', '.join(self.images)}) "
            "nor an image specification: use those, or give image='docker-archive:FILE'"
        )

    # ---------------------------------------------------------- the authors' interface
    def reset(self, index: int | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin the episode of a row.

        Args:
            index: The position of the row; None: a random one.

        Returns:
            The observation, usually the query, and ``info``.

        Raises:
            UsageError: There is no such row.
            RuntimeError: A command of ``preprocess`` failed.
            InfrastructureError: The sandbox cannot be opened.
        """
        self.info, self.trajectory, self.observation = {}, [], None
        if not self.tool_mode:
            count = len(self.data_loader)
            self.query_idx = int(np.random.randint(0, count)) if index is None else index
            self.record = self.data_loader.get(self.query_idx)
            self.query = self.observation = self.record["query"]
            self.gold, self.reward = self.record.get("gold", "N/A"), None
        self.reset_container()
        for command in self.preprocess(self.record) if self.preprocess else ():
            self.exec_action(command)
            if not self.info[ACTION_EXEC]:
                raise RuntimeError(f"the preprocess command {command!r} failed: {self.observation}")
        logger.info("task %s: %s", self.query_idx, self.query)
        return self.observation, self.info

    def step(self, action: str) -> tuple[Any, float, bool, dict[str, Any]]:
        """Execute an action.

        Args:
            action: Code. ``submit`` scores the state, which may still be changed and scored again;
                ``skip`` gives up.

        Returns:
            The observation, the reward, whether the episode is over, and ``info``.

        Raises:
            InfrastructureError: The sandbox failed.
        """
        if action == "skip":
            return "skipped", 0, True, {}
        if action.startswith("submit"):
            self.trajectory.append((action, None))
            reward, info = (0.0, dict[str, Any]()) if self.tool_mode else self.get_reward()
            if self.traj_dir is not None:
                self.save_trajectory()
            info[ACTION_EXEC] = True
            return self.observation, reward, True, info
        self.exec_action(action)
        logger.info("%s\n%s", action, self.observation)
        self.trajectory.append((action, self.observation))
        return self.observation, 0, False, self.info

    def exec_action(self, action: str) -> None:
        """Execute code: sets ``observation`` and ``info["action_executed"]``.

        Args:
            action: The code.

        Raises:
            InfrastructureError: The sandbox failed.
        """
        result = self.env.execute(action)
        self.observation = self._convert_observation(
            result.observation, self.env.episode.last_result
        )
        self.info[ACTION_EXEC] = self._execution_flag(bool(result.valid))

    def get_reward(self) -> tuple[float, dict[str, Any]]:
        """Return the reward of the present state and its components.

        Raises:
            InfrastructureError: The sandbox failed.
        """
        score = self.env.score_with_answer(self._submitted_answer())
        self.reward, info = score.value, self._submission_info(score)
        self.info = info
        return score.value, info

    def reset_container(self) -> None:
        """Begin with a fresh sandbox."""
        self.env.reset(options={"task": self.query_idx})

    def save_trajectory(self) -> None:
        """Write the episode so far to ``traj_dir``.

        Raises:
            EnvironmentStateError: There is no ``traj_dir``.
            OSError: The directory cannot be written.
        """
        if self.traj_dir is None:
            raise EnvironmentStateError("trajectories can only be saved with a traj_dir")
        save_submission(self, self.traj_dir)

    def get_available_actions(self) -> list[str] | None:
        """Return None: any code may be written."""
        return None

    def close(self) -> None:
        """End the episode and free its sandbox."""
        self.env.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------ for the subclass
    def _convert_observation(self, output: str, result: ExecResult | None) -> Any:  # noqa: ARG002
        """Return an observation in the authors' type."""
        return output

    def _execution_flag(self, valid: bool) -> bool:
        """Return the authors' ``action_executed`` of an action."""
        return valid

    def _submitted_answer(self) -> str | None:
        """Return the answer of the last ``submit``."""
        return None

    @abstractmethod
    def _submission_info(self, score: Score) -> dict[str, Any]:
        """Return ``info`` of a submission."""


def _check_settings(settings: Mapping[str, Any]) -> None:
    for key in settings:
        if key in _DOCKER_ARGUMENTS:
            raise UsageError(
                f"{key!r} is an argument for Docker, which is not used here: put files into an "
                "image (image='dockerfile:DIR'), set variables in preprocess, and use "
                "network='host' for the machine's own network"
            )
        if key not in _ENV_SETTINGS:
            known = ["data_path", "preprocess", "traj_dir", "verbose", "profile", *_ENV_SETTINGS]
            raise unknown_name_error("argument", key, known)
