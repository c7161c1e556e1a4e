"""A run over nodes: agents, models, limits and files here, environments there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

from intercode.envs.base import InterCodeEnv
from intercode.runner.plan import Plan, env_settings
from intercode.runner.ray.cluster import connected
from intercode.runner.ray.far import FarEnv
from intercode.runner.ray.hosts import Hosts
from intercode.runner.ray.kit import make_kit


@contextmanager
def nodes(plan: Plan) -> Iterator[Callable[[], InterCodeEnv]]:
    """What makes the environments of a run on the nodes of a cluster, while the context lasts.

    Raises ConfigError where Ray is not installed, UsageError where no cluster answers.
    """
    config, dataset = plan.config, plan.dataset
    with connected(config.address) as ray:
        settings = env_settings(config, dataset)
        with plan.env() as env:
            kit = make_kit(env, dataset.environment, settings, plan.chosen)
        with Hosts(kit, ray, config.parallel, _say) as hosts:
            # all that a rollout asks of an environment it has
            yield lambda: cast(InterCodeEnv, FarEnv(kit.dataset, hosts=hosts))


def _say(text: str) -> None:
    print(text, file=sys.stderr)
