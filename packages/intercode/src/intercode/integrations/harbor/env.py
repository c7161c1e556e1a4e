"""The Harbor environment: a shell in the task's own image, and the task's own verifier."""

from __future__ import annotations

from typing import Any, ClassVar

from intercode.core.errors import DataError
from intercode.core.types import EnvironmentDescription, Payload, Task
from intercode.environments.base.episode import Snapshots
from intercode.environments.base.sandboxed_env import FileSnapshots
from intercode.environments.base.task_images import TaskImageEnv
from intercode.environments.base.workspaces import SandboxWorkspace, closed_on_error
from intercode.environments.languages import BASH
from intercode.integrations.harbor.profiles import HarborProfile, HarborSettings
from intercode.integrations.harbor.reward import runs_among_agent_files
from intercode.integrations.harbor.tasks.task_directory import HarborPayload


class HarborSnapshots(FileSnapshots):
    """Saves files. After a restore, the entry point of the image starts again."""

    env: HarborEnv

    def restore(self, captured: Any, consume: bool = False) -> SandboxWorkspace:
        task = self.env.task
        steps = len(HarborPayload.of(task).config.steps)
        submitted = len(self.env.episode.step_rewards)
        if submitted and submitted >= steps:
            raise DataError(f"the snapshot has {submitted} finished steps, and its task {steps}")
        with closed_on_error(super().restore(captured, consume)) as workspace:
            self.env._profile_impl.restart_entry_point(workspace.sandbox, task)
            return workspace


class HarborEnv(TaskImageEnv):
    """Do what the task's ``instruction.md`` says, in a shell that lives as long as the episode.

    Each task has its own image. It is the one that task.toml names, or it is built from the task's
    Dockerfile on first use; with ``build``, a Dockerfile takes precedence. The setting ``image``
    replaces the image of every task. ``score`` copies the files of the agent's sandbox into another
    sandbox, adds the tests and runs ``tests/test.sh``. The agent cannot read the tests, and none of
    its processes runs during them. A verifier that was killed or left processes gives no reward.
    Of a task with several steps, ``submit`` ends a step, and the episode after the last one.

    The arguments are those of ``intercode.make`` after the environment.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import intercode
    >>> from intercode.integrations.harbor import HarborEnv
    >>> files = {
    ...     "task.toml": "",
    ...     "instruction.md": "Write 1 to a.txt.",
    ...     "environment/Dockerfile": "FROM host\\nWORKDIR /work\\n",
    ...     "tests/test.sh": "grep -qx 1 /work/a.txt && echo 1 > /logs/verifier/reward.txt",
    ... }
    >>> with TemporaryDirectory() as directory:
    ...     for name, text in files.items():
    ...         Path(directory, name).parent.mkdir(exist_ok=True)
    ...         _ = Path(directory, name).write_text(text)
    ...     with HarborEnv(f"harbor:{directory}") as env:
    ...         _ = env.reset(seed=1), env.step("echo 1 > a.txt")
    ...         print(env.score().value)
    1.0
    """

    settings_class: ClassVar[type[HarborSettings]] = HarborSettings
    settings: HarborSettings

    name: ClassVar[str] = "harbor"
    payload_type: ClassVar[type[Payload]] = HarborPayload
    description: ClassVar[EnvironmentDescription] = EnvironmentDescription(
        BASH,
        judged="The state that you leave is judged, by a test.",
        tool="run_command",
        argument="command",
        answer="",
        gold_is_hidden=True,
        image="per-task",
        state_code="set; alias",
    )
    scoring_version: ClassVar[int] = 2
    scores_output: ClassVar[bool] = False  # test runners print how long they took
    snapshots_class: ClassVar[type[Snapshots]] = HarborSnapshots
    standard_profile: ClassVar[type[HarborProfile]] = HarborProfile
    _profile_impl: HarborProfile

    def image_name_of(self, task: Task) -> str:
        payload = HarborPayload.of(task)
        return (self.settings.build and payload.dockerfile) or payload.image

    def image_key_of(self, task: Task) -> str:
        return HarborPayload.of(task).setup

    @staticmethod
    def obstacle_for_programs(task: Task) -> str:
        config = HarborPayload.of(task).config
        if len(config.steps) > 1:
            return "several steps"
        return f"the user {config.agent_user!r}" if config.agent_user else ""

    def result_metadata(self) -> dict[str, Any]:
        configs = [HarborPayload.of(task).config for task in self.dataset.tasks]
        return {
            **super().result_metadata(),
            "unprotected_verifiers": sum(map(runs_among_agent_files, configs)),
        }
