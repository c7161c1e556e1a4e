"""The sandbox of a sample of our tasks, which belongs to one of our environments."""
# ruff: noqa: ARG003 - the signatures are Inspect's

from __future__ import annotations

from typing import Any

from anyio.to_thread import run_sync
from inspect_ai.util import SandboxEnvironment, sandboxenv
from pydantic import BaseModel, ConfigDict

import intercode
from intercode.core.types import ExecResult
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.sandboxed_env import uses_sandbox
from intercode.integrations.inspect.sandbox import InterCodeSandbox
from intercode_sandbox import Result, Sandbox
from intercode_sandbox.api.results import shell_status


class EnvironmentConfig(BaseModel):
    """The environment and dataset of a sample, whose metadata names its ``task``. ``settings`` are
    those of ``intercode.make``."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    environment: str
    dataset: str
    settings: dict[str, Any] = {}

    def __hash__(self) -> int:  # Inspect keeps configurations in sets
        return hash(self.model_dump_json())


@sandboxenv(name="intercode-environment")
class EnvironmentSandbox(InterCodeSandbox):
    """The sandbox of an environment of ours, in which its task has begun.

    Args:
        env: The environment. It is closed with the sandbox.

    >>> import asyncio
    >>> import intercode
    >>> from intercode.integrations.inspect import EnvironmentSandbox
    >>> with intercode.make("bash") as env:
    ...     _ = env.reset(seed=1)
    ...     print(asyncio.run(EnvironmentSandbox(env).exec(["echo", "1"])).stdout.strip())
    1
    """

    def __init__(self, env: InterCodeEnv) -> None:
        self.env = env
        sandbox = Sandbox.from_base(env.sandbox) if uses_sandbox(env) else None
        super().__init__(sandbox, env.working_directory)

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> EnvironmentConfig:
        return EnvironmentConfig(**config)

    @classmethod
    async def task_init(cls, task_name: str, config: Any) -> None:
        """Do nothing: the first environment finds the image."""

    @classmethod
    async def sample_init(
        cls,
        task_name: str,
        config: Any,
        metadata: dict[str, str],
    ) -> dict[str, SandboxEnvironment]:
        return {"default": await run_sync(cls._begin, config, metadata["task"])}

    @classmethod
    def _begin(cls, config: EnvironmentConfig, task: str) -> EnvironmentSandbox:
        env = intercode.make(config.environment, config.dataset, **config.settings)
        try:
            env.reset(options={"task": task})
            return cls(env)
        except BaseException:
            env.close()
            raise

    def record(self, result: Result) -> None:
        if uses_sandbox(self.env):
            code = None if result.exit_code is None else shell_status(result.exit_code)
            shown = ExecResult(result.stdout, code, result.timed_out, stderr=result.stderr)
            self.env.episode.last_result = shown

    def close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.release()
            self._sandbox = None
        super().close()
        self.env.close()
