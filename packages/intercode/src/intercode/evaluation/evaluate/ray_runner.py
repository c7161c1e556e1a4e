"""Runs the environments of an evaluation on a cluster. All else stays in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from intercode.environments.base.contract import BranchingEnvironment
from intercode.environments.ray.cluster import connect
from intercode.environments.ray.environment_spec import make_environment_spec
from intercode.environments.ray.host_manager import HostManager
from intercode.environments.ray.remote_env import NodeEnv
from intercode.evaluation.evaluate.plan import Plan, env_settings


@contextmanager
def ray_environments(plan: Plan) -> Iterator[Callable[[], BranchingEnvironment]]:
    """Yield a function that makes the environments of a run on the nodes of a cluster.

    Raises ConfigError if Ray is not installed, UsageError if no cluster answers.
    """
    config, dataset = plan.config, plan.dataset
    with connect(config.runner.partition(":")[2] or None) as ray:
        settings = env_settings(config, dataset)
        with plan.make_env() as env:
            spec = make_environment_spec(env, dataset.environment, settings, plan.task_indices)
        with HostManager(spec, ray, config.parallel, _log) as hosts:
            yield lambda: NodeEnv(spec.dataset, manager=hosts)


def _log(text: str) -> None:
    sys.stderr.write(f"{text}\n")  # in one piece: threads log, too
