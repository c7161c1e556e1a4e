"""InterCode in SkyRL-gym: ``BaseTextEnv`` over any of our environments.

Register it where SkyRL creates its environments (inside the Ray entry point)::

    import skyrl_gym
    skyrl_gym.register("intercode", entry_point="intercode.integrations.skyrl:InterCodeTextEnv")

``env_config`` holds the arguments of `intercode.make` (``environment``, ``dataset``,
``reward_mode``, …), and ``allow_exploitable: true`` for a profile with exploits. A row of the data
names its ``task``, and may hold ``max_turns``, ``seed`` and ``prefix``: actions after which the
episode begins, as a fork of the state that another episode of its group has reached. Needs the
extra ``skyrl``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

try:
    from skyrl_gym.envs.base_text_env import BaseTextEnv
except ModuleNotFoundError as e:
    raise ImportError("this needs SkyRL-gym: pip install 'intercode-gym[skyrl]'") from e

import intercode
from intercode.core.errors import InfrastructureError, UsageError
from intercode.core.finalizers import close_when_collected
from intercode.core.types import EMPTY_MAPPING
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.options import check_training
from intercode.integrations.text_episode import MAX_TURNS, TextEpisode

Message = dict[str, str]


class InterCodeTextEnv(BaseTextEnv):
    """One episode of SkyRL. An action is a model's whole answer; the code in it is run, and its
    output is the next message.

    If the sandbox fails, the episode ends with rewards that sum to 0, ``error`` in its metadata and
    the metric ``lost``: a reward of SkyRL is a number, which cannot say "leave this out". SkyRL
    does not promise to close environments: a sandbox is freed when its environment is collected.

    Args:
        env_config: The arguments of ``intercode.make``, and ``allow_exploitable``.
        extras: A row of the data, with ``task`` and optionally ``max_turns``, ``seed`` and
            ``prefix``.

    Raises:
        UsageError: An argument is no mapping, the row has no ``task``, a setting does not exist or
            has a wrong value, or the profile has exploits and ``allow_exploitable`` is not true.
    """

    def __init__(
        self,
        env_config: Mapping[str, Any] = EMPTY_MAPPING,
        extras: Mapping[str, Any] = EMPTY_MAPPING,
    ) -> None:
        super().__init__()
        for name, given in (("env_config", env_config), ("extras", extras)):
            if not isinstance(given, Mapping):
                raise UsageError(f"{name} is a mapping, not {given!r:.80}")
        settings = {str(k): v for k, v in env_config.items()}
        name = settings.pop("environment", "bash")
        check_training(settings, settings.pop("allow_exploitable", False))
        if "task" not in extras:
            raise UsageError(f"a row needs the column 'task'; it has {', '.join(extras) or 'none'}")
        self.max_turns = _turn_limit(extras.get("max_turns", settings.pop("max_turns", MAX_TURNS)))
        self._env: InterCodeEnv = intercode.make(
            name, settings.pop("dataset", "starter"), max_turns=self.max_turns, **settings
        )
        self._episode = TextEpisode(self._env)
        self._begin = extras["task"], extras.get("seed"), extras.get("prefix")
        self._prefix_reward = 0.0  # of the turns of the prefix, which is not paid
        self._lost = False
        close_when_collected(self, self._env.close)

    def init(self, prompt: Sequence[Message]) -> tuple[list[Message], dict[str, Any]]:
        """Begin the episode. The turns of the prefix count.

        Args:
            prompt: The messages of the row.

        Returns:
            The messages, and ``task`` and ``index`` of the task. The query is added with what is
            judged, unless the prompt holds the query; so is what the prefix printed.

        Raises:
            UsageError: The prompt is no list of messages, there is no such task, or the prefix ends
                the episode.
            InfrastructureError: The sandbox cannot be opened.
        """
        if isinstance(prompt, str) or not all(isinstance(m, Mapping) for m in prompt or ()):
            raise UsageError(f"a prompt is a list of messages, not {prompt!r:.80}")
        first, *rest = self._episode.begin(*self._begin)
        self.turns, self._prefix_reward = (
            self._episode.turns,
            self._env.episode.reward_sum,
        )
        query, info = self._env.brief.query, {"task": self._env.task.id, "index": self._env.index}
        messages = [dict(message) for message in prompt or ()]
        asked = any(query in str(message.get("content")) for message in messages)
        added = rest if asked else [first, *rest]
        return [*messages, *({"role": "user", "content": text} for text in added)], info

    def step(self, action: str) -> dict[str, Any]:
        """Run the code of an answer.

        Args:
            action: The answer of the model. One without code is a turn, too.

        Returns:
            ``observations``, empty at the end; ``reward``; ``done``; and ``metadata``, with
            ``error`` if the sandbox failed.

        Raises:
            UsageError: The episode is over, or the answer is no text.
        """
        try:
            reply = self._episode.answer(action)
            message, reward, info = reply.message, reply.reward, reply.info
        except InfrastructureError as e:
            self._lost, self._episode.score = True, 0.0
            message, reward = "", self._prefix_reward - self._env.episode.reward_sum
            info = {"error": f"{type(e).__name__}: {e}"}
        self.turns, done = self._episode.turns, self._episode.done
        if done:
            self.close()
        observations = [] if done else [{"role": "user", "content": message}]
        return {"observations": observations, "reward": reward, "done": done, "metadata": info}

    def get_metrics(self) -> dict[str, float]:
        """Return metrics of the episode.

        Returns:
            ``score``; ``success``, 1 for a score of 1; ``turns``; and ``lost``, 1 if the sandbox
            failed.
        """
        score = self._episode.score
        return {
            "score": score,
            "success": float(score >= 1 - 1e-9),
            "turns": float(self.turns),
            "lost": float(self._lost),
        }

    def close(self) -> None:
        """End the episode and free its sandbox. May be called again."""
        self._env.close()


def _turn_limit(value: object) -> int:
    """Return the turns of an episode, which a column of the data may hold as a text."""
    try:
        return int(value)  # type: ignore[call-overload,no-any-return]
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"max_turns is a number of at least 1, not {value!r:.80}") from None
