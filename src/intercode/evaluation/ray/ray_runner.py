"""A run over nodes: agents, models, limits and files here, environments there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

from intercode.environments.base.env import InterCodeEnv
from intercode.evaluation.evaluate.plan import Plan, env_settings
from intercode.evaluation.ray.cluster import connect
from intercode.evaluation.ray.environment_spec import make_environment_spec
from intercode.evaluation.ray.host_manager import HostManager
from intercode.evaluation.ray.remote_env import RemoteEnv


@contextmanager
def ray_environments(plan: Plan) -> Iterator[Callable[[], InterCodeEnv]]:
    """What makes the environments of a run on the nodes of a cluster, while the context lasts.

    Raises ConfigError where Ray is not installed, UsageError where no cluster answers.
    """
    config, dataset = plan.config, plan.dataset
    with connect(config.address) as ray:
        settings = env_settings(config, dataset)
        with plan.make_env() as env:
            kit = make_environment_spec(env, dataset.environment, settings, plan.task_indices)
        with HostManager(kit, ray, config.parallel, _log) as hosts:
            # all that a rollout asks of an environment it has
            yield lambda: cast(InterCodeEnv, RemoteEnv(kit.dataset, manager=hosts))


def _log(text: str) -> None:
    print(text, file=sys.stderr)
