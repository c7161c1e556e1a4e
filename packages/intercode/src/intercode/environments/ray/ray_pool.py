"""The pool of environments for trainers, on the nodes of a cluster."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Any

from intercode.core.types import Dataset
from intercode.environments import ENVIRONMENTS
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.options import check_training
from intercode.environments.base.pool import Pool
from intercode.environments.ray.cluster import connect
from intercode.environments.ray.environment_spec import make_environment_spec
from intercode.environments.ray.host_manager import HostManager


class RayPool(Pool):
    """Like ``intercode.Pool``, with the environments on the nodes of a Ray cluster.

    For ``address`` see ``cluster.connect``. A group with a prefix is on one node. If a node is
    lost, calls of its episodes raise SandboxLostError; later episodes are on other nodes.
    Raises what Pool raises, ConfigError if Ray is not installed, UsageError if no cluster answers.
    """

    def __init__(
        self,
        environment: str = "bash",
        size: int = 16,
        dataset: str | Dataset = "starter",
        *,
        address: str | None = None,
        idle_timeout: float | None = 600.0,
        allow_exploitable: bool = False,
        **settings: Any,
    ) -> None:
        check_training(settings, allow_exploitable)
        with ExitStack() as stack:
            env: InterCodeEnv = ENVIRONMENTS.load(environment)(dataset, **settings)
            with env:
                spec = make_environment_spec(env, environment, settings, range(len(env.dataset)))
            ray = stack.enter_context(connect(address))
            self.manager = stack.enter_context(HostManager(spec, ray, size))
            super().__init__(
                "intercode.environments.ray.remote_env:NodeEnv",
                size,
                env.dataset,
                idle_timeout=idle_timeout,
                manager=self.manager,
            )
            self._resources = stack.pop_all()

    async def close(self) -> None:
        """End every episode, free every sandbox, and disconnect. May be called again."""
        try:
            await super().close()
        finally:
            await asyncio.get_running_loop().run_in_executor(None, self._resources.close)
