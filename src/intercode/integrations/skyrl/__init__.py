"""InterCode in SkyRL-gym: ``BaseTextEnv`` over any of our environments.

Register it where SkyRL creates its environments (inside the Ray entry point)::

    import skyrl_gym
    skyrl_gym.register("intercode", entry_point="intercode.integrations.skyrl:InterCodeTextEnv")

``env_config`` holds the arguments of `intercode.make` (``environment``, ``dataset``,
``reward_mode``, …), and ``allow_exploitable: true`` for the profile ``original``. A row of the data
names its ``task``, and may hold ``max_turns``, ``seed`` and ``prefix``: actions after which the
episode begins, as a fork of the state that another episode of its group has reached. Needs the
extra ``skyrl``.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from skyrl_gym.envs.base_text_env import BaseTextEnv

import intercode
from intercode.agents.base import Feedback
from intercode.agents.parsing import language_of, parse_answer
from intercode.agents.prompt import format_observation
from intercode.core.errors import InfrastructureError, UsageError
from intercode.core.types import EMPTY_MAPPING
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.options import check_training
from intercode.integrations.prefixes import SHARED, describe_prefix

_OBSERVATION_LIMIT = 4000  # characters of an observation that a model is sent
_MAX_TURNS = 10
_NO_CODE = "No code was found in your answer. Write it in one fenced block."
Message = dict[str, str]


class InterCodeTextEnv(BaseTextEnv):
    """One episode. An action is a model's whole answer; the code in it is run, and its output is
    the next message.

    If the sandbox fails, the episode ends with rewards that sum to 0, ``error`` in its metadata and
    the metric ``lost``: a reward of SkyRL is a number, which cannot say "leave this out". SkyRL
    does not promise to close environments: a sandbox is freed when its environment is collected.
    """

    def __init__(
        self,
        env_config: Mapping[str, Any] = EMPTY_MAPPING,
        extras: Mapping[str, Any] = EMPTY_MAPPING,
    ) -> None:
        super().__init__()
        settings = {str(k): v for k, v in env_config.items()}
        name = settings.pop("environment", "bash")
        check_training(settings, settings.pop("allow_exploitable", False))
        if "task" not in extras:
            raise UsageError(f"a row needs the column 'task'; it has {', '.join(extras) or 'none'}")
        self.max_turns = int(extras.get("max_turns", settings.pop("max_turns", _MAX_TURNS)))
        self._env: InterCodeEnv = intercode.make(
            name, settings.pop("dataset", "starter"), max_turns=self.max_turns, **settings
        )
        self._task, self._seed = extras["task"], extras.get("seed")
        self._prefix = extras.get("prefix")
        self._prefix_reward = 0.0  # of the turns of the prefix, which is not paid
        self._language = language_of(name)
        self._done, self._lost, self._score = False, False, 0.0
        weakref.finalize(self, self._env.close)

    def init(self, prompt: Sequence[Message]) -> tuple[list[Message], dict[str, Any]]:
        """Begin the episode. The query is added unless the prompt holds it, and what the prefix
        printed. The turns of the prefix count."""
        turns = SHARED.begin(self._env, self._task, self._seed, self._prefix)
        self.turns, self._prefix_reward = len(turns), self._env.reward_sum
        query, info = self._env.brief.query, {"task": self._env.task.id, "index": self._env.index}
        messages = [dict(message) for message in prompt]
        if not any(query in message.get("content", "") for message in messages):
            messages.append({"role": "user", "content": query})
        if done := describe_prefix(turns, _OBSERVATION_LIMIT):
            messages.append({"role": "user", "content": done})
        return messages, info

    def step(self, action: str) -> dict[str, Any]:
        """Run the code of an answer."""
        if self._done:
            raise UsageError("the episode is over: create another environment for the next one")
        self.turns += 1
        code = parse_answer(action, self._language).code
        if code is None:
            self._done = self.turns >= self.max_turns
            return self._step_result(_NO_CODE, 0.0, {"valid": False})
        try:
            result = self._env.execute(code)
            self._done = result.done or self.turns >= self.max_turns
            reward, info = result.reward, result.info
            if self._done and result.score is None:  # at the turn limit the present state is scored
                reward = info["score"] = self._env.score().value
        except InfrastructureError as e:
            self._done, self._lost, self._score = True, True, 0.0
            taken_back = self._prefix_reward - self._env.reward_sum
            return self._step_result("", taken_back, {"error": f"{type(e).__name__}: {e}"})
        self._score = float(info.get("score", reward))
        text, _ = format_observation(
            Feedback(result.observation, result.valid, result.timed_out), _OBSERVATION_LIMIT
        )
        return self._step_result(text, reward, info)

    def _step_result(self, text: str, reward: float, info: dict[str, Any]) -> dict[str, Any]:
        observations = [] if self._done else [{"role": "user", "content": text}]
        if self._done:
            self.close()
        return {
            "observations": observations, "reward": reward, "done": self._done, "metadata": info,
        }  # fmt: skip

    def get_metrics(self) -> dict[str, float]:
        """Return the episode's score, whether it is 1, the number of turns, and whether its sandbox
        failed."""
        success = float(self._score >= 1 - 1e-9)
        return {
            "score": self._score, "success": success, "turns": float(self.turns),
            "lost": float(self._lost),
        }  # fmt: skip

    def close(self) -> None:
        """End the episode and free its sandbox. May be called again."""
        self._env.close()
