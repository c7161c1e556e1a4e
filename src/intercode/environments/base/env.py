"""The base of every environment: Gymnasium's contract, tasks, turns, submitting and scoring."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import gymnasium as gym

from intercode.core.errors import EnvironmentStateError, InfrastructureError
from intercode.core.types import Brief, Dataset, ExecResult, Network, Profile, Score, State, Task
from intercode.environments.base import options as choosing
from intercode.environments.base.policy import PolicyGuard, PolicySource
from intercode.environments.base.reward_mode import RewardMode, RewardShaper
from intercode.environments.base.rewards import RewardFunction
from intercode.environments.base.snapshots.snapshot import (
    Snapshot,
    repeat_factory,
    restore_into_new,
)
from intercode.environments.base.spaces import FreeText
from intercode.environments.base.step_info import step_info
from intercode.environments.base.task_instances import instantiate_task
from intercode.sandbox.determinism import Determinism
from intercode.sandbox.supervisor.clock import resolve_determinism

MAX_ACTION_LENGTH = 1 << 17
MAX_OBSERVATION_LENGTH = 1 << 21
SUBMIT = "submit"


class InterCodeEnv(gym.Env[str, str]):
    """Code is the action, execution feedback is the observation.

    ``dataset``: ``name[:subset]``, a file, or a Dataset. ``profile``: ``standard``, or ``original``
    for the authors' behaviour with its faults. ``image``, ``sandbox``, ``network``: where code runs
    (None: what the dataset is meant for; no network). ``timeout``: seconds per action.
    ``max_turns``: an episode is truncated after that many actions (None: never).
    ``reward``: a name, ``package.module:function`` or a function (task, agent, gold) -> Score.
    ``pay``: when that is paid: at the ``end``, after ``every-turn``, or as each turn's
    ``difference``. ``deterministic``: True, or settings of sandbox/determinism.py: actions then
    do the same whenever and wherever they run again. ``hashes``: whether each step tells those of
    its observation and of the state it left (None: where deterministic). ``policy``: rules over
    actions (see envs/policy), a TOML file of them or its content; it guides and is no boundary.
    A subclass says how a session is opened, run, read and closed.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 4}  # type: ignore[misc]
    name: ClassVar[str]
    scoring_version: ClassVar[int] = 1
    """Raised whenever the same episode would be scored differently."""
    expects_answer: ClassVar[bool] = (
        False  # whether what is handed in counts, not the state that is left
    )
    task_seed: int | None = None  # the seed that made the current task; None: always the same

    def __init__(
        self,
        dataset: str | Dataset = "starter",
        *,
        profile: Profile = "standard",
        image: str | None = None,
        sandbox: str = "auto",
        network: Network = "none",
        timeout: float = 10.0,
        max_turns: int | None = None,
        reward: str | RewardFunction | None = None,
        reward_mode: RewardMode = "final",
        render_mode: str | None = None,
        deterministic: bool | Mapping[str, Any] | Determinism = False,
        hashes: bool | None = None,
        policy: PolicySource | None = None,
    ) -> None:
        given = locals()
        self._settings = {k: v for k, v in given.items() if k not in ("self", "dataset")}
        choosing.check_choices(profile, network, render_mode)
        self.determinism = resolve_determinism(deterministic)
        self.hashes = self.determinism is not None if hashes is None else hashes
        self.policy = PolicyGuard(policy, self.name)
        self.dataset = choosing.pick_dataset(dataset, self.name)
        self.profile, self.sandbox_kind, self.network = profile, sandbox, network
        self.image_name = image or self.dataset.image
        self.timeout, self.max_turns, self.render_mode = timeout, max_turns, render_mode
        chosen = choosing.pick_reward(reward, self.dataset, profile, f"{self.name}-{profile}")
        self.reward_name, self.reward_function = chosen
        self.action_space = FreeText(MAX_ACTION_LENGTH)
        self.observation_space = FreeText(MAX_OBSERVATION_LENGTH)
        self._reward_shaper = RewardShaper(reward_mode)
        self._task: Task | None = None
        self._answer: str | None = None
        self._last_result: ExecResult | None = None
        self._running, self._transcript = False, list[str]()

    # ------------------------------------------------------------- Gymnasium
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode. ``options={"task": …}`` picks one: an int by position, a str by id.

        Returns the query and ``{"task": id, "index": position}``.
        """
        super().reset(seed=seed)
        self.index = choosing.pick_task(self.dataset, options or {}, self.np_random)
        self._task, self.task_seed = instantiate_task(
            self.dataset.tasks[self.index], seed, self.np_random
        )
        self._running, self._turns, self._answer, self._last_result = False, 0, None, None
        self._close_episode()
        self._open_episode(self._task)
        self._running, self._reward_shaper.previous_score = True, 0.0
        self._transcript = [self._task.query]
        return self._task.query[:MAX_OBSERVATION_LENGTH], {
            "task": self._task.id,
            "index": self.index,
        }

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Execute code, or submit. The reward is 0 until ``submit``, unless ``pay`` says otherwise.

        Raises EnvironmentStateError out of order, InfrastructureError when the box failed (the
        episode is then over and unscored; ``reset`` begins a new one).
        """
        self._require_running("step")
        choosing.check_action(action)
        words = action.split(None, 1)
        if words and words[0] == SUBMIT:
            return self.submit(words[1].strip() if len(words) > 1 else None)
        refusal = self.policy.refusal(action)
        try:
            result = ExecResult(refusal, None) if refusal else self._execute(action)
            changed = self._changes()
        except InfrastructureError:
            self._running = False
            raise
        self._last_result = self._last_result if refusal else result
        info = step_info(self.task, result, changed) | ({"refused": True} if refusal else {})
        return self._finish_turn(action, result.observation, info, self.score)

    def _finish_turn(
        self, action: str, shown: str, info: dict[str, Any], score: Callable[[], Score]
    ) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """The end of a turn after which the episode goes on, if there are turns left."""
        self._turns += 1
        truncated = self.max_turns is not None and self._turns >= self.max_turns
        self._running = not truncated
        observation = shown[:MAX_OBSERVATION_LENGTH]
        self._transcript += [f"$ {action}", observation]
        info |= self._hash_info(observation)
        return (
            observation,
            self._reward_shaper.reward_after_turn(score, info),
            False,
            truncated,
            info,
        )

    def submit(self, answer: str | None = None) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Hand in, with or without an answer: score the state and end the episode, unless the
        environment refuses the answer: that costs a turn, and ``info`` tells it as ``refused``."""
        self._require_running("submit")
        self._answer, self._running = answer, False
        score, action = self.score(), f"{SUBMIT} {answer or ''}".rstrip()
        info = step_info(self.task, ExecResult("", 0), [], score)
        if (refusal := self._answer_refusal(score)) is not None:
            self._answer = None
            return self._finish_turn(action, refusal, info | {"refused": True}, lambda: score)
        self._transcript.append(f"$ {action}\nreward {score.value}")
        info |= self._hash_info(self.last_observation)
        return self.last_observation, self._reward_shaper.reward_for(score), True, False, info

    def _answer_refusal(self, score: Score) -> str | None:  # noqa: ARG002
        """What is told where an answer with this score does not end the episode; None: it does."""
        return None

    def render(self) -> str | None:
        """The episode so far as text, in ``render_mode='ansi'``."""
        return "\n".join(self._transcript) if self.render_mode == "ansi" else None

    def end_episode(self) -> None:
        """End the episode and free its sandbox; ``reset`` begins another. May be called again."""
        self._running = False
        self._close_episode()

    def close(self) -> None:
        """End the episode, and free all there is. May be called again."""
        self.end_episode()

    def abort(self) -> None:
        """End what is under way in another thread, which gets InfrastructureError if it can be."""

    # ----------------------------------------------------------- what is more
    @property
    def task(self) -> Task:
        """The current task. Raises EnvironmentStateError before the first reset."""
        if self._task is None:
            raise EnvironmentStateError("no task yet: call reset() first")
        return self._task

    @property
    def brief(self) -> Brief:
        """What an agent may know of the current task."""
        notes, task = str(self.task.data.get("notes", "")), self.task
        return Brief(task.id, task.query, self.name, self.max_turns, notes, self.expects_answer)

    def score(self) -> Score:
        """The reward of the state as it is now. Neither ends the episode nor touches it.

        Also after the turn limit. Raises EnvironmentStateError before reset or after close.
        """
        if self._task is None or not self._is_open():
            raise EnvironmentStateError("nothing to score: call reset() first")
        agent = self._agent_state(self._last_result, self._answer)
        scores = [self.reward_function(self.task, agent, g) for g in self._gold_states(self.task)]
        return max(scores, key=lambda s: s.value)

    @property
    def working_directory(self) -> str:
        """The directory in which the next action runs; empty where there is none."""
        return ""

    def file_diffs(self) -> dict[str, str]:
        """How the last turn changed each path: for records only, where that was asked for."""
        return {}

    @property
    def last_observation(self) -> str:
        """What the last executed action printed; empty before the first."""
        return self._last_result.observation[:MAX_OBSERVATION_LENGTH] if self._last_result else ""

    def snapshot(self) -> Snapshot:
        """Keep this moment of the running episode: ``restore`` comes back to it, also in another
        environment. Raises EnvironmentStateError where no episode is running."""
        self._require_running("snapshot")
        held, left_behind, release = self._capture()
        state = self.np_random.bit_generator.state
        return Snapshot(
            self.index, self.task, self.task_seed, self._turns, self._last_result,
            tuple(self._transcript), state, self._reward_shaper.previous_score, held, left_behind, release,
        )  # fmt: skip

    def restore(self, snapshot: Snapshot, *, consume: bool = False) -> None:
        """Go on from a snapshot of this dataset, whatever happened since. ``last``: nobody will
        restore it again, so that what it holds need not be copied."""
        self._close_episode()
        self.index, self._turns, self._last_result = (
            snapshot.index,
            snapshot.turns,
            snapshot.last_result,
        )
        self._task, self.task_seed, self._answer = snapshot.task, snapshot.task_seed, None
        self._transcript, self._reward_shaper.previous_score = (
            list(snapshot.transcript),
            snapshot.previous_score,
        )
        self.np_random.bit_generator.state = snapshot.random_state
        self._restore_captured(snapshot.captured, consume)
        self._running = True

    def fork(self, n: int = 1) -> list[Self]:
        """``n`` environments in the state of this one, each on its own from here. The caller closes
        them."""
        makers = repeat_factory(self.new_like, n)
        with self.snapshot() as snapshot:
            return restore_into_new(makers, snapshot)

    def new_like(self) -> Self:
        """An environment with the same dataset and settings, in which nothing has begun."""
        return type(self)(self.dataset, **self._settings)

    def result_metadata(self) -> dict[str, Any]:
        """What every result of this environment has to name."""
        return {
            "environment": self.name, "profile": self.profile, "reward": self.reward_name,
            "scoring": f"{self.name}-{self.scoring_version}", "dataset": self.dataset.name,
            "dataset_hash": self.dataset.hash, "comparable": self.dataset.comparable,
            "timeout": self.timeout, "network": self.network, "policy": self.policy.metadata(),
        }  # fmt: skip

    # ------------------------------------------------------ for the subclass
    @abstractmethod
    def _open_episode(self, task: Task) -> None:
        """Open a fresh box and session for a task."""

    @abstractmethod
    def _capture(self) -> tuple[Any, tuple[str, ...], Callable[[], None]]:
        """What ``_resume`` needs to go on from here, what is left behind, and how to free it."""

    @abstractmethod
    def _restore_captured(self, captured: Any, consume: bool) -> None:
        """Open the episode that was held; unless it is the last time, without touching it."""

    @abstractmethod
    def _close_episode(self) -> None:
        """Close them; may be called when nothing is open."""

    @abstractmethod
    def _is_open(self) -> bool:
        """Whether there is a state to score."""

    @abstractmethod
    def _execute(self, action: str) -> ExecResult:
        """Run one action in the session."""

    @abstractmethod
    def _changes(self) -> list[str]:
        """Paths that the episode has changed so far, sorted."""

    @abstractmethod
    def _agent_state(self, last: ExecResult | None, answer: str | None) -> State:
        """What the agent has left behind, read without touching it."""

    @abstractmethod
    def _gold_states(self, task: Task) -> list[State]:
        """What each gold leaves behind, run where the agent cannot see it."""

    def _hash_info(self, observation: str) -> dict[str, Any]:  # noqa: ARG002
        """``hashes`` of an observation and of the state, where they are wanted."""
        return {}

    # ------------------------------------------------------------- internals
    def _require_running(self, what: str) -> None:
        if not self._running:
            raise EnvironmentStateError(f"{what} without a running episode: call reset() first")
