"""The part of an environment that ends its episode after an exception."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from intercode.core.errors import SandboxKilledError, UsageError
from intercode.core.types import ActionError, ExecResult, Score, State, StepResult, Task
from intercode.environments.base.contract import Workspace
from intercode.environments.base.faults.action_error import describe_action_error, machine_error
from intercode.environments.base.reward_mode import RewardShaper
from intercode.environments.base.rewards import RewardFunction, score_states


class EpisodeFailures:
    """Ends an episode with the score 0 after an exception that the agent has caused."""

    _loss = ""
    """How the agent's sandbox was ended by what ran in it, empty while it runs."""
    _action_error: ActionError | None = None
    """The exception with which the agent's code has ended the episode."""
    _gold_error: Exception | None = None
    """What a gold, or a reward that returns no Score, has raised where no agent can reach it."""
    _aborted = False
    reward_name: str
    reward_function: RewardFunction
    _running: bool
    _last_result: ExecResult | None
    _transcript: list[str]
    _reward_shaper: RewardShaper
    _workspace: Workspace | None

    if TYPE_CHECKING:

        @property
        def task(self) -> Task: ...
        def score(self) -> Score: ...

    def _test_machine(self) -> None:
        """Use what no agent can reach, such as another sandbox. Raises if the machine has failed.
        Environments override this."""

    @property
    def sandbox_lost(self) -> bool:
        """Whether what ran in the agent's sandbox has ended it."""
        return bool(self._loss)

    @property
    def action_error(self) -> ActionError | None:
        """The exception with which the agent's code has ended the episode, or None."""
        return self._action_error

    @property
    def _has_failed(self) -> bool:
        return bool(self._loss) or self._action_error is not None

    def _forget_failures(self) -> None:
        self._loss, self._action_error, self._aborted = "", None, False

    @property
    def failure_note(self) -> str:
        """What the agent sees of what has ended the episode."""
        if self._action_error is not None:
            return f"[the action has ended the episode: {self._action_error.type}]"
        return f"[{self._loss}]"

    def _guard(self, action: str, take_turn: Callable[[], StepResult]) -> StepResult:
        """Take a turn. An exception ends the episode with the score 0, or is raised if the machine
        has failed."""
        if not self._has_failed:  # when its state was scored
            try:
                return self._end_if_failed(take_turn())
            except Exception as e:
                self._running = False
                self.note_failure(e)
        self._running = False
        result = self._last_result = ExecResult("", None, note=self.failure_note)
        self._transcript += [f"$ {action}", result.observation]
        score = self.score()
        return StepResult(
            result.observation, self._reward_shaper.reward_for(score), True, False,
            task=self.task.id, valid=False, exit_code=None, score=score,
            sandbox_lost=self.sandbox_lost,
        )  # fmt: skip

    def _end_if_failed(self, result: StepResult) -> StepResult:
        """End the episode if the score after a turn has failed."""
        if not self._has_failed or result.terminated:
            return result
        self._running = False
        return replace(
            result, terminated=True, truncated=False, valid=False, sandbox_lost=self.sandbox_lost
        )

    def note_failure(self, error: Exception) -> None:
        """Note that the agent has caused an exception. Raises it if the machine has failed."""
        try:
            if isinstance(error, SandboxKilledError):
                raise error
            if self._aborted or error is self._gold_error:
                raise error
            if raised := machine_error(error, self._workspace, self._test_machine):
                raise raised
        except SandboxKilledError as e:
            self._loss = str(e)
        else:
            self._action_error = describe_action_error(error)

    def _score_against(self, agent: State, gold: State) -> Score:
        """Return what the reward function gives. That it returns no Score is no agent's doing."""
        try:
            return score_states(self.reward_function, self.reward_name, self.task, agent, gold)
        except UsageError as e:
            self._gold_error = e
            raise

    def _failed_score(self) -> Score:
        """Return the score of an episode that has failed."""
        if self._action_error is not None:
            return Score(0.0, details={"action_error": self._action_error})
        return Score(0.0, details={"sandbox_lost": self._loss})
