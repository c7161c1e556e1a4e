"""The pool for trainers over the nodes of a cluster."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Any

from intercode.envs import ENVIRONMENTS
from intercode.envs.base import InterCodeEnv
from intercode.pool import Pool
from intercode.runner.ray.cluster import connected
from intercode.runner.ray.hosts import Hosts
from intercode.runner.ray.kit import make_kit
from intercode.types import Dataset


class RayPool(Pool):
    """As ``intercode.Pool``, with the environments on the nodes of a Ray cluster.

    ``address``: see ``cluster.connected``. A group with a prefix lives on one node. When a node is
    lost, what its episodes are asked for raises SandboxLostError; begin them again, elsewhere.
    Raises what Pool raises, ConfigError where Ray is not installed, UsageError where no cluster
    answers.
    """

    def __init__(
        self,
        environment: str = "bash",
        size: int = 16,
        dataset: str | Dataset = "starter",
        *,
        address: str | None = None,
        idle: float | None = 600.0,
        **settings: Any,
    ) -> None:
        with ExitStack() as stack:
            env: InterCodeEnv = ENVIRONMENTS.load(environment)(dataset, **settings)
            with env:
                kit = make_kit(env, environment, settings, range(len(env.dataset)))
            ray = stack.enter_context(connected(address))
            self.hosts = stack.enter_context(Hosts(kit, ray, size))
            super().__init__(
                "intercode.runner.ray.far:FarEnv", size, env.dataset, idle=idle, hosts=self.hosts
            )
            self._nodes = stack.pop_all()

    async def close(self) -> None:
        """End every episode, free every sandbox, and leave the cluster. May be called again."""
        await super().close()
        await asyncio.get_running_loop().run_in_executor(None, self._nodes.close)

    def facts(self) -> dict[str, Any]:
        """What every result of this pool's environments has to name."""
        return dict(self.hosts.kit.facts)
