"""The base class of every environment: Gymnasium's contract, tasks, turns, submitting, scoring."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import gymnasium as gym

from intercode.core.errors import (
    EnvironmentStateError,
    SandboxKilledError,
    SandboxLostError,
    UsageError,
)
from intercode.core.types import (
    TOOL_CALL,
    ActionLanguage,
    Brief,
    Dataset,
    EnvironmentDescription,
    ExecResult,
    Network,
    Score,
    State,
    StepResult,
    Task,
)
from intercode.environments.base.contract import Workspace
from intercode.environments.base.faults.failures import EpisodeFailures
from intercode.environments.base.hashes import observation_hash
from intercode.environments.base.options import (
    check_settings,
    checked_action,
    checked_seed,
    choose_task,
    default_reward,
    names_along_bases,
    pick_dataset,
    pick_reward,
)
from intercode.environments.base.policy import PolicyGuard, PolicySource
from intercode.environments.base.profiles import STANDARD, Profile, find_profile
from intercode.environments.base.reward_mode import RewardMode, RewardShaper
from intercode.environments.base.rewards import RewardFunction, open_episode_reward
from intercode.environments.base.snapshots.copying import Copyable
from intercode.environments.base.snapshots.snapshot import (
    EnvironmentSnapshot,
    check_snapshot,
    repeat_factory,
    restore_into_new,
)
from intercode.environments.base.spaces import FreeText
from intercode.environments.base.tools.servers import EpisodeTools

if TYPE_CHECKING:
    from intercode_sandbox.contract import BaseSandbox
    from intercode_sandbox.determinism import Determinism

MAX_ACTION_LENGTH = 1 << 17
MAX_OBSERVATION_LENGTH = 1 << 21
SUBMIT = "submit"


class InterCodeEnv(Copyable, EpisodeFailures, gym.Env[str, str]):
    """An environment whose actions are code and whose observations are execution feedback.

    ``dataset``: ``name[:subset]``, a file, or a Dataset. ``profile``: ``standard``, or another one
    that the environment has. ``image``, ``backend``, ``network``: where code runs (``image`` None:
    the dataset's). ``timeout``: seconds for each action (None: ``default_timeout``). ``max_turns``:
    an episode is truncated after that many actions (None: never). ``reward``: a name,
    ``package.module:function`` or a function (task, agent, gold) -> Score; ``variants`` pays a
    solution as far as it holds in variants of its task (page Variants). ``reward_mode``: ``final``
    pays the score at the end, ``per-turn`` what a turn adds to the best score before, ``delta`` the
    change of the score. ``deterministic``: True, or fields of Determinism: the same actions give
    the same observations. ``hashes``: ``info`` has hashes of observation and state (None: if
    deterministic). ``policy``: rules over actions (page Action policies), as a TOML file or its
    content; no security boundary. ``mcp``: commands of MCP servers by name, for further tools (page
    MCP).

    A subclass opens workspaces and reads the states that are compared: five methods.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 4}  # type: ignore[misc]
    name: ClassVar[str]
    default_timeout: ClassVar[float] = 10.0
    scoring_version: ClassVar[int] = 1
    """Increased by every change after which the same episode is scored differently."""
    description: ClassVar[EnvironmentDescription] = EnvironmentDescription(ActionLanguage("code"))
    """What agents, policies, statistics and exports need to know of the environment."""
    scores_output: ClassVar[bool] = True
    """Whether what an action prints, or the scoring prints, may be a part of the result. If not,
    two runs of a gold are the same if they have the same state and reward."""
    scores_every_gold = False
    """Whether ``score`` runs further golds even if one gives 1, as ``check`` needs them."""
    standard_profile: ClassVar[type[Profile]] = Profile
    """The profile ``standard`` of this environment."""
    profile_class: type[Profile]
    """The profile in which this environment plays."""
    known_golds: Sequence[State] = ()
    """What the golds reached in an earlier episode: ``score`` then does not run them."""
    _workspace: Workspace | None = None
    task_seed: int | None = None
    """The seed from which the current task was instantiated. None: the task never varies."""
    _actions: tuple[str, ...] | None = ()
    """The executed actions of the episode. None: it was loaded from a file, which has none."""

    @staticmethod
    def obstacle_for_programs(task: Task) -> str:  # noqa: ARG004
        """Return what keeps a program as agent from playing a task, which would get the instruction
        once and act as root: ``several steps``, for example. Empty if nothing does."""
        return ""

    def __init__(
        self,
        dataset: str | Dataset = "starter",
        *,
        profile: str = STANDARD,
        image: str | None = None,
        backend: str = "auto",
        network: Network = "none",
        timeout: float | None = None,
        max_turns: int | None = None,
        reward: str | RewardFunction | None = None,
        reward_mode: RewardMode = "final",
        render_mode: str | None = None,
        deterministic: bool | Mapping[str, Any] | Determinism = False,
        hashes: bool | None = None,
        policy: PolicySource | None = None,
        mcp: Mapping[str, str] | None = None,
    ) -> None:
        timeout = self.default_timeout if timeout is None else timeout
        arguments = locals()
        self.settings = {k: v for k, v in arguments.items() if k not in ("self", "dataset")}
        self.profile_class = find_profile(type(self), profile)
        check_settings(network, render_mode, timeout, max_turns)
        self.determinism = self._resolve_determinism(deterministic)
        self.hashes = self.determinism is not None if hashes is None else hashes
        self.policy = PolicyGuard(policy, self.name, self.description.language)
        self._tools = EpisodeTools(mcp, lambda: (self._tool_sandbox, self.working_directory))
        self.dataset = pick_dataset(dataset, *names_along_bases(type(self)))
        self.profile, self.backend, self.network = profile, backend, network
        self.image_name = image or self.dataset.image
        self.timeout, self.max_turns, self.render_mode = timeout, max_turns, render_mode
        follows, default = self.profile_class.follows_dataset, default_reward(type(self), profile)
        chosen = pick_reward(reward, self.dataset, follows, default)
        self.reward_name, self.reward_function = chosen
        self._episode_reward = open_episode_reward(self.dataset, self.settings)
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
        """Begin an episode. ``options={"task": …}`` selects the task by position or by id, also by
        the id of a drawn task, with its seed.

        Returns the query and ``{"task": id, "index": position}``.
        """
        super().reset(seed=checked_seed(seed))
        chosen = choose_task(self.dataset, options or {}, seed, self.np_random)
        self.index, self._task, self.task_seed = chosen
        self._running, self._turns, self._answer, self._last_result = False, 0, None, None
        self._close_episode()
        self._forget_failures()
        self._actions = ()
        try:
            self._workspace = self._open_workspace(self._task)
        except SandboxKilledError as e:  # nothing of the agent has run yet
            raise SandboxLostError(str(e)) from e
        self._tools.start()
        self._running, self._reward_shaper.previous_score = True, 0.0
        self._transcript = [self._task.query]
        info = {"task": self._task.id, "index": self.index}
        return self._task.query[:MAX_OBSERVATION_LENGTH], info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Execute code, or submit: ``execute``, as Gymnasium returns it."""
        return self.execute(action).as_gymnasium()

    def submit(self, answer: str | None = None) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Submit, with or without an answer: ``finish``, as Gymnasium returns it."""
        return self.finish(answer).as_gymnasium()

    def _reply_to_answer(self, score: Score) -> tuple[str, bool] | None:  # noqa: ARG002
        """Return the observation with which the episode goes on after an answer, and whether the
        answer is refused. None: it ends the episode."""
        return None

    def render(self) -> str | None:
        """Return the transcript of the episode, or None unless ``render_mode`` is ``ansi``."""
        return "\n".join(self._transcript) if self.render_mode == "ansi" else None

    def end_episode(self) -> None:
        """End the episode and free its sandbox. ``reset`` begins another. May be called again."""
        self._running = False
        self._close_episode()

    def close(self) -> None:
        """End the episode and free every resource. May be called again."""
        self.end_episode()
        if self._episode_reward is not None:
            self._episode_reward.close()

    def abort(self) -> None:
        """Interrupt the call that another thread makes, which then raises InfrastructureError."""
        self._aborted = True
        for part in (self._workspace, self._tools, self._episode_reward):
            if part is not None:
                part.abort()

    # -------------------------------------------------- beyond Gymnasium's API
    def execute(self, action: str) -> StepResult:
        """Execute code, or submit. In the reward mode ``final`` the reward is 0 until ``submit``.

        If the action ends its own sandbox, for example by its use of memory, the episode ends with
        the score 0, and ``sandbox_lost`` is true. So it does after an exception that the action
        causes while the machine works (``StepResult.action_error``). Raises EnvironmentStateError
        if no episode is running, and InfrastructureError if the machine failed. The episode is then
        over and unscored, and ``reset`` begins another.
        """
        self._require_running("step")
        action = checked_action(action)
        words = action.split(None, 1)
        if words and words[0] == SUBMIT:
            return self.finish(words[1].strip() if len(words) > 1 else None)
        return self._guard(action, lambda: self._run(action, words))

    def _run(self, action: str, words: list[str]) -> StepResult:
        """Run an action that does not submit."""
        calls_tool = bool(self._tools.tools) and words[:1] == [TOOL_CALL]
        refusal = None if calls_tool else self.policy.refusal(action)
        if calls_tool:
            result = self._tools.call(words[-1], self.timeout)
        else:
            result = ExecResult(refusal, None) if refusal else self._execute(action)
        changes = self.changed_paths()
        if not refusal:
            self._last_result = result
            self._actions = None if self._actions is None else (*self._actions, action)
        return self._finish_turn(action, result, changes, bool(refusal), self.score)

    def finish(self, answer: str | None = None) -> StepResult:
        """Submit, with or without an answer: score the state and end the episode.

        An environment may refuse an answer, and ``refused`` is then true, or go on to the next step
        of the task. That costs a turn, and the episode continues.
        """
        self._require_running("submit")
        action = f"{SUBMIT} {answer or ''}".rstrip()
        return self._guard(action, lambda: self._submit(action, answer))

    def _submit(self, action: str, answer: str | None) -> StepResult:
        self._answer, self._running = answer, False
        score = self.score()
        reply = None if self._has_failed else self._reply_to_answer(score)
        if reply is not None:
            self._answer = None
            said, refused = ExecResult(reply[0], 0), reply[1]
            return replace(self._finish_turn(action, said, [], refused, lambda: score), score=score)
        self._transcript.append(f"$ {action}\nreward {score.value}")
        return StepResult(
            self.last_observation, self._reward_shaper.reward_for(score), True, False,
            task=self.task.id, valid=True, exit_code=0, score=score,
            hashes={} if self._has_failed else self._hashes(self.last_observation),
            sandbox_lost=self.sandbox_lost,
        )  # fmt: skip

    def _finish_turn(
        self, action: str, result: ExecResult, changes: Sequence[str], refused: bool,
        score: Callable[[], Score],
    ) -> StepResult:  # fmt: skip
        """Finish a turn that does not end the episode, unless it is the last turn allowed."""
        self._turns += 1
        truncated = self.max_turns is not None and self._turns >= self.max_turns
        self._running = not truncated
        observation = result.observation[:MAX_OBSERVATION_LENGTH]
        self._transcript += [f"$ {action}", observation]
        hashes = self._hashes(observation)
        reward, current = self._reward_shaper.reward_after_turn(score)
        return StepResult(
            observation, reward, False, truncated, task=self.task.id, valid=result.ok,
            exit_code=result.exit_code, timed_out=result.timed_out,
            omitted_bytes=result.omitted_bytes, changes=tuple(changes), score=current,
            refused=refused, hashes=hashes, diffs=self._turn_diffs(),
        )  # fmt: skip

    @property
    def task(self) -> Task:
        """The current task. Raises EnvironmentStateError before the first reset."""
        if self._task is None:
            raise EnvironmentStateError("no task yet: call reset() first")
        return self._task

    @property
    def brief(self) -> Brief:
        """The part of the current task that an agent may see."""
        return self.brief_of(self.task)

    def brief_of(self, task: Task) -> Brief:
        """Return the part of a task that an agent may see. No episode needs to run."""
        return Brief(
            task.id, task.query, self.name, self.max_turns, str(task.data.get("notes", "")),
            self.expects_answer, self._tools.tools,
            task.only_changes and self.profile_class.follows_dataset, self.description_of(task),
        )  # fmt: skip

    def description_of(self, task: Task) -> EnvironmentDescription:  # noqa: ARG002
        """Return the description for a task, which may have a language of its own."""
        return self.description

    @property
    def expects_answer(self) -> bool:
        """Whether the submitted answer is scored, and not the state of the sandbox."""
        return self.description.expects_answer

    def score(self) -> Score:
        """Return the score of the present state, and leave state and episode as they are.

        With several golds, returns the best score; those after one that gives 1 do not run. Works
        after the turn limit, too. If what ran in the agent's sandbox has ended it, the score is 0.
        Raises EnvironmentStateError before ``reset`` and after ``close``.
        """
        return self.score_with_states()[0]

    def score_with_states(self) -> tuple[Score, State | None, State | None]:
        """Return ``score``, the state of the agent, and that of the gold that gives this score.

        The states are None if what ran in the agent's sandbox ended it. Never show an agent a gold.
        """
        if self._task is None or self._workspace is None:
            raise EnvironmentStateError("nothing to score: call reset() first")
        try:
            if not self._has_failed:
                return self._compare_with_golds()
        except Exception as e:
            self.note_failure(e)
        return self._failed_score(), None, None

    def _compare_with_golds(self) -> tuple[Score, State, State]:
        agent = self._agent_state(self._last_result, self._answer)
        scores = []
        for gold in self._reached_golds():
            scores.append((self._score_against(agent, gold), gold))
            if scores[-1][0].value >= 1 and not self.scores_every_gold:
                break
        best, best_gold = max(scores, key=lambda pair: pair[0].value)
        if self._episode_reward is not None:
            if self._actions is None:
                raise UsageError(
                    f"the reward {self.reward_name!r} needs the actions of the episode, which a "
                    "stored snapshot does not have: leave it out"
                )
            best = self._episode_reward.score(self.index, self._actions, best)
        return best, agent, best_gold

    def check_gold(self) -> None:
        """Raise GoldError if the current task cannot be scored because its gold fails.

        ``score`` uses what the gold has reached here, so that it runs once. In a profile that does
        not run golds apart from the agent, it does not run here, and must only be there.
        """
        self._require_gold(self.task)
        if self.profile_class.runs_golds_separately:
            list(self._reached_golds())

    def _reached_golds(self) -> Iterator[State]:
        try:
            yield from self.known_golds or self._gold_states(self.task)
        except SandboxKilledError as e:  # it is not the agent's sandbox
            raise SandboxLostError(str(e)) from e
        except Exception as e:
            self._gold_error = e if self.profile_class.runs_golds_separately else None
            raise

    def changed_paths(self) -> list[str]:
        """Return what the episode has changed, sorted."""
        return self._current_workspace.changed_paths()

    @property
    def working_directory(self) -> str:
        """The directory, or the database, in which the next action runs. Empty before ``reset``."""
        return self._workspace.cwd if self._workspace else ""

    @property
    def last_observation(self) -> str:
        """The observation of the last executed action. Empty before the first."""
        return self._last_result.observation[:MAX_OBSERVATION_LENGTH] if self._last_result else ""

    def snapshot(self) -> EnvironmentSnapshot:
        """Save the state of the running episode, for ``restore`` of this or another environment.

        Raises EnvironmentStateError if no episode is running.
        """
        self._require_running("snapshot")
        captured, omitted, release = self._capture()
        return EnvironmentSnapshot(
            index=self.index, task=self.task, task_seed=self.task_seed, turns=self._turns,
            last_result=self._last_result, transcript=tuple(self._transcript),
            actions=self._actions, random_state=self.np_random.bit_generator.state,
            previous_score=self._reward_shaper.previous_score, captured=captured,
            omitted=omitted, release=release,
        )  # fmt: skip

    def restore(self, snapshot: EnvironmentSnapshot, *, consume: bool = False) -> None:
        """Continue from a snapshot of this dataset.

        ``consume``: the snapshot will not be restored again, so that its files need not be copied.
        """
        check_snapshot(snapshot)
        self._close_episode()
        self.index, self._turns = snapshot.index, snapshot.turns
        self._last_result, self._answer = snapshot.last_result, None
        self._forget_failures()
        self._task, self.task_seed = snapshot.task, snapshot.task_seed
        self._transcript, self._actions = list(snapshot.transcript), snapshot.actions
        self._reward_shaper.previous_score = snapshot.previous_score
        self.np_random.bit_generator.state = snapshot.random_state
        self._workspace = self._restore_workspace(snapshot.captured, consume)
        self._tools.start()
        self._running = True

    def fork(self, n: int = 1) -> list[Self]:
        """Return ``n`` independent environments in the state of this one. The caller closes them.

        Raises EnvironmentStateError if no episode is running, UsageError if ``n`` is less than 1.
        """
        makers = repeat_factory(self.new_like, n)
        with self.snapshot() as snapshot:
            return restore_into_new(makers, snapshot)

    def result_metadata(self) -> dict[str, Any]:
        """Return the metadata that every result of this environment records."""
        return {
            "environment": self.name, "profile": self.profile, "reward": self.reward_name,
            "scoring": f"{self.name}-{self.scoring_version}", "dataset": self.dataset.name,
            "dataset_hash": self.dataset.hash, "comparable": self.dataset.comparable,
            "timeout": self.timeout, "network": self.network, "policy": self.policy.metadata(),
            **self._tools.metadata(),
        }  # fmt: skip

    @property
    def reward_sum(self) -> float:
        """The sum of the rewards of the episode's turns, before its end."""
        return self._reward_shaper.previous_score

    # ------------------------------------------------------ for the subclass
    def _resolve_determinism(
        self, setting: bool | Mapping[str, Any] | Determinism
    ) -> Determinism | None:
        """Return the settings for ``deterministic``. Environments with a sandbox override this."""
        if setting is not False:
            raise UsageError(f"the environment {self.name!r} runs no sandbox: omit deterministic")
        return None

    @abstractmethod
    def _open_workspace(self, task: Task) -> Workspace:
        """Open the workspace in which the actions of a task run."""

    @abstractmethod
    def _agent_state(self, last: ExecResult | None, answer: str | None) -> State:
        """Return the state that the agent has reached, without changing it."""

    def _require_gold(self, task: Task) -> None:
        """Raise GoldError if the task cannot be scored, as far as that is known without running its
        gold. Environments override this."""

    @abstractmethod
    def _gold_states(self, task: Task) -> Iterable[State]:
        """Return the state that each gold reaches, from runs that the agent cannot observe. An
        iterator runs a gold when its state is asked for."""

    @abstractmethod
    def _capture(self) -> tuple[Any, tuple[str, ...], Callable[[], None]]:
        """Save the workspace. Return what ``_restore_workspace`` needs, the names of what it does
        not hold, and a function that frees it."""

    @abstractmethod
    def _restore_workspace(self, captured: Any, consume: bool) -> Workspace:
        """Open the workspace that ``_capture`` saved. Leave ``captured`` as it is unless
        ``consume``."""

    def _execute(self, action: str) -> ExecResult:
        """Run one action."""
        return self._current_workspace.run(action, self.timeout)

    def _turn_diffs(self) -> dict[str, str]:
        """Return how the last turn changed each path. Empty unless that is recorded."""
        return {}

    @property
    def _tool_sandbox(self) -> BaseSandbox | None:
        """The sandbox in which MCP servers run, if the environment has one."""
        return None

    def _close_episode(self) -> None:
        """Close the MCP servers and the workspace, if there are any."""
        self._tools.close()
        workspace, self._workspace = self._workspace, None
        if workspace is not None:
            workspace.close()

    # ------------------------------------------------------------- internals
    @property
    def _current_workspace(self) -> Workspace:
        assert self._workspace is not None
        return self._workspace

    def _hashes(self, observation: str) -> dict[str, str]:
        """Return hashes of the observation and the state, if they are enabled."""
        if not self.hashes:
            return {}
        state = self._current_workspace.state_hash()
        return {"observation": observation_hash(observation), "state": state}

    def _require_running(self, method: str) -> None:
        if not self._running:
            raise EnvironmentStateError(f"{method} without a running episode: call reset() first")
