"""Where the environments of a run are: on this machine, or on the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from intercode.envs.base import InterCodeEnv
from intercode.registry import Registry
from intercode.runner.plan import Plan

LOCAL = "local"
RUNNERS = Registry(
    "runner",
    {
        LOCAL: "intercode.runner.places:local",
        "ray": "intercode.runner.ray.running:nodes",
    },
)
"""Names to context managers: for a plan, what makes its environments while the context lasts."""


def places_of(plan: Plan) -> AbstractContextManager[Callable[[], InterCodeEnv]]:
    """The context in which a plan's environments can be made. Raises UnknownNameError."""
    found: AbstractContextManager[Callable[[], InterCodeEnv]] = RUNNERS.load(plan.config.runner)(
        plan
    )
    return found


@contextmanager
def local(plan: Plan) -> Iterator[Callable[[], InterCodeEnv]]:
    """In this process."""
    yield plan.env
