"""Rules for replaying recorded episodes, and the registries of rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from intercode.core.errors import UnknownNameError
from intercode.core.logs.formats import is_native
from intercode.core.packages import GYM_DISTRIBUTION
from intercode.core.types import SUBMIT, Score, Step, Trajectory
from intercode.core.types.descriptions import load_function
from intercode.environments import ENVIRONMENTS
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.replay.comparison import StepComparison, difference_cause
from intercode.environments.recorded_descriptions import recorded_environment
from intercode_sandbox.registry import Registry, unknown_name_error

LOG_RULES = Registry("replay of log", {}, group="intercode.replay_rules", owner=GYM_DISTRIBUTION)
"""Rules for logs of other software, by format and environment: ``FORMAT.ENVIRONMENT``."""


class ReplayRules:
    """How recorded steps become actions again, and when two observations count as equal.

    One object replays many episodes, in several threads at once, and has no state of an episode.
    ``reusable``: an environment that has played one episode plays the next one as a new environment
    would.
    """

    reusable: ClassVar[bool] = False

    def dataset(self, name: str) -> str:
        """Return our name of the dataset that a record calls ``name``."""
        return name

    def settings(self, trajectory: Trajectory) -> Mapping[str, Any]:  # noqa: ARG002
        """Return settings for the environment of a log's episode beyond the common options, such as
        the ``reward`` with which it was scored."""
        return {}

    def executed_step(self, trajectory: Trajectory, step: Step) -> Step:  # noqa: ARG002
        """Return a step as the environment executed it, if the log holds it in another form."""
        return step

    def repeats_in(self, env: InterCodeEnv) -> bool:  # noqa: ARG002
        """Return whether ``play`` gives in this environment what the other software would give. If
        not, steps of its logs are executed there as any action."""
        return False

    def play(self, env: InterCodeEnv, step: Step) -> tuple[str, float | None]:
        """Execute a step of a log again. Return its observation, and its reward if one was
        recorded."""
        if step.action.split(None, 1)[:1] == [SUBMIT]:
            observation = env.episode.last_observation
        else:
            observation = env.execute(step.action).observation
        return observation, None if step.score is None else env.score().value

    def play_and_score(self, env: InterCodeEnv, step: Step) -> tuple[str, Score | None]:
        """Execute a step like ``play``, but return the whole score, for rules whose
        ``review_checks`` needs its parts."""
        observation, reward = self.play(env, step)
        return observation, None if reward is None else Score(reward)

    def review_checks(
        self,
        trajectory: Trajectory,  # noqa: ARG002
        checks: list[StepComparison],
    ) -> list[StepComparison]:
        """Return the steps of a log's episode after all of them were executed.

        Rules override this for what only the whole episode shows, such as the scorer of the record.
        """
        return checks

    def logged_observation(
        self,
        trajectory: Trajectory,  # noqa: ARG002
        step: Step,  # noqa: ARG002
        observation: str,
    ) -> str:
        """Return an observation as the log would hold it."""
        return observation

    def same(self, recorded: str, replayed: str) -> bool:
        """Return whether two observations of a log's episode count as equal."""
        return recorded == replayed

    def stable(self, trajectory: Trajectory, turn: int) -> bool | None:  # noqa: ARG002
        """Return whether a step is stable: it should give the recorded result on every machine.
        None if that is unknown."""
        return None

    def notes(self, steps: Sequence[StepComparison]) -> list[str]:  # noqa: ARG002
        """Return further findings on the replayed steps of a file, in sentences."""
        return []

    def cause(self, step: StepComparison) -> str:
        """Return the cause of a step's difference from its record, out of a fixed set."""
        return difference_cause(step)


def replay_rules_for(trajectory: Trajectory) -> ReplayRules:
    """Return the rules for an episode: those of its environment, or of the log that it is from."""
    name = recorded_environment(trajectory.run)
    if not is_native(trajectory):
        of_log: ReplayRules = LOG_RULES.load_named(f"{trajectory.run['source']}.{name}")()
        return of_log
    if not name:
        return ReplayRules()
    if name not in ENVIRONMENTS:
        error = unknown_name_error("environment", name, list(ENVIRONMENTS))
        raise UnknownNameError(f"{error}; a replay needs an environment with an entry point")
    own: ReplayRules = load_function(
        ENVIRONMENTS.load(name).description.replay_rules, ReplayRules
    )()
    return own
