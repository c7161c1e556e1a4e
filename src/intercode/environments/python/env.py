"""Python: write what a sentence asks for, in an interpreter of your own."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

from intercode.core.errors import UsageError
from intercode.core.types import Dataset, ExecResult, Layer, Score, State, Task
from intercode.environments.python.interpreter_env import LiveEnv
from intercode.environments.python.profiles import Original, PythonProfile, Standard
from intercode.sandbox import SandboxSpec
from intercode.sandbox.supervisor.client import KeptSandbox
from intercode.sessions.python.session import PythonSession

_SLACK = 2  # times as long as before may an action take that is run again


class PythonEnv(LiveEnv):
    """Write a function, a class or a program; the reward is the share of hidden tests that pass.

    In the ``standard`` profile an action runs as at a prompt, and ``submit``, or ``submit NAME``
    for a function that is called otherwise than the tests call it, has the tests run in a fresh box
    on the code that was written: neither they nor the gold are ever in the agent's. In ``original``
    there are the authors' service, its dictionaries as observations, and its way of counting.

    ``interpreter``: the program in the image, Python 3.7 or later. ``test_timeout``: seconds per
    test (None: as many as for an action). The other settings are InterCodeEnv's.
    """

    name: ClassVar[str] = "python"

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
        self._settings |= {"interpreter": interpreter, "test_timeout": test_timeout}

    @cached_property
    def _way(self) -> PythonProfile:
        if self.profile == "original":
            return Original(self.interpreter, self._open_place)
        patience = _SLACK * self.timeout
        return Standard(self.interpreter, self._open_place, self.test_timeout, patience)

    def facts(self) -> dict[str, Any]:
        options = {"interpreter": self.interpreter, "test_timeout": self.test_timeout}
        return {**super().facts(), "env_options": options}

    def _make_spec(self, layers: tuple[Layer, ...]) -> SandboxSpec:
        return SandboxSpec(self.image, layers, network=self.network)

    def _open_session(self, box: KeptSandbox, task: Task, state: Any) -> PythonSession:
        return self._way.open_session(box, task, state)

    def _close_episode(self) -> None:
        self._way.close()
        super()._close_episode()

    def _agent_state(self, last: ExecResult | None, answer: str | None) -> State:
        return self._way.agent_state(self._here, last, self.task, answer)

    def _gold_states(self, task: Task) -> list[State]:
        return self._way.gold_states(task)

    def regrade(self) -> Score:
        """Score as the authors' runner does after an action that begins with ``def``: the
        namespace holds the set-up and the gold afterwards, and nothing of the agent's. Raises
        UsageError in another profile than ``original``."""
        if not isinstance(self._way, Original):
            raise UsageError("regrade belongs to the original profile: use score")
        score = self.score()
        self._way.load_gold(self._here, self.task)
        return score
