"""An episode: one attempt at one task, from the state in which it begins to its score."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import gymnasium as gym

from intercode.core.errors import (
    EnvironmentStateError,
    GoldError,
    SandboxKilledError,
    SandboxLostError,
    UsageError,
)
from intercode.core.observations import MAX_OBSERVATION_LENGTH
from intercode.core.types import (
    SUBMIT,
    TOOL_CALL,
    ActionError,
    ExecResult,
    Score,
    State,
    Step,
    Task,
)
from intercode.environments.base.action_error import describe_action_error, machine_error
from intercode.environments.base.contract import Workspace
from intercode.environments.base.diffs.file_diffs import TurnDiffs
from intercode.environments.base.hashes import observation_hash
from intercode.environments.base.options import checked_action
from intercode.environments.base.policy import PolicyGuard
from intercode.environments.base.profiles import Profile
from intercode.environments.base.rewards import (
    EpisodeReward,
    RewardFunction,
    score_states,
    sum_of_rewards,
)
from intercode.environments.base.snapshots.copying import Copyable
from intercode.environments.base.snapshots.snapshot import (
    EnvironmentSnapshot,
    repeat_factory,
    restore_into_new,
)
from intercode.environments.base.tools.servers import EpisodeTools
from intercode.environments.base.workspaces import closed_on_error
from intercode_sandbox import SandboxSpec
from intercode_sandbox.long_output import shorten

_MAX_KEPT = MAX_OBSERVATION_LENGTH - 64  # characters, beside the line for what is left out


class EpisodeEnvironment(Copyable, gym.Env[str, str]):
    """What an episode needs of its environment: the settings, and what a subclass implements."""

    timeout: float
    max_turns: int | None
    hashes: bool
    policy: PolicyGuard
    tools: EpisodeTools
    snapshots: Snapshots
    reward_name: str
    reward_function: RewardFunction
    episode_reward: EpisodeReward | None
    scores_every_gold = False
    """Whether ``score`` runs further golds even if one gives 1, as ``check`` needs them."""
    profile_class: type[Profile]
    """The profile in which this environment plays."""
    _profile_impl: Profile
    known_golds: Sequence[State] = ()
    """What the golds reached in an earlier episode: ``score`` then does not run them."""
    _current: Episode | None = None

    @property
    def diffs(self) -> TurnDiffs | None:
        """What turns change in files, of an environment that has some."""
        return None

    @property
    def episode(self) -> Episode:
        """The episode that the last ``reset`` or ``restore`` began. Raises EnvironmentStateError
        before the first."""
        if self._current is None:
            raise EnvironmentStateError("no episode yet: call reset() first")
        return self._current

    @abstractmethod
    def restore(self, snapshot: EnvironmentSnapshot, *, consume: bool = False) -> None:
        """Continue from a snapshot; see ``InterCodeEnv.restore``."""

    def changed_paths(self) -> list[str]:
        """Return what the episode has changed, sorted."""
        return self.episode.require_workspace().changed_paths()

    # ------------------------------------------------------ for the subclass
    @abstractmethod
    def open_workspace(self) -> Workspace:
        """Open a workspace, in the state in which the episode begins. The caller closes it."""

    @property
    def context(self) -> Any:
        """The episode as its profile sees it."""
        return self.episode

    def check_machine(self) -> None:
        """Use what no agent can reach, such as another sandbox. Raises if the machine has failed.
        Environments override this."""


Capture = tuple[Any, tuple[str, ...], Callable[[], None]]
"""What ``restore`` needs, the names of what it does not hold, and a function that frees it."""


class Snapshots:
    """Saves the workspace of an environment's episode by its actions, which run again in a new one.

    An environment names a subclass as ``snapshots_class`` if it can save more.

    >>> from intercode.environments import BashEnv, Snapshots
    >>> class RepeatingEnv(BashEnv):
    ...     snapshots_class = Snapshots
    >>> with RepeatingEnv() as env:
    ...     _ = env.reset(seed=1), env.step("NAME=ada")
    ...     with env.snapshot() as snapshot:
    ...         env.restore(snapshot)
    ...     print(env.step("echo $NAME")[0].strip())
    ada
    """

    def __init__(self, env: EpisodeEnvironment) -> None:
        self.env = env

    def capture(self) -> Capture:
        """Save the workspace of the episode.

        Raises EnvironmentStateError if the actions are not known, or not enough.
        """
        actions = self.env.episode.actions
        if actions is None or any(action.split(None, 1)[:1] == [TOOL_CALL] for action in actions):
            why = "it has tool calls, or was loaded from a file"
            raise EnvironmentStateError(f"no snapshot of the episode is possible: {why}")
        return actions, (), lambda: None

    def restore(self, captured: Any, consume: bool = False) -> Workspace:  # noqa: ARG002
        """Open the workspace that ``capture`` saved. Leave ``captured`` as it is unless
        ``consume``."""
        with closed_on_error(self.env.open_workspace()) as workspace:
            for action in captured:
                workspace.run(action, self.env.timeout)
        return workspace

    def close_workspace(self, workspace: Workspace) -> None:
        """Close the workspace of an episode that is over."""
        workspace.close()

    def pack(self) -> Any:
        """Return the running episode as a value that can be pickled.

        Raises EnvironmentStateError if that is impossible.
        """
        raise EnvironmentStateError(
            f"{type(self.env).__name__} cannot be pickled within an episode: call end_episode() "
            "first, or copy the episode with fork()"
        )

    def unpack(self, packed: Any) -> None:
        """Continue the episode that ``pack`` returned."""


class Episode:
    """One attempt at one task: its workspace, its turns, its last result and its score.

    It is used without Gymnasium: ``env.episode.execute("ls")`` after a reset.

    ``env``: what opens workspaces and reads the states that are compared. ``index``: the position
    of the task in the dataset. ``seed``: that from which the task was instantiated; None if it
    never varies. ``workspace``: None before the episode is open and after its end. ``spec``: that
    of its sandboxes, if it has some. ``running``: whether it takes actions. ``actions``: those that
    were executed; None if the episode was loaded from a file, which has none. ``answer``: what was
    submitted. ``reward_sum``: the rewards of the turns before the end. ``loss``: how the agent's
    sandbox was ended by what ran in it, empty while it runs. ``action_error``: the exception with
    which the agent's code has ended the episode. ``step_rewards``: those of the steps that were
    submitted, of a task that has several.

    >>> import intercode
    >>> from intercode.environments import Episode
    >>> with intercode.make("bash") as env:
    ...     _ = env.reset(seed=1)
    ...     episode: Episode = env.episode
    ...     print(episode.execute("echo 1").observation.strip(), episode.turns)
    1 1
    """

    def __init__(
        self, env: EpisodeEnvironment, task: Task, index: int = 0, seed: int | None = None
    ) -> None:
        self.env, self.task, self.index, self.seed = env, task, index, seed
        self.workspace: Workspace | None = None
        self.spec: SandboxSpec | None = None
        self.running, self.turns, self.transcript = False, 0, [task.query]
        self.actions: tuple[str, ...] | None = ()
        self.answer: str | None = None
        self.last_result: ExecResult | None = None
        self.reward_sum = 0.0
        self.step_rewards: tuple[Mapping[str, float], ...] = ()
        self.loss = ""
        self.action_error: ActionError | None = None
        self._gold_error: Exception | None = None
        self.is_closed = self._aborted = False

    def start(self) -> None:
        """Begin to take actions. The workspace is open."""
        self.env.tools.start()
        self.running = True

    @property
    def last_observation(self) -> str:
        """The observation of the last executed action. Empty before the first."""
        return shorten(self.last_result.observation, _MAX_KEPT).text if self.last_result else ""

    # ------------------------------------------------------------------ turns
    def execute(self, action: str) -> Step:
        """Execute code, or submit. In the reward mode ``final`` the reward is 0 until the turn that
        ends the episode: ``submit``, or the last of ``max_turns``, after which the state is scored
        unless the task has no gold.

        If the action ends its own sandbox, for example by its use of memory, the episode ends with
        the score 0, and ``sandbox_lost`` is true. So it does after an exception that the action
        causes while the machine works (``Step.action_error``). Raises EnvironmentStateError
        if the episode is over, and InfrastructureError if the machine failed. The episode is then
        over and unscored.
        """
        self.require_running("step")
        action = checked_action(action)
        words = action.split(None, 1)
        if words and words[0] == SUBMIT:
            return self.finish(words[1].strip() if len(words) > 1 else None)
        return self._guard(action, lambda: self._run(action, words))

    def finish(self, answer: str | None = None) -> Step:
        """Submit, with or without an answer: score the state and end the episode.

        An environment may refuse an answer, and ``refused`` is then true, or go on to the next step
        of the task. That costs a turn, and the episode continues.
        """
        self.require_running("submit")
        action = f"{SUBMIT} {answer or ''}".rstrip()
        return self._guard(action, lambda: self._submit(action, answer))

    def _run(self, action: str, words: Sequence[str]) -> Step:
        """Run an action that does not submit."""
        env = self.env
        calls_tool = bool(env.tools.tools) and words[:1] == [TOOL_CALL]
        refusal = None if calls_tool else env.policy.refusal(action)
        if calls_tool:
            result = env.tools.call(words[-1], env.timeout)
        elif refusal:
            result = ExecResult(refusal, None)
        else:
            if env.diffs is not None:
                env.diffs.watch(self.workspace)
            result = self.require_workspace().run(action, env.timeout)
        changes = env.changed_paths()
        if not refusal:
            self.last_result = result
            self.actions = None if self.actions is None else (*self.actions, action)
        return self._finish_turn(action, result, changes, bool(refusal), self.score)

    def _submit(self, action: str, answer: str | None) -> Step:
        self.answer, self.running = answer, False
        score = self.score()
        reply = None if self.has_failed else self.env._profile_impl.reply_to_answer(self, score)
        if reply is not None:
            self.answer = None
            said, refused = ExecResult(reply[0], 0), reply[1]
            return replace(self._finish_turn(action, said, [], refused, lambda: score), score=score)
        self.transcript.append(f"$ {action}\nreward {score.value}")
        return self._last_turn(action, self.last_observation, 0, score)

    def _finish_turn(
        self,
        action: str,
        result: ExecResult,
        changes: Sequence[str],
        refused: bool,
        score: Callable[[], Score],
    ) -> Step:
        """Finish a turn that does not end the episode, unless it is the last turn allowed."""
        self.turns += 1
        truncated = self.env.max_turns is not None and self.turns >= self.env.max_turns
        self.running = not truncated
        observation, _, omitted = shorten(result.observation, _MAX_KEPT)
        self.transcript += [f"$ {action}", observation]
        hashes = self._hashes(observation)
        pays_every_turn = self.env.settings.reward_mode != "final"
        current = score() if pays_every_turn or (truncated and self._has_gold()) else None
        reward = 0.0 if current is None else self._reward_for(current)
        return Step(
            action,
            observation,
            reward=reward,
            truncated=truncated,
            task=self.task.id,
            valid=result.ok,
            exit_code=result.exit_code,
            timed_out=result.timed_out,
            omitted_bytes=result.omitted_bytes + omitted,
            changes=tuple(changes),
            score=current,
            refused=refused,
            hashes=hashes,
            diffs=self.env.diffs.next_turn(self.workspace) if self.env.diffs else {},
        )

    def _last_turn(
        self, action: str, observation: str, exit_code: int | None, score: Score
    ) -> Step:
        """Return the result of the turn that ends the episode."""
        return Step(
            action,
            observation,
            reward=self._reward_for(score),
            terminated=True,
            task=self.task.id,
            valid=exit_code == 0,
            exit_code=exit_code,
            score=score,
            hashes={} if self.has_failed else self._hashes(observation),
            sandbox_lost=bool(self.loss),
        )

    def _reward_for(self, score: Score) -> float:
        """Return the reward of a turn after which the state has this score."""
        mode, before = self.env.settings.reward_mode, self.reward_sum
        if mode == "final":
            return score.value
        self.reward_sum = sum_of_rewards(mode, score, before)
        return self.reward_sum - before

    def _hashes(self, observation: str) -> dict[str, str]:
        """Return hashes of the observation and the state, if they are enabled."""
        if not self.env.hashes:
            return {}
        state = self.require_workspace().state_hash()
        return {"observation": observation_hash(observation), "state": state}

    def require_workspace(self) -> Workspace:
        """Return the workspace. Raises EnvironmentStateError if the episode is not open."""
        if self.workspace is None:
            raise EnvironmentStateError("there is no open episode: call reset() first")
        return self.workspace

    def require_running(self, method: str) -> None:
        """Raise EnvironmentStateError if the episode takes no actions."""
        if not self.running:
            raise EnvironmentStateError(f"{method} without a running episode: call reset() first")

    # ------------------------------------------------------------------ score
    def score(self) -> Score:
        """Return the score of the present state, and leave state and episode as they are.

        With several golds, returns the best score; those after one that gives 1 do not run. Works
        after the turn limit, too. If what ran in the agent's sandbox has ended it, the score is 0.
        Raises EnvironmentStateError after ``close``.
        """
        return self.score_with_states()[0]

    def score_with_states(self) -> tuple[Score, State | None, State | None]:
        """Return ``score``, the state of the agent, and that of the gold that gives this score.

        The states are None if what ran in the agent's sandbox ended it. Never show an agent a gold.
        """
        self.require_workspace()
        try:
            if not self.has_failed:
                return self._compare_with_golds()
        except Exception as e:
            self.note_failure(e)
        return self._failed_score(), None, None

    def _compare_with_golds(self) -> tuple[Score, State, State]:
        env = self.env
        agent: object = env._profile_impl.agent_state(env.context, self.last_result, self.answer)
        if not isinstance(agent, State):  # which is no agent's doing, as a gold that fails
            self._gold_error = UsageError(f"agent_state returned {agent!r:.80}, not a State")
            raise self._gold_error
        best, best_gold = self._best_score(agent)
        with self._noting_gold_errors():
            is_outdated = best.value < 1 and env._profile_impl.rerun_cached_golds(env.context)
        if is_outdated:
            best, best_gold = self._best_score(agent)
        if env.episode_reward is not None:
            if self.actions is None:
                raise UsageError(
                    f"the reward {env.reward_name!r} needs the actions of the episode, which a "
                    "stored snapshot does not have: leave it out"
                )
            best = env.episode_reward.score(self.index, self.actions, best)
        return best, agent, best_gold

    def _best_score(self, agent: State) -> tuple[Score, State]:
        scores = []
        for gold in self.reached_golds():
            scores.append((self._score_against(agent, gold), gold))
            if scores[-1][0].value >= 1 and not self.env.scores_every_gold:
                break
        if not scores:
            self._gold_error = GoldError(f"gold_states gave no state of a gold for {self.task.id}")
            raise self._gold_error
        return max(scores, key=lambda pair: pair[0].value)

    def _has_gold(self) -> bool:
        try:
            if not self.env.known_golds:
                self.env._profile_impl.require_gold(self.task)
        except GoldError:
            return False
        return True

    def _score_against(self, agent: State, gold: State) -> Score:
        """Return what the reward function gives. That it returns no Score is no agent's doing."""
        try:
            return score_states(
                self.env.reward_function, self.env.reward_name, self.task, agent, gold
            )
        except UsageError as e:
            self._gold_error = e
            raise

    def reached_golds(self) -> Iterator[State]:
        """Yield the state that each gold reaches. One runs when its state is asked for."""
        with self._noting_gold_errors():
            golds: Iterable[State] = self.env.known_golds
            if not golds:
                self.env._profile_impl.require_gold(self.task)
                golds = self.env._profile_impl.gold_states(self.env.context)
                if isinstance(golds, State):
                    raise UsageError("gold_states returns a list of states, or yields them")
            yield from golds

    @contextmanager
    def _noting_gold_errors(self) -> Iterator[None]:
        try:
            yield
        except SandboxKilledError as e:  # it is not the agent's sandbox
            raise SandboxLostError(str(e)) from e
        except Exception as e:
            self._gold_error = e if self.env.profile_class.runs_golds_separately else None
            raise

    # --------------------------------------------------------------- failures
    @property
    def has_failed(self) -> bool:
        """Whether what the agent did has ended the episode with the score 0."""
        return bool(self.loss) or self.action_error is not None

    @property
    def failure_note(self) -> str:
        """What the agent sees of what has ended the episode."""
        if self.action_error is not None:
            return f"[the action has ended the episode: {self.action_error.type}]"
        return f"[{self.loss}]"

    def _guard(self, action: str, take_turn: Callable[[], Step]) -> Step:
        """Take a turn. An exception ends the episode with the score 0, or is raised if the machine
        has failed."""
        if not self.has_failed:  # when its state was scored
            try:
                return self._end_if_failed(take_turn())
            except Exception as e:
                self.running = False
                self.note_failure(e)
        self.running = False
        result = self.last_result = ExecResult("", None, note=self.failure_note)
        self.transcript += [f"$ {action}", result.observation]
        return self._last_turn(action, result.observation, None, self.score())

    def _end_if_failed(self, result: Step) -> Step:
        """End the episode if the score after a turn has failed."""
        if not self.has_failed or result.terminated:
            return result
        self.running = False
        return replace(
            result, terminated=True, truncated=False, valid=False, sandbox_lost=bool(self.loss)
        )

    def note_failure(self, error: Exception) -> None:
        """Note that the agent has caused an exception. Raises it if the machine has failed."""
        try:
            if isinstance(error, SandboxKilledError):
                raise error
            if self._aborted or error is self._gold_error:
                raise error
            if raised := machine_error(error, self.workspace, self.env.check_machine):
                raise raised
        except SandboxKilledError as e:
            self.loss = str(e)
        else:
            self.action_error = describe_action_error(error)

    def _failed_score(self) -> Score:
        """Return the score of an episode that has failed."""
        if self.action_error is not None:
            return Score(0.0, details={"action_error": self.action_error})
        return Score(0.0, details={"sandbox_lost": self.loss})

    # -------------------------------------------------------------- snapshots
    def snapshot(self) -> EnvironmentSnapshot:
        """Save the state of the running episode, for ``restore`` of any environment like its own.

        Raises EnvironmentStateError if the episode is over.
        """
        self.require_running("snapshot")
        captured, omitted, release = self.env.snapshots.capture()
        return EnvironmentSnapshot(
            index=self.index,
            task=self.task,
            task_seed=self.seed,
            turns=self.turns,
            last_result=self.last_result,
            transcript=tuple(self.transcript),
            actions=self.actions,
            random_state=self.env.np_random.bit_generator.state,
            previous_score=self.reward_sum,
            captured=captured,
            omitted=omitted,
            release=release,
            step_rewards=self.step_rewards,
        )

    @classmethod
    def of_snapshot(cls, env: EpisodeEnvironment, snapshot: EnvironmentSnapshot) -> Episode:
        """Return an episode that continues from a snapshot. It has no workspace yet."""
        episode = cls(env, snapshot.task, snapshot.index, snapshot.task_seed)
        episode.turns, episode.actions = snapshot.turns, snapshot.actions
        episode.last_result, episode.transcript = snapshot.last_result, [*snapshot.transcript]
        episode.reward_sum = snapshot.previous_score
        episode.step_rewards = snapshot.step_rewards
        return episode

    def fork(self, n: int = 1) -> list[Episode]:
        """Return ``n`` independent episodes in the state of this one, each with an environment of
        its own, which the caller closes.

        Raises EnvironmentStateError if the episode is over, UsageError if ``n`` is less than 1.
        """
        makers = repeat_factory(self.env.new_like, n)
        with self.snapshot() as snapshot:
            return [env.episode for env in restore_into_new(makers, snapshot)]

    # -------------------------------------------------------------------- end
    def abort(self) -> None:
        """Interrupt the call that another thread makes, which then raises InfrastructureError."""
        self._aborted = True
        if self.workspace is not None:
            self.workspace.abort()

    def close(self) -> None:
        """End the episode and free its workspace. May be called again."""
        self.running, self.is_closed = False, True
        if self.env._current is self:  # else they are those of a later episode
            self.env.tools.close()
        workspace, self.workspace = self.workspace, None
        if workspace is not None:
            self.env.snapshots.close_workspace(workspace)
