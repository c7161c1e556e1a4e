"""What rollouts and pools use of an environment, wherever it runs: in this process, on a node of a
cluster, or behind a server."""

from __future__ import annotations

from typing import Any, Protocol, Self

from intercode.core.types import Brief, Dataset, ExecResult, Score, Step, Task


class Environment(Protocol):
    """An environment that an agent can play. ``InterCodeEnv`` documents the methods.

    >>> import intercode
    >>> from intercode.environments import Environment
    >>> def look(env: Environment, action: str) -> str:
    ...     env.reset(seed=1)
    ...     return env.execute(action).observation
    >>> with intercode.make("bash") as env:
    ...     look(env, "echo 1")
    '1\\n'
    """

    max_turns: int | None

    @property
    def index(self) -> int: ...
    @property
    def task_seed(self) -> int | None: ...
    @property
    def task(self) -> Task: ...
    @property
    def brief(self) -> Brief: ...
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]: ...
    def execute(self, action: str) -> Step: ...
    def finish(self, answer: str | None = None) -> Step: ...
    def score(self) -> Score: ...
    def check_gold(self) -> None: ...
    def close(self) -> None: ...


class EpisodeSnapshot(Protocol):
    """A saved state of an episode. ``omitted`` names what it does not hold."""

    @property
    def omitted(self) -> tuple[str, ...]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...


class BranchingEnvironment(Environment, Protocol):
    """An environment whose episodes can be saved, continued from a snapshot, and interrupted."""

    dataset: Dataset

    @property
    def name(self) -> str: ...
    def snapshot(self) -> EpisodeSnapshot: ...
    def restore(self, snapshot: Any) -> None:
        """Continue from a snapshot that an environment of the same kind took."""
        ...

    def end_episode(self) -> None: ...
    def abort(self) -> None: ...
    def result_metadata(self) -> dict[str, Any]: ...


class Workspace(Protocol):
    """What the actions of an episode run in: a session with its sandbox or its database."""

    @property
    def cwd(self) -> str:
        """The directory, or the database, in which the next action runs."""
        ...

    def run(self, action: str, timeout: float) -> ExecResult:
        """Run one action for at most ``timeout`` seconds."""
        ...

    def changed_paths(self) -> list[str]:
        """Return what the episode has changed, sorted."""
        ...

    def state_hash(self) -> str:
        """Return a hash of the state of the session and its files or data."""
        ...

    def abort(self) -> None:
        """Interrupt the call that another thread makes. May be called again, also after close."""
        ...

    def close(self) -> None:
        """Close the session and free what it runs in."""
        ...
