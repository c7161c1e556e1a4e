"""The Python environment: write code in an interpreter."""

from __future__ import annotations

from typing import ClassVar

from intercode.core.types import EnvironmentDescription, Payload
from intercode.datasets.payloads import PythonPayload
from intercode.environments.base.episode import Snapshots
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.environments.base.workspaces import SandboxWorkspace
from intercode.environments.languages import PYTHON
from intercode.environments.python.interpreter_snapshots import InterpreterSnapshots
from intercode.environments.python.profiles import (
    PythonProfile,
    PythonSettings,
    StandardPythonProfile,
)


class PythonEnv(SandboxedEnv):
    """Write a function, a class or a program; the reward is the share of hidden tests that pass.

    In the ``standard`` profile an action runs as at a prompt. ``submit`` runs the tests in a fresh
    sandbox on the code that was written; ``submit NAME`` does so for a function with another name
    than the tests call. Neither tests nor gold are ever in the agent's sandbox.

    >>> from intercode.environments import PythonEnv
    >>> with PythonEnv("starter") as env:
    ...     _ = env.reset(seed=1)
    ...     for action in env.task.solution_actions:
    ...         observation, reward, terminated, truncated, info = env.step(action)
    ...     print(env.score().value)
    1.0
    """

    settings_class: ClassVar[type[PythonSettings]] = PythonSettings
    settings: PythonSettings

    name: ClassVar[str] = "python"
    payload_type: ClassVar[type[Payload]] = PythonPayload
    description: ClassVar[EnvironmentDescription] = EnvironmentDescription(
        PYTHON,
        judged="What you have defined is judged, by tests that you do not see; what you print is "
        "not.",
        tool="run_code",
        argument="code",
        answer="name",
        judges_code=True,
        gold_is_hidden=True,
        state_code="print(dict(globals()))",
        example_action="1 + 1",
        programs=("python3",),
        observations="dictionary",
        harbor_files="intercode.environments.python.harbor:hidden_test_files",
    )
    snapshots_class: ClassVar[type[Snapshots]] = InterpreterSnapshots
    snapshots: InterpreterSnapshots
    standard_profile: ClassVar[type[PythonProfile]] = StandardPythonProfile
    profile_class: type[PythonProfile]
    scoring_version: ClassVar[int] = 3  # 3: lines end at line ends only

    def open_workspace(self) -> SandboxWorkspace:
        return self.snapshots.unused_or_new_workspace()

    def close(self) -> None:
        super().close()
        self.snapshots.close()
