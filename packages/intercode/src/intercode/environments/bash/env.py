"""The Bash environment: carry out a request in a shell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from intercode.core.errors import GoldError
from intercode.core.types import Dataset, EnvironmentDescription, State, Task
from intercode.environments.base import gold_cache
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.environments.bash.profiles import (
    SHELL_KINDS,
    BashProfile,
    ShellKind,
    StandardBashProfile,
    gold_failure,
)
from intercode.environments.languages import BASH
from intercode_sandbox.registry import unknown_name_error
from intercode_sandbox.validation import check_flag


class BashEnv(SandboxedEnv):
    """Answer a request in Bash; the reward compares the printed output and the file system.

    ``session`` is a setting of the ``standard`` profile. ``persistent``: one shell for the whole
    episode. ``fresh``: a new shell per action, in the directory of the last one. ``fresh-carried``:
    a new shell per action that also has the variables, functions and options of the last one.

    ``separate_stderr``: the observation shows stderr after stdout instead of merged into it, and
    the reward ignores it. ``use_gold_cache``: golds whose results `check` has found to be stable do
    not run again (``standard`` only). The other settings are InterCodeEnv's.
    """

    name: ClassVar[str] = "bash"
    scoring_version: ClassVar[int] = 4  # 4: lines end at line ends only
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
    standard_profile: ClassVar[type[BashProfile]] = StandardBashProfile
    profile_class: type[BashProfile]

    def __init__(
        self,
        dataset: str | Dataset = "starter",
        *,
        session: ShellKind = "persistent",
        separate_stderr: bool = False,
        use_gold_cache: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__(dataset, **settings)
        if session not in SHELL_KINDS:
            raise unknown_name_error("session", session, list(SHELL_KINDS))
        check_flag("separate_stderr", separate_stderr)
        check_flag("use_gold_cache", use_gold_cache)
        self.session, self.separate_stderr = session, separate_stderr
        self.settings |= {
            "session": session,
            "separate_stderr": separate_stderr,
            "use_gold_cache": use_gold_cache,
        }
        self._profile_impl: BashProfile = self.profile_class(self.settings)

    def _require_gold(self, task: Task) -> None:
        if not task.golds:
            raise GoldError(f"{task.id} has no gold: nothing to score against")

    def check_gold(self) -> None:
        """Raise GoldError if the current task cannot be scored because its gold fails, also by its
        exit status; see ``InterCodeEnv.check_gold`` and ``gold_failure``."""
        super().check_gold()
        if self.profile_class.runs_golds_separately:
            for state in self.episode.reached_golds():
                if failure := gold_failure(state):
                    raise GoldError(f"the gold of {self.task.id} fails: {failure}")

    def _gold_states(self, task: Task) -> Iterable[State]:
        self._require_gold(task)
        return super()._gold_states(task)

    def result_metadata(self) -> dict[str, Any]:
        golds = "cached" if self.use_gold_cache else "run"
        default = self.session == "persistent" and not self.separate_stderr
        options = (
            {} if default else {"session": self.session, "separate_stderr": self.separate_stderr}
        )
        return {**super().result_metadata(), "env_options": options, "golds": golds}

    @property
    def use_gold_cache(self) -> bool:
        """Whether golds that were found to be stable are read from the cache; see BashEnv."""
        return self._profile_impl.uses_gold_cache and gold_cache.is_enabled()

    @use_gold_cache.setter
    def use_gold_cache(self, value: bool) -> None:
        self._profile_impl.uses_gold_cache = value

    def cache_golds(self, states: Sequence[State], current_dates_only: bool) -> bool:
        """Save the golds' states; see ``gold_cache.CachesGolds``."""
        return self._profile_impl.cache_golds(self._episode, states, current_dates_only)
