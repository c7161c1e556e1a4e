"""The Python environment: write code in an interpreter."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

from intercode.core.errors import UsageError
from intercode.core.types import Dataset, ExecResult, Layer, Score, State, Task
from intercode.environments.python.interpreter_snapshots import LiveInterpreterEnv
from intercode.environments.python.profiles import (
    OriginalPythonProfile,
    PythonProfile,
    StandardPythonProfile,
    gold_function_name,
)
from intercode.sessions.python.session import PythonSession
from intercode_sandbox import SandboxSpec
from intercode_sandbox.contract import BaseSandbox

_RERUN_TIMEOUT_FACTOR = 2  # how many times as long an action may take when it is run again


class PythonEnv(LiveInterpreterEnv):
    """Write a function, a class or a program; the reward is the share of hidden tests that pass.

    In the ``standard`` profile an action runs as at a prompt. ``submit`` runs the tests in a fresh
    sandbox on the code that was written; ``submit NAME`` does so for a function with another name
    than the tests call. Neither tests nor gold are ever in the agent's sandbox. The ``original``
    profile has the authors' service, its dictionaries as observations, and its way of counting.

    ``interpreter``: the program in the image, Python 3.7 or later. ``test_timeout``: seconds per
    test (None: as for an action). The other settings are InterCodeEnv's.
    """

    name: ClassVar[str] = "python"
    scoring_version: ClassVar[int] = 3  # 3: lines end at line ends only

    def __init__(
        self,
        dataset: str | Dataset = "starter",
        *,
        interpreter: str = "python3",
        test_timeout: float | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(dataset, **settings)
        self.interpreter, self.test_timeout = interpreter, test_timeout or self.timeout
        self.settings |= {"interpreter": interpreter, "test_timeout": test_timeout}

    @cached_property
    def _profile_impl(self) -> PythonProfile:
        if self.profile == "original":
            return OriginalPythonProfile(self.interpreter)
        rerun_timeout = _RERUN_TIMEOUT_FACTOR * self.timeout
        return StandardPythonProfile(self.interpreter, self.test_timeout, rerun_timeout)

    def result_metadata(self) -> dict[str, Any]:
        options = {"interpreter": self.interpreter, "test_timeout": self.test_timeout}
        return {**super().result_metadata(), "env_options": options}

    def _make_spec(self, layers: tuple[Layer, ...]) -> SandboxSpec:
        return SandboxSpec(self.image, layers, network=self.network)

    def _open_session(self, sandbox: BaseSandbox, task: Task, state: Any) -> PythonSession:
        return self._profile_impl.open_session(sandbox, task, state)

    def _close_episode(self) -> None:
        self._profile_impl.close()
        super()._close_episode()

    def _agent_state(self, last: ExecResult | None, answer: str | None) -> State:
        return self._profile_impl.agent_state(self._episode, last, answer)

    def _require_gold(self, task: Task) -> None:
        if isinstance(self._profile_impl, OriginalPythonProfile):
            gold_function_name(task)

    def _gold_states(self, task: Task) -> list[State]:  # noqa: ARG002
        return self._profile_impl.gold_states(self._episode)

    def score_and_load_gold(self) -> Score:
        """Score as the authors' runner does after an action that begins with ``def``.

        Afterwards the namespace holds the set-up and the gold, and nothing of the agent's. Raises
        UsageError in another profile than ``original``.
        """
        if not isinstance(self._profile_impl, OriginalPythonProfile):
            raise UsageError("score_and_load_gold needs the original profile: use score")
        score = self.score()
        self._profile_impl.load_gold(self._episode)
        return score
