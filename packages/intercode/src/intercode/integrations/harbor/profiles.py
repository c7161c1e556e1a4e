"""The profile ``standard`` of Harbor, with its settings: the task's steps and its own verifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from intercode.core.errors import SandboxKilledError, TaskSetupError
from intercode.core.settings import setting
from intercode.core.types import (
    ExecResult,
    Image,
    Layer,
    LayerSpec,
    Network,
    Score,
    State,
    Task,
)
from intercode.environments.base.episode import Episode
from intercode.environments.base.episode_context import EpisodeContext
from intercode.environments.base.layers import task_layer
from intercode.environments.base.profiles import Profile
from intercode.environments.base.settings import SandboxSettings
from intercode.environments.base.task_images import TaskImages
from intercode.environments.base.workspaces import SandboxWorkspace
from intercode.integrations.harbor.artifacts import copy_artifacts, run_collect_commands
from intercode.integrations.harbor.entry_point import start_entry_point
from intercode.integrations.harbor.preparation import (
    find_task_user,
    give_directories,
    prepare_step,
    run_health_check,
)
from intercode.integrations.harbor.reward import step_tests
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
from intercode_sandbox.streams import BaseProcess

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


class HarborProfile(Profile):
    """A shell in the image of the task, and the verifier of the task in another sandbox. Of a task
    with several steps, an answer ends a step."""

    def __init__(self, settings: HarborSettings) -> None:
        self._settings = settings
        self._images = TaskImages(settings.backend, bool(settings.image))  # of verifiers
        self._rewards: Rewards = {}

    # -------------------------------------------------------------- the sandbox
    @cached_property
    def _has_users(self) -> bool:
        return self._settings.determinism() is None and has_users(self._settings.backend)

    def sandbox_spec(
        self, task: Task, image: Image, layers: tuple[Layer, ...], network: Network
    ) -> SandboxSpec:
        config = _config(task)
        for owner in config.steps or [config]:
            if owner.separate is not None:  # an image that cannot be had shows now
                self._verifier_image(owner.separate, task, image)
        return self._spec(image, config, network, layers, users=self._has_users)

    def _spec(
        self,
        image: Image,
        settings: Config | SeparateVerifier,
        network: Network,
        layers: tuple[Layer, ...] = (),
        **more: Any,
    ) -> SandboxSpec:
        disk = min(settings.storage, MAX_DISK)
        limits = Limits(
            disk=disk, file_size=disk, memory=settings.memory, address_space=_ADDRESS_SPACE
        )
        with self._images.errors():
            logs = task_layer(_LOG_DIRECTORIES, image)
        return SandboxSpec(
            image,
            (logs, *layers),
            network=network if settings.allows_network else "none",
            limits=limits,
            env=settings.env,
            **more,
        )

    def session_key(self, task: Task) -> str:
        return _config(task).agent_user

    def open_session(self, sandbox: BaseSandbox, task: Task, state: SessionState | None) -> Session:
        user = find_task_user(sandbox, _config(task).agent_user)
        cwd = _start_directory(task, sandbox)
        if user is not None and state is None:
            give_directories(sandbox, user, cwd)
        return BashSession(sandbox, cwd=cwd, state=state, user=user)

    def prepare(self, workspace: SandboxWorkspace, task: Task) -> None:
        """Start the entry point of the image, run the health check, and prepare the first step."""
        config, sandbox = _config(task), workspace.sandbox
        entry = start_entry_point(sandbox)
        if check := config.health_check:
            run_health_check(sandbox, check, _start_directory(task, sandbox), entry=entry)
        _prepare_steps(sandbox, task, config.steps[:1])

    def restart_entry_point(self, sandbox: BaseSandbox, task: Task) -> BaseProcess | None:
        """Start the entry point over an agent's files and wait until the health check succeeds. If
        either fails, the agent may be the reason, so that has no further effect."""
        entry = None
        with suppress(TaskSetupError):
            entry = start_entry_point(sandbox)
            if entry is not None and (check := _config(task).health_check):
                run_health_check(sandbox, check, _start_directory(task, sandbox))
        return entry

    # --------------------------------------------------------------- the steps
    def reply_to_answer(self, episode: Episode, score: Score) -> tuple[str, bool] | None:  # noqa: ARG002
        """Go on to the next step, unless this is the last or its rewards are too low."""
        task, workspace = episode.task, episode.workspace
        assert isinstance(workspace, SandboxWorkspace)
        done, steps = len(episode.step_rewards) + 1, _config(task).steps
        if done >= len(steps) or not is_passed(steps[done - 1], self._rewards):
            return None
        try:
            _prepare_steps(workspace.sandbox, task, steps[done : done + 1])
        except (TaskSetupError, SandboxKilledError) as e:  # what the agent did may be the reason
            episode.last_result = ExecResult("", None, note=f"[{e}]")
            episode.loss = str(e) if isinstance(e, SandboxKilledError) else ""
            return None
        episode.step_rewards += (self._rewards,)
        return read_instruction(_folder(task), steps[done].name), False

    # ------------------------------------------------------------- the verdict
    def agent_state(
        self,
        episode: EpisodeContext,
        last: ExecResult | None,  # noqa: ARG002
        answer: str | None,
    ) -> State:
        task, config, done = episode.task, _config(episode.task), episode.step_rewards
        step = config.steps[len(done)] if config.steps else None
        given = step or config
        cwd, separate = _start_directory(task, episode.workspace.sandbox), given.separate
        tests = read_tests(_folder(task), step.name if step else "", separate)
        with ExitStack() as opened:
            copy = opened.enter_context(episode.workspace.sandbox.fork())
            sandbox, entry = copy, None
            if separate is not None:
                sandbox = opened.enter_context(self._open_verifier_sandbox(separate, episode))
                entry = start_entry_point(sandbox)

            def prepare() -> None:
                run_collect_commands(copy, given.collect, cwd)
                if separate is not None:
                    copy_artifacts(copy, sandbox, separate.artifacts)

            state = run_verifier(
                sandbox,
                {} if separate and separate.has_tests else tests,
                (separate.workdir or sandbox.spec.image.cwd or "/") if separate else cwd,
                given.verifier_env,
                given.verifier_seconds,
                prepare,
                given.verifier_user,
                lambda: self.restart_entry_point(sandbox, task) if separate is None else entry,
            )
        if step is not None:
            state = self._with_steps(state, config.steps, done)
        return replace(state, answer=answer)

    def _open_verifier_sandbox(
        self, separate: SeparateVerifier, episode: EpisodeContext
    ) -> BaseSandbox:
        agent = episode.spec
        image = self._verifier_image(separate, episode.task, agent.image)
        spec = self._spec(
            image,
            separate,
            self._settings.network,
            users=agent.users,
            determinism=agent.determinism,
            hostname=agent.hostname,
        )
        return open_sandbox(spec, episode.backend)

    def _verifier_image(self, separate: SeparateVerifier, task: Task, agent: Image) -> Image:
        if separate.image:
            return self._images.find(separate.image, False)
        if separate.directory:
            return self._images.find(f"dockerfile:{_folder(task) / separate.directory}", True)
        return agent

    def _with_steps(
        self, state: State, steps: Sequence[StepConfig], done: Sequence[Mapping[str, float]]
    ) -> State:
        """Return the state with the rewards of all steps so far as its tests."""
        self._rewards = {} if state.failed else {t.test: float(t.output or 0) for t in state.tests}
        pairs = zip(steps, (*done, self._rewards), strict=False)
        tests = [test for step, rewards in pairs for test in step_tests(step.name, rewards)]
        return replace(state, tests=tuple(tests))

    def gold_states(self, episode: EpisodeContext) -> list[State]:  # noqa: ARG002
        return [State()]

    def close(self) -> None:
        self._rewards = {}


def _config(task: Task) -> Config:
    return HarborPayload.of(task).config


def _folder(task: Task) -> Path:
    return Path(HarborPayload.of(task).folder)


def _start_directory(task: Task, sandbox: BaseSandbox) -> str:
    """Return the directory in which an episode starts: the task's, else the image's."""
    return task.cwd if task.cwd != "/" else sandbox.spec.image.cwd or "/"


def _prepare_steps(sandbox: BaseSandbox, task: Task, steps: Sequence[StepConfig]) -> None:
    cwd, user = _start_directory(task, sandbox), _config(task).agent_user
    for step in steps:
        prepare_step(sandbox, _folder(task), step, cwd, find_task_user(sandbox, user))
