"""The Capture-the-Flag environment: a task is to find a flag that is hidden in files."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from intercode.core.errors import DataError
from intercode.core.types import Brief, EnvironmentDescription, Payload, Task
from intercode.datasets.payloads import CtfPayload
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.environments.base.workspaces import SandboxWorkspace
from intercode.environments.ctf.profiles import CtfProfile
from intercode.environments.languages import BASH

INSTRUCTIONS = (
    "The files of the task, if it has any, are in the directory where you start. `submit FLAG`, as "
    "an action of its own, hands the flag in; a wrong one costs a turn."
)


class CTFEnv(SandboxedEnv):
    """Find a hidden flag with Bash in the task's own folder, and ``submit FLAG``.

    The correct flag ends the episode with reward 1. After a wrong flag the episode continues.
    ``submit`` without a flag ends the episode.

    The flag is compared outside the sandbox, which contains only the files of this task. The files
    of a starter task are generated from the seed of ``reset``.

    >>> from intercode.environments import CTFEnv
    >>> with CTFEnv("starter") as env:
    ...     _ = env.reset(options={"task": "starter/ctf/rails"})
    ...     observation = env.step(env.task.gold)[0]  # which prints the flag
    ...     print(env.step(f"submit {observation.strip()}")[1])
    1.0
    """

    name: ClassVar[str] = "ctf"
    description: ClassVar[EnvironmentDescription] = EnvironmentDescription(
        BASH,
        judged="The flag is judged, once you hand it in. A wrong flag costs a turn.",
        tool="run_command",
        argument="command",
        answer="flag",
        answer_required=True,
        expects_answer=True,
        gold_is_hidden=True,
        state_code="set",
        example_action="ls",
        harbor_files="intercode.environments.ctf.harbor:flag_files",
        replay_rules="intercode.environments.ctf.replay_rules:CtfReplayRules",
    )
    payload_type: ClassVar[type[Payload]] = CtfPayload
    standard_profile: ClassVar[type[CtfProfile]] = CtfProfile

    def brief_of(self, task: Task) -> Brief:
        brief = super().brief_of(task)
        return replace(brief, notes=f"{INSTRUCTIONS}\n{brief.notes}".strip())

    def open_workspace(self) -> SandboxWorkspace:
        if absent := [spec.path for spec in self.task.files if not spec.path.exists()]:
            raise DataError(f"the files of {self.task.id} are missing: there is no {absent[0]}")
        return super().open_workspace()
