"""The Bash environment: carry out a request in a shell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from intercode.core.errors import GoldError
from intercode.core.types import EnvironmentDescription, Payload, State
from intercode.datasets.payloads import BashPayload
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.environments.bash.profiles import (
    BashProfile,
    BashSettings,
    StandardBashProfile,
    gold_failure,
)
from intercode.environments.languages import BASH


class BashEnv(SandboxedEnv):
    """Answer a request in Bash; the reward compares the printed output and the file system.

    >>> from intercode.environments import BashEnv
    >>> with BashEnv("starter") as env:
    ...     _ = env.reset(seed=1)
    ...     for action in env.task.solution_actions:
    ...         observation, reward, terminated, truncated, info = env.step(action)
    ...     print(env.score().value)
    1.0
    """

    settings_class: ClassVar[type[BashSettings]] = BashSettings
    settings: BashSettings

    name: ClassVar[str] = "bash"
    scoring_version: ClassVar[int] = 5  # 5: what is unread is never equal
    description: ClassVar[EnvironmentDescription] = EnvironmentDescription(
        BASH,
        judged="Both the lasting changes and the output of your latest block are judged. Print "
        "what the task asks for and nothing else.",
        tool="run_command",
        argument="command",
        answer="",
        state_code="set; alias; history",
        example_action="pwd",
    )
    payload_type: ClassVar[type[Payload]] = BashPayload
    standard_profile: ClassVar[type[BashProfile]] = StandardBashProfile
    profile_class: type[BashProfile]
    _profile_impl: BashProfile

    def check_gold(self) -> None:
        """Raise GoldError if the current task cannot be scored because its gold fails, also by its
        exit status; see ``InterCodeEnv.check_gold`` and ``gold_failure``."""
        super().check_gold()
        if self.profile_class.runs_golds_separately:
            for state in self.episode.reached_golds():
                if failure := gold_failure(state):
                    raise GoldError(f"the gold of {self.task.id} fails: {failure}")

    def result_metadata(self) -> dict[str, Any]:
        golds = "cached" if self.use_gold_cache else "run"
        return {**super().result_metadata(), "golds": golds}

    @property
    def use_gold_cache(self) -> bool:
        """Whether golds that were found to be stable are read from the cache; see BashEnv."""
        return self._profile_impl.uses_gold_cache

    @use_gold_cache.setter
    def use_gold_cache(self, value: bool) -> None:
        self._profile_impl.uses_gold_cache = value

    def may_cache_golds(self) -> bool:
        """Return whether golds may be cached; see ``gold_cache.CachesGolds``."""
        return self._profile_impl.may_cache_golds(self.context)

    def cache_golds(self, states: Sequence[State]) -> bool:
        """Save the golds' states; see ``gold_cache.CachesGolds``."""
        return self._profile_impl.cache_golds(self.context, states)
