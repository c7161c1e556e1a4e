"""Where environments can run: in this process, or on the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from intercode.core.errors import UsageError
from intercode.environments.base.contract import BranchingEnvironment
from intercode.environments.base.env import InterCodeEnv
from intercode_sandbox.registry import Registry

LOCAL = "local"
RUNNERS = Registry(
    "runner",
    {
        LOCAL: "intercode.environments.runners:local_environments",
        "ray": "intercode.environments.ray.node_env:ray_environments",
    },
)
"""The functions behind ``open_runner``. They get its arguments, but of the runner only what follows
its name."""


def open_runner(
    runner: str,
    make_env: Callable[[], InterCodeEnv],
    environment: str,
    settings: Mapping[str, Any],
    task_indices: Sequence[int],
    size: int,
) -> AbstractContextManager[Callable[[], BranchingEnvironment]]:
    """Return the context in which environments can be made by the function that it yields.

    Args:
        runner: The name of a runner, which an address may follow: ``ray:HOST:PORT``.
        make_env: Makes an environment in this process.
        environment: The name of the environment.
        settings: Those with which ``make_env`` makes it.
        task_indices: The positions of the tasks to play.
        size: How many episodes may be live at once.

    Raises:
        UsageError: See ``check_runner``.
    """
    check_runner(runner)
    name, _, address = runner.partition(":")
    opened: AbstractContextManager[Callable[[], BranchingEnvironment]] = RUNNERS.load(name)(
        address, make_env, environment, settings, task_indices, size
    )
    return opened


def check_runner(runner: object) -> None:
    """Raise UsageError for what is no name of a runner and for an address of ``local``,
    UnknownNameError if there is no such runner."""
    if not isinstance(runner, str):
        raise UsageError(f"runner is {runner!r}; it must be a name, such as {LOCAL!r}")
    if runner.startswith(f"{LOCAL}:"):
        raise UsageError(f"runner = {runner!r}: local has no address")
    RUNNERS.load(runner.partition(":")[0])


@contextmanager
def local_environments(
    _address: str, make_env: Callable[[], InterCodeEnv], *_: object
) -> Iterator[Callable[[], BranchingEnvironment]]:
    """Yield the function that makes environments in this process."""
    yield make_env
