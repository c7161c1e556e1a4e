"""The Harbor environment: a shell in the task's own image, and the task's own verifier."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from intercode.core.errors import DataError, SandboxKilledError, TaskSetupError
from intercode.core.settings import setting
from intercode.core.types import (
    Dataset,
    EnvironmentDescription,
    ExecResult,
    Image,
    Layer,
    LayerSpec,
    Payload,
    Score,
    State,
    Task,
)
from intercode.environments.base.layers import task_layer
from intercode.environments.base.sandboxed_env import TaskImageEnv
from intercode.environments.base.settings import SandboxSettings
from intercode.environments.base.workspaces import SandboxWorkspace, closed_on_error
from intercode.environments.languages import BASH
from intercode.integrations.harbor.artifacts import copy_artifacts, run_collect_commands
from intercode.integrations.harbor.entry_point import start_entry_point
from intercode.integrations.harbor.preparation import (
    find_task_user,
    give_directories,
    prepare_step,
    run_health_check,
)
from intercode.integrations.harbor.reward import runs_among_agent_files, step_tests
from intercode.integrations.harbor.tasks.separate_verifier import SeparateVerifier
from intercode.integrations.harbor.tasks.steps import Rewards, StepConfig, is_passed
from intercode.integrations.harbor.tasks.task_directory import (
    HarborPayload,
    read_instruction,
    read_tests,
)
from intercode.integrations.harbor.tasks.task_toml import Config
from intercode.integrations.harbor.verifier import run_verifier
from intercode.sessions.base import Session, SessionState
from intercode.sessions.bash.persistent import BashSession
from intercode_sandbox import SandboxSpec, open_sandbox
from intercode_sandbox.backends import has_users
from intercode_sandbox.contract import BaseSandbox, Limits
from intercode_sandbox.streams import Process

MAX_DISK = 4 << 30
"""The largest disk limit in bytes. A task cannot get more, because the disk may be in memory."""
_ADDRESS_SPACE = 64 << 30  # bytes: Go, Java and Node reserve far more than they use
_LOG_DIRECTORIES = LayerSpec("script", Path(__file__).with_name("create_log_directories.sh"))


@dataclass(frozen=True, kw_only=True)
class HarborSettings(SandboxSettings):
    """The settings of Harbor."""

    timeout: float = setting(120.0, "seconds for each action")
    build: bool = setting(
        False,
        "a Dockerfile takes precedence over the image that task.toml names",
        recorded=True,
        from_record=lambda value: value is False,
    )


class HarborEnv(TaskImageEnv):
    """Do what the task's ``instruction.md`` says, in a shell that lives as long as the episode.

    Each task has its own image. It is the one that task.toml names, or it is built from the task's
    Dockerfile on first use; with ``build``, a Dockerfile takes precedence. The setting ``image``
    replaces the image of every task. ``score`` copies the files of the agent's sandbox into another
    sandbox, adds the tests and runs ``tests/test.sh``. The agent cannot read the tests, and none of
    its processes runs during them. A verifier that was killed or left processes gives no reward.
    Of a task with several steps, ``submit`` ends a step, and the episode after the last one.
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

    def __init__(self, dataset: str | Dataset, **settings: Any) -> None:
        super().__init__(dataset, **settings)
        self._rewards: Rewards = {}

    # ---------------------------------------------------------------- the task
    def _task_image_name(self, task: Task) -> str:
        payload = HarborPayload.of(task)
        return (self.settings.build and payload.dockerfile) or payload.image

    def _task_image_key(self, task: Task) -> str:
        return HarborPayload.of(task).setup

    @staticmethod
    def obstacle_for_programs(task: Task) -> str:
        config = HarborPayload.of(task).config
        if len(config.steps) > 1:
            return "several steps"
        return f"the user {config.agent_user!r}" if config.agent_user else ""

    @property
    def _config(self) -> Config:
        return HarborPayload.of(self.task).config

    def result_metadata(self) -> dict[str, Any]:
        configs = [HarborPayload.of(task).config for task in self.dataset.tasks]
        return {
            **super().result_metadata(),
            "unprotected_verifiers": sum(map(runs_among_agent_files, configs)),
        }

    def _make_spec(self, layers: tuple[Layer, ...]) -> SandboxSpec:
        return self._sandbox_spec(self.image, self._config, layers)

    def _sandbox_spec(
        self, image: Image, settings: Config | SeparateVerifier, layers: tuple[Layer, ...] = ()
    ) -> SandboxSpec:
        disk = min(settings.storage, MAX_DISK)
        limits = Limits(
            disk=disk, file_size=disk, memory=settings.memory, address_space=_ADDRESS_SPACE
        )
        with self._task_image_errors():
            logs = task_layer(_LOG_DIRECTORIES, image)
        network = self.network if settings.allows_network else "none"
        return SandboxSpec(
            image,
            (logs, *layers),
            network=network,
            limits=limits,
            env=settings.env,
            users=self._has_users,
        )

    def _open_session(
        self, sandbox: BaseSandbox, task: Task, state: SessionState | None
    ) -> Session:
        user = find_task_user(sandbox, HarborPayload.of(task).config.agent_user)
        cwd = self._start_directory(task)
        if user is not None and state is None:
            give_directories(sandbox, user, cwd)
        return BashSession(sandbox, cwd=cwd, state=state, user=user)

    @cached_property
    def _has_users(self) -> bool:
        return self.determinism is None and has_users(self.backend)

    @property
    def _prewarm_key(self) -> Any:
        return super()._prewarm_key, self._config.agent_user

    def _start_directory(self, task: Task) -> str:
        """Return the directory in which an episode starts: the task's, else the image's."""
        return task.cwd if task.cwd != "/" else self.image.cwd or "/"

    # --------------------------------------------------------------- the steps
    @property
    def _folder(self) -> Path:
        return Path(HarborPayload.of(self.task).folder)

    @property
    def _step(self) -> StepConfig | None:
        """The current step of a task with several."""
        steps = self._config.steps
        return steps[len(self.episode.step_rewards)] if steps else None

    def _open_workspace(self, task: Task) -> SandboxWorkspace:
        self._rewards = {}
        for owner in self._config.steps or [self._config]:
            if owner.separate is not None:
                self._verifier_image(owner.separate)  # an image that cannot be had shows now
        return super()._open_workspace(task)

    def _acquire_workspace(self) -> SandboxWorkspace:
        with closed_on_error(super()._acquire_workspace()) as workspace:
            entry = start_entry_point(workspace.sandbox)
            if check := self._config.health_check:
                cwd = self._start_directory(self.task)
                run_health_check(workspace.sandbox, check, cwd, entry=entry)
            self._prepare(workspace.sandbox, self._config.steps[:1])
            return workspace

    def _restore_workspace(self, captured: Any, consume: bool = False) -> SandboxWorkspace:
        steps, submitted = len(self._config.steps), len(self.episode.step_rewards)
        if submitted and submitted >= steps:
            raise DataError(f"the snapshot has {submitted} finished steps, and its task {steps}")
        with closed_on_error(super()._restore_workspace(captured, consume)) as workspace:
            self._restart_entry_point(workspace.sandbox)
            return workspace

    def _restart_entry_point(self, sandbox: BaseSandbox) -> Process | None:
        """Start the entry point over an agent's files and wait until the health check succeeds. If
        either fails, the agent may be the reason, so that has no further effect."""
        entry = None
        with suppress(TaskSetupError):
            entry = start_entry_point(sandbox)
            if entry is not None and (check := self._config.health_check):
                run_health_check(sandbox, check, self._start_directory(self.task))
        return entry

    def _prepare(self, sandbox: BaseSandbox, steps: Sequence[StepConfig]) -> None:
        for step in steps:
            user = find_task_user(sandbox, self._config.agent_user)
            prepare_step(sandbox, self._folder, step, self._start_directory(self.task), user)

    def _reply_to_answer(self, score: Score) -> tuple[str, bool] | None:  # noqa: ARG002
        """Go on to the next step, unless this is the last or its rewards are too low."""
        done, steps = len(self.episode.step_rewards) + 1, self._config.steps
        if done >= len(steps) or not is_passed(steps[done - 1], self._rewards):
            return None
        try:
            self._prepare(self._current_workspace.sandbox, steps[done : done + 1])
        except (TaskSetupError, SandboxKilledError) as e:  # what the agent did may be the reason
            self.episode.last_result = ExecResult("", None, note=f"[{e}]")
            self.episode.loss = str(e) if isinstance(e, SandboxKilledError) else ""
            return None
        self.episode.step_rewards += (self._rewards,)
        return read_instruction(self._folder, steps[done].name), False

    # ------------------------------------------------------------- the verdict
    def _agent_state(self, last: ExecResult | None, answer: str | None) -> State:  # noqa: ARG002
        config, step = self._config, self._step
        given = step or config
        cwd, separate = self._start_directory(self.task), given.separate
        tests = read_tests(self._folder, step.name if step else "", separate)
        with ExitStack() as opened:
            copy = opened.enter_context(self._current_workspace.sandbox.fork())
            sandbox, entry = copy, None
            if separate is not None:
                sandbox = opened.enter_context(self._open_verifier_sandbox(separate))
                entry = start_entry_point(sandbox)

            def prepare() -> None:
                run_collect_commands(copy, given.collect, cwd)
                if separate is not None:
                    copy_artifacts(copy, sandbox, separate.artifacts)

            state = run_verifier(
                sandbox,
                {} if separate and separate.has_tests else tests,
                self._verifier_directory(separate) if separate else cwd,
                given.verifier_env,
                given.verifier_seconds,
                prepare,
                given.verifier_user,
                lambda: self._restart_entry_point(sandbox) if separate is None else entry,
            )
        if step is not None:
            state = self._with_steps(state)
        return replace(state, answer=answer)

    def _open_verifier_sandbox(self, separate: SeparateVerifier) -> BaseSandbox:
        spec = self._sandbox_spec(self._verifier_image(separate), separate)
        return open_sandbox(self._with_determinism(spec), self.backend)

    def _verifier_directory(self, separate: SeparateVerifier) -> str:
        return separate.workdir or self._verifier_image(separate).cwd or "/"

    def _verifier_image(self, separate: SeparateVerifier) -> Image:
        if separate.image:
            return self._find_image(separate.image, False)
        if separate.directory:
            return self._find_image(f"dockerfile:{self._folder / separate.directory}", True)
        return self.image

    def _with_steps(self, state: State) -> State:
        """Return the state with the rewards of all steps so far as its tests."""
        self._rewards = {} if state.failed else {t.test: float(t.output or 0) for t in state.tests}
        pairs = zip(self._config.steps, (*self.episode.step_rewards, self._rewards), strict=False)
        tests = [test for step, rewards in pairs for test in step_tests(step.name, rewards)]
        return replace(state, tests=tuple(tests))

    def _gold_states(self, task: Task) -> list[State]:  # noqa: ARG002
        return [State()]
