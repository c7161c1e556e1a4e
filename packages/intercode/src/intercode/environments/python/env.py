"""The Python environment: write code in an interpreter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from intercode.core.types import Dataset, ExecResult, Layer, State, Task
from intercode.environments.python.interpreter_snapshots import LiveInterpreterEnv
from intercode.environments.python.profiles import PythonProfile, StandardPythonProfile
from intercode.sessions.python.session import PythonSession
from intercode_sandbox import SandboxSpec
from intercode_sandbox.contract import BaseSandbox


class PythonEnv(LiveInterpreterEnv):
    """Write a function, a class or a program; the reward is the share of hidden tests that pass.

    In the ``standard`` profile an action runs as at a prompt. ``submit`` runs the tests in a fresh
    sandbox on the code that was written; ``submit NAME`` does so for a function with another name
    than the tests call. Neither tests nor gold are ever in the agent's sandbox.

    ``interpreter``: the program in the image, Python 3.7 or later. ``test_timeout``: seconds per
    test (None: as for an action). The other settings are InterCodeEnv's.
    """

    name: ClassVar[str] = "python"
    standard_profile: ClassVar[type[PythonProfile]] = StandardPythonProfile
    profile_class: type[PythonProfile]
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
        self._profile_impl = self.profile_class(self.settings)

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
        self._profile_impl.require_gold(task)

    def _gold_states(self, task: Task) -> Iterable[State]:  # noqa: ARG002
        return self._profile_impl.gold_states(self._episode)
