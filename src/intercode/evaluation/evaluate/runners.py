"""Where the environments of a run are: on this machine, or on the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from intercode.core.registry import Registry
from intercode.environments.base.env import InterCodeEnv
from intercode.evaluation.evaluate.plan import Plan

LOCAL = "local"
RUNNERS = Registry(
    "runner",
    {
        LOCAL: "intercode.evaluation.evaluate.runners:local_environments",
        "ray": "intercode.evaluation.ray.ray_runner:ray_environments",
    },
)
"""Names to context managers: for a plan, what makes its environments while the context lasts."""


def open_runner(plan: Plan) -> AbstractContextManager[Callable[[], InterCodeEnv]]:
    """The context in which a plan's environments can be made. Raises UnknownNameError."""
    found: AbstractContextManager[Callable[[], InterCodeEnv]] = RUNNERS.load(plan.config.runner)(
        plan
    )
    return found


@contextmanager
def local_environments(plan: Plan) -> Iterator[Callable[[], InterCodeEnv]]:
    """In this process."""
    yield plan.make_env
