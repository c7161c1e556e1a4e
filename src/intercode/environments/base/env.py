"""The base of every environment: Gymnasium's contract, tasks, turns, submitting and scoring."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import gymnasium as gym

from intercode.core.errors import EnvironmentStateError, InfrastructureError
from intercode.core.types import Brief, Dataset, ExecResult, Network, Profile, Score, State, Task
from intercode.environments.base import options as choosing
from intercode.environments.base.policy import Guard, PolicySource
from intercode.environments.base.reward_mode import Pay, Shaping
from intercode.environments.base.rewards import RewardFunction
from intercode.environments.base.snapshots.snapshot import Snapshot, makers_of, restored
from intercode.environments.base.spaces import FreeText
from intercode.environments.base.step_info import info_of
from intercode.environments.base.task_instances import drawn
from intercode.sandbox.determinism import Determinism
from intercode.sandbox.supervisor.clock import settle

LONGEST_ACTION = 1 << 17
LONGEST_OBSERVATION = 1 << 21
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
    answers: ClassVar[bool] = False  # whether what is handed in counts, not the state that is left
    drawn_from: int | None = None  # the seed that made the current task; None: always the same

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
        pay: Pay = "end",
        render_mode: str | None = None,
        deterministic: bool | Mapping[str, Any] | Determinism = False,
        hashes: bool | None = None,
        policy: PolicySource | None = None,
    ) -> None:
        given = locals()
        self._settings = {k: v for k, v in given.items() if k not in ("self", "dataset")}
        choosing.check_choices(profile, network, render_mode)
        self.determinism = settle(deterministic)
        self.hashes = self.determinism is not None if hashes is None else hashes
        self.policy = Guard(policy, self.name)
        self.dataset = choosing.pick_dataset(dataset, self.name)
        self.profile, self.sandbox_kind, self.network = profile, sandbox, network
        self.image_name = image or self.dataset.image
        self.timeout, self.max_turns, self.render_mode = timeout, max_turns, render_mode
        chosen = choosing.pick_reward(reward, self.dataset, profile, f"{self.name}-{profile}")
        self.reward_name, self.reward_function = chosen
        self.action_space = FreeText(LONGEST_ACTION)
        self.observation_space = FreeText(LONGEST_OBSERVATION)
        self._shaping = Shaping(pay)
        self._task: Task | None = None
        self._answer: str | None = None
        self._last: ExecResult | None = None
        self._live, self._transcript = False, list[str]()

    # ------------------------------------------------------------- Gymnasium
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode. ``options={"task": …}`` picks one: an int by position, a str by id.

        Returns the query and ``{"task": id, "index": position}``.
        """
        super().reset(seed=seed)
        self.index = choosing.pick_task(self.dataset, options or {}, self.np_random)
        self._task, self.drawn_from = drawn(self.dataset.tasks[self.index], seed, self.np_random)
        self._live, self._turns, self._answer, self._last = False, 0, None, None
        self._close_episode()
        self._open_episode(self._task)
        self._live, self._shaping.before = True, 0.0
        self._transcript = [self._task.query]
        return self._task.query[:LONGEST_OBSERVATION], {"task": self._task.id, "index": self.index}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Execute code, or submit. The reward is 0 until ``submit``, unless ``pay`` says otherwise.

        Raises EnvironmentStateError out of order, InfrastructureError when the box failed (the
        episode is then over and unscored; ``reset`` begins a new one).
        """
        self._require_live("step")
        choosing.check_action(action)
        words = action.split(None, 1)
        if words and words[0] == SUBMIT:
            return self.submit(words[1].strip() if len(words) > 1 else None)
        refusal = self.policy.refusal(action)
        try:
            result = ExecResult(refusal, None) if refusal else self._execute(action)
            changed = self._changes()
        except InfrastructureError:
            self._live = False
            raise
        self._last = self._last if refusal else result
        info = info_of(self.task, result, changed) | ({"refused": True} if refusal else {})
        return self._go_on(action, result.shown, info, self.score)

    def _go_on(
        self, action: str, shown: str, info: dict[str, Any], score: Callable[[], Score]
    ) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """The end of a turn after which the episode goes on, if there are turns left."""
        self._turns += 1
        truncated = self.max_turns is not None and self._turns >= self.max_turns
        self._live = not truncated
        observation = shown[:LONGEST_OBSERVATION]
        self._transcript += [f"$ {action}", observation]
        info |= self._hashed(observation)
        return observation, self._shaping.turn(score, info), False, truncated, info

    def submit(self, answer: str | None = None) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Hand in, with or without an answer: score the state and end the episode, unless the
        environment refuses the answer: that costs a turn, and ``info`` tells it as ``refused``."""
        self._require_live("submit")
        self._answer, self._live = answer, False
        score, action = self.score(), f"{SUBMIT} {answer or ''}".rstrip()
        info = info_of(self.task, ExecResult("", 0), [], score)
        if (refusal := self._refusal(score)) is not None:
            self._answer = None
            return self._go_on(action, refusal, info | {"refused": True}, lambda: score)
        self._transcript.append(f"$ {action}\nreward {score.value}")
        info |= self._hashed(self.last_observation)
        return self.last_observation, self._shaping.of(score), True, False, info

    def _refusal(self, score: Score) -> str | None:  # noqa: ARG002
        """What is told where an answer with this score does not end the episode; None: it does."""
        return None

    def render(self) -> str | None:
        """The episode so far as text, in ``render_mode='ansi'``."""
        return "\n".join(self._transcript) if self.render_mode == "ansi" else None

    def end(self) -> None:
        """End the episode and free its sandbox; ``reset`` begins another. May be called again."""
        self._live = False
        self._close_episode()

    def close(self) -> None:
        """End the episode, and free all there is. May be called again."""
        self.end()

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
        return Brief(task.id, task.query, self.name, self.max_turns, notes, self.answers)

    def score(self) -> Score:
        """The reward of the state as it is now. Neither ends the episode nor touches it.

        Also after the turn limit. Raises EnvironmentStateError before reset or after close.
        """
        if self._task is None or not self._is_open():
            raise EnvironmentStateError("nothing to score: call reset() first")
        agent = self._agent_state(self._last, self._answer)
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
        return self._last.shown[:LONGEST_OBSERVATION] if self._last else ""

    def snapshot(self) -> Snapshot:
        """Keep this moment of the running episode: ``restore`` comes back to it, also in another
        environment. Raises EnvironmentStateError where no episode is running."""
        self._require_live("snapshot")
        held, left_behind, release = self._hold()
        state = self.np_random.bit_generator.state
        return Snapshot(
            self.index, self.task, self.drawn_from, self._turns, self._last,
            tuple(self._transcript), state, self._shaping.before, held, left_behind, release,
        )  # fmt: skip

    def restore(self, snapshot: Snapshot, *, last: bool = False) -> None:
        """Go on from a snapshot of this dataset, whatever happened since. ``last``: nobody will
        restore it again, so that what it holds need not be copied."""
        self._close_episode()
        self.index, self._turns, self._last = snapshot.index, snapshot.turns, snapshot.last
        self._task, self.drawn_from, self._answer = snapshot.task, snapshot.drawn_from, None
        self._transcript, self._shaping.before = list(snapshot.transcript), snapshot.potential
        self.np_random.bit_generator.state = snapshot.random_state
        self._resume(snapshot.held, last)
        self._live = True

    def fork(self, n: int = 1) -> list[Self]:
        """``n`` environments in the state of this one, each on its own from here. The caller closes
        them."""
        makers = makers_of(self.twin, n)
        with self.snapshot() as snapshot:
            return restored(makers, snapshot)

    def twin(self) -> Self:
        """An environment with the same dataset and settings, in which nothing has begun."""
        return type(self)(self.dataset, **self._settings)

    def facts(self) -> dict[str, Any]:
        """What every result of this environment has to name."""
        return {
            "environment": self.name, "profile": self.profile, "reward": self.reward_name,
            "scoring": f"{self.name}-{self.scoring_version}", "dataset": self.dataset.name,
            "dataset_hash": self.dataset.hash, "comparable": self.dataset.comparable,
            "timeout": self.timeout, "network": self.network, "policy": self.policy.facts(),
        }  # fmt: skip

    # ------------------------------------------------------ for the subclass
    @abstractmethod
    def _open_episode(self, task: Task) -> None:
        """Open a fresh box and session for a task."""

    @abstractmethod
    def _hold(self) -> tuple[Any, tuple[str, ...], Callable[[], None]]:
        """What ``_resume`` needs to go on from here, what is left behind, and how to free it."""

    @abstractmethod
    def _resume(self, held: Any, last: bool) -> None:
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

    def _hashed(self, observation: str) -> dict[str, Any]:  # noqa: ARG002
        """``hashes`` of an observation and of the state, where they are wanted."""
        return {}

    # ------------------------------------------------------------- internals
    def _require_live(self, what: str) -> None:
        if not self._live:
            raise EnvironmentStateError(f"{what} without a running episode: call reset() first")
