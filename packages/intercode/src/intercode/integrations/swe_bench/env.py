"""The SWE-bench environment: a shell in a repository, whose difference from its start is tested."""

from __future__ import annotations

from typing import ClassVar

from intercode.core.types import EnvironmentDescription, Payload, Task
from intercode.environments.base.profiles import Profile
from intercode.environments.base.task_images import TaskImageEnv
from intercode.environments.languages import BASH
from intercode.integrations.swe_bench.profiles import SweBenchProfile, SweBenchSettings
from intercode.integrations.swe_bench.rows import SweBenchPayload


class SweBenchEnv(TaskImageEnv):
    """Solve the problem of an issue in the repository that the image of the task has in /testbed.

    The repositories of the image have no later commits than the task's:
    see ``later_commits_layer``.

    The answer is the difference of the repository from its start, without files that git ignores.
    ``score`` applies it in a fresh sandbox, adds the tests of the task there, and runs them; see
    grading.py. The setting ``image`` replaces the image of every task.

    The arguments are those of ``intercode.make`` after the environment.

    >>> import json
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from intercode.integrations.swe_bench import SweBenchEnv
    >>> row = {"instance_id": "me__it-1", "repo": "me/it", "base_commit": "0" * 40}
    >>> row |= {"problem_statement": "f(0) fails.", "patch": "...", "test_patch": "..."}
    >>> row |= {"FAIL_TO_PASS": ["test_f.py::test_0"], "PASS_TO_PASS": [], "image": "mine"}
    >>> with TemporaryDirectory() as directory:
    ...     rows = Path(directory, "rows.jsonl")
    ...     _ = rows.write_text(json.dumps(row))
    ...     with SweBenchEnv(f"swe-bench:{rows}") as env:
    ...         print(env.dataset.tasks[0].query)
    f(0) fails.
    """

    settings_class: ClassVar[type[SweBenchSettings]] = SweBenchSettings
    settings: SweBenchSettings

    name: ClassVar[str] = "swe-bench"
    payload_type: ClassVar[type[Payload]] = SweBenchPayload
    description: ClassVar[EnvironmentDescription] = EnvironmentDescription(
        BASH,
        judged="The repository that you leave is tested.",
        tool="run_command",
        argument="command",
        answer="",
        image="per-task",
        state_code="set; alias",
    )
    scores_output: ClassVar[bool] = False  # pytest prints how long it took
    standard_profile: ClassVar[type[Profile]] = SweBenchProfile

    def image_name_of(self, task: Task) -> str:
        return SweBenchPayload.of(task).image

    def image_key_of(self, task: Task) -> str:
        return SweBenchPayload.of(task).image
